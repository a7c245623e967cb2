"""Where stored objects are: apart from the transcripts in the same namespace."""

from __future__ import annotations

PREFIX = "object/"
