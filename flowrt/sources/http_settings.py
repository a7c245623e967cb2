"""The settings of the source `http`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from flowrt.engine.block import Settings
from flowrt.engine.fields import Duration

MOST_BODY = 1024 * 1024
_PARAMETER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_SEGMENT = re.compile(r"[^{}\s?#]*")


def _path(path: str) -> str:
    if not path.startswith("/"):
        raise PydanticCustomError("path", "a path begins with /")
    names = []
    for segment in path[1:].split("/"):
        parameter = _PARAMETER.fullmatch(segment)
        if parameter is not None:
            names.append(parameter[1])
        elif not _SEGMENT.fullmatch(segment):
            raise PydanticCustomError(
                "path",
                "the segment {segment} is neither text nor one {name} of letters, digits and _",
                {"segment": repr(segment), "name": "{name}"},
            )
    if len(names) != len(set(names)):
        raise PydanticCustomError("path", "a path names each of its parameters once")
    return path


def parameters(path: str) -> list[str]:
    """The names in a path."""
    return _PARAMETER.findall(path)


Method = Annotated[
    Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"],
    BeforeValidator(lambda value: value.upper() if isinstance(value, str) else value),
]
HeaderName = Annotated[str, Field(pattern=r"^[0-9A-Za-z!#$%&'*+.^_`|~-]+$")]
_OF_THE_SERVER = ("content-type", "content-length", "transfer-encoding", "connection", "date")


def _own_header(name: str) -> str:
    if name.lower() in _OF_THE_SERVER:
        raise PydanticCustomError(
            "header", "{name} is the server's to write; a content type comes with raw content",
            {"name": name},
        )  # fmt: skip
    return name


class SseSettings(Settings):
    """How answers are streamed as server-sent events."""

    enabled: bool = Field(default=False, description="Let the flow stream its answer.")
    stream_var: str = Field(
        default="sseStream", min_length=1, description="The variable with the stream's address."
    )
    final_event: bool = Field(
        default=False, description="Send the flow's result as the last event of a stream."
    )
    final_event_name: str = Field(
        default="result", pattern=r"^[^\r\n]+$", description="What that event is called."
    )
    close_on_complete: bool = Field(
        default=True, description="End the stream with the flow; else others may go on writing."
    )
    heartbeat: Duration = Field(
        default=15.0, description="How often a comment shows that a stream lives; 0 for never."
    )
    max_duration: Duration = Field(
        default=0.0, description="How long a stream may be open; 0 for no limit."
    )
    max_streams: int = Field(
        default=1000, ge=1, description="Streams at a time; one more is answered with 503."
    )


class HttpSourceSettings(Settings):
    """Settings of the source `http`."""

    path: Annotated[str, AfterValidator(_path)] = Field(
        description="The path; `{name}` stands for one segment and becomes `vars.name`."
    )
    methods: list[Method] = Field(default=[], description="The methods; unset, all.")
    headers: list[HeaderName] = Field(
        default=[], description="Headers to copy to variables; the text is empty without one."
    )
    response_headers: list[Annotated[HeaderName, AfterValidator(_own_header)]] = Field(
        default=[], description="Variables to copy to headers of the answer, where they are scalar."
    )
    correlation_id_header: HeaderName | None = Field(
        default=None, description="The header with the correlation id."
    )
    raw_body_var: str | None = Field(
        default=None,
        min_length=1,
        description="A variable for the body as it came, such as for a signature.",
    )
    raw_body: bool = Field(
        default=False, description="Take any text as raw content, where JSON is expected else."
    )
    timeout: Duration | None = Field(
        default=None,
        description="How long the flow may take; 0 for no limit; unset, the connector's.",
    )
    max_body_bytes: int = Field(default=MOST_BODY, ge=0, description="The longest body.")
    sse: SseSettings = Field(
        default_factory=SseSettings, description="How answers are streamed as events."
    )

    @model_validator(mode="after")
    def _one_variable_each(self) -> Self:
        taken = ["method", "query", *parameters(self.path), *self.headers]
        taken += [self.raw_body_var] if self.raw_body_var else []
        taken += [self.sse.stream_var] if self.sse.enabled else []
        twice = next((name for name in taken if taken.count(name) > 1), None)
        if twice is not None:
            raise PydanticCustomError(
                "variable",
                "two parts of a request would be vars.{name}; rename one",
                {"name": twice},
            )
        return self
