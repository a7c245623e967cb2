"""Pictures in replies of Chat Completions, which its reference does not have."""

from __future__ import annotations

import re
from typing import Any

from flowrt.llm.model import Block

_DATA_URL = re.compile(r"data:(?P<type>[^;,]+)[^,]*;base64,")


def picture_block(part: Any) -> Block | None:
    """The picture in a part of a reply, or None where it is no picture.

    OpenRouter and LiteLLM put the pictures of a reply beside its text, as `images`, in the form
    that requests have them in: `{"type": "image_url", "image_url": {"url": "data:..."}}`.
    """
    match part:
        case {"type": "image_url", "image_url": {"url": str(url)}}:
            found = _DATA_URL.match(url)
            if found is None:
                return {"type": "image", "source": {"type": "url", "url": url}}
            source = {"type": "base64", "media_type": found["type"], "data": url[found.end() :]}
            return {"type": "image", "source": source}
    return None
