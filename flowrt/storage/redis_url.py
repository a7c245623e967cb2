"""Addresses of Redis: checked when they are named, shown without their password."""

from __future__ import annotations

from urllib.parse import urlsplit

from flowrt.errors import CallError
from flowrt.observe.masking import MASK, mask_text


def check_url(url: str) -> None:
    """Raise `CallError` for an address that cannot be one, without showing its password.

    A password with a raw ``/``, ``?``, ``#`` or ``[`` ends the host part early: the text then is
    about ports and brackets, and would show half of the password.
    """
    try:
        parts = urlsplit(url)
        valid = bool(parts.hostname) and (parts.port is None or parts.port > 0)
        database = parts.path.strip("/")
    except ValueError:
        valid, database = False, ""
    if not valid or not (database == "" or database.isdecimal()):
        # Not chained: the cause names parts of the password.
        raise CallError(
            f"storage {mask_url(url)!r} is not an address; write redis://:PASSWORD@HOST:PORT/DB, "
            "with the password percent-encoded"
        ) from None


def mask_url(url: str) -> str:
    """The address with its password masked, also where characters of it are not encoded."""
    scheme, mark, rest = url.partition("://")
    user, at, host = rest.rpartition("@")
    if at and ":" in user:
        rest = f"{user.partition(':')[0]}:{MASK}@{host}"
    return mask_text(f"{scheme}{mark}{rest}")
