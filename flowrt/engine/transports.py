"""Which transport and which control a service has: its persistent store decides."""

from __future__ import annotations

from typing import TYPE_CHECKING

from flowrt.engine.control import Alone, Control
from flowrt.engine.local_transport import LocalTransport
from flowrt.engine.transport import Transport

if TYPE_CHECKING:
    from flowrt.storage.tiers import Storage


def transport_over(storage: Storage) -> Transport:
    """Between all processes on the store where it can carry messages, else inside of this one."""
    mail = storage.mail()
    if mail is None:
        return LocalTransport()
    # Imported here: a service in one process does not pay for it.
    from flowrt.engine.shared_transport import SharedTransport

    return SharedTransport(mail)


def control_over(storage: Storage) -> Control:
    """The other processes on the store, where it can reach them."""
    mail = storage.mail()
    if mail is None:
        return Alone()
    from flowrt.engine.shared_control import SharedControl

    return SharedControl(mail)
