"""What Slack takes for markup, and how a text is kept from being it."""

from __future__ import annotations

import re
from collections.abc import Collection

_ESCAPED_MENTION = re.compile(
    r"&lt;(?:@(?P<user>[UW][A-Z0-9]+)|!(?P<all>channel|here|everyone)"
    r"|!subteam\^(?P<group>S[A-Z0-9]+)|#(?P<place>[CG][A-Z0-9]+))(?:\|[^&<>|]*)?&gt;"
)
_ENTITIES = {"&amp;": "&", "&lt;": "<", "&gt;": ">"}


def escape(text: str) -> str:
    """`text` for Slack to show as it is. Without it `<!channel>` rings every phone, in code too."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return re.sub("&(?:amp|lt|gt);", lambda found: _ENTITIES[found[0]], text)


def escape_but(text: str, allowed: Collection[str]) -> str:
    """`escape`, except for mentions that are allowed.

    `allowed` has the ids of users, groups and channels, and `channel`, `here` and `everyone`;
    `users` stands for every user.
    """
    escaped = escape(text)
    if not allowed:
        return escaped

    def restore(found: re.Match[str]) -> str:
        who = next(each for each in found.groups() if each)
        known = who in allowed or (found["user"] is not None and "users" in allowed)
        return unescape(found[0]) if known else found[0]

    return _ESCAPED_MENTION.sub(restore, escaped)
