"""`decrypt`: open what `encrypt` sealed."""

from __future__ import annotations

import base64
import binascii

from blocks.crypto.fields import CryptoBlock
from flowrt.engine.run import Run
from flowrt.errors import FlowError
from flowrt.message import Message, clean_text


class Decrypt(CryptoBlock):
    """Opens what `encrypt` sealed and gives the text; `fromJson` makes a value of it again.

    Another key, or a text that was changed, fails the block.

    ```yaml
    - type: decrypt
      crypto: vault
      value: vars.sealed
    ```
    """

    async def run(self, message: Message, run: Run) -> Message:
        opened = self._crypto.unseal(self._sealed(message))
        try:
            return self._fold(message, clean_text(opened.decode()))
        except UnicodeDecodeError:
            raise FlowError("decrypt: what was sealed is no text in UTF-8") from None

    def _sealed(self, message: Message) -> bytes:
        value = self._value(message)
        encoding = self.settings.encoding
        try:
            if isinstance(value, str):
                if encoding == "hex":
                    return bytes.fromhex(value)
                return base64.b64decode(value, validate=True)
        except (binascii.Error, ValueError):
            pass
        raise FlowError(f"decrypt: the value is no text in {encoding} (encoding)")
