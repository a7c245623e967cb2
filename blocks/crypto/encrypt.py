"""`encrypt`: seal a value."""

from __future__ import annotations

import base64
import json

from blocks.crypto.fields import CryptoBlock
from flowrt.engine.run import Run
from flowrt.message import Message


class Encrypt(CryptoBlock):
    """Seals a value: a text as it is, anything else as compact JSON.

    The result is a text in base64 or hex, another one each time.

    ```yaml
    - type: encrypt
      crypto: vault
      value: body.iban
      target: sealed
    ```
    """

    async def run(self, message: Message, run: Run) -> Message:
        value = self._value(message)
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        sealed = self._crypto.seal(value.encode())
        hexadecimal = self.settings.encoding == "hex"
        return self._fold(
            message, sealed.hex() if hexadecimal else base64.b64encode(sealed).decode()
        )
