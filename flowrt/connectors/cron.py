"""`cron`: a name for sources to refer to."""

from __future__ import annotations

from flowrt.engine.block import Settings
from flowrt.engine.connector import Connector


class CronConnectorSettings(Settings):
    """`cron` has no settings."""


class CronConnector(Connector[CronConnectorSettings]):
    """Lets a flow's source say `connector: NAME` where it could say `type: cron`.

    ```yaml
    connectors:
      - name: clock
        type: cron
    ```
    """

    Settings = CronConnectorSettings
