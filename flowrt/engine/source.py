"""What a source is: settings, and something that sends a flow its messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from flowrt.engine.block import Settings
from flowrt.message import Message

if TYPE_CHECKING:
    from flowrt.engine.connector import AnyConnector
    from flowrt.engine.delivery import Delivery
    from flowrt.engine.run import Runtime

S = TypeVar("S", bound=Settings)


class Deliver(Protocol):
    """Sends a message through the flow and returns its result, None where it was dropped.

    `delivery` is for a message that may come again. Raises `FlowError` where the flow failed. May
    be called many times at once: how many is the source's business.
    """

    async def __call__(
        self, message: Message, delivery: Delivery | None = None
    ) -> Message | None: ...


LISTENERS = 8
"""Messages worked on at a time by a flow that does not say."""


class SourceSite(NamedTuple):
    """The flow that a source feeds. `workers` is None where the flow does not say.

    `connector` is what it stands on, None for a source without a connector of its type;
    `server` is what it `listens_on`.
    """

    flow: str
    workers: int | None
    buffer: int
    connector: AnyConnector | None = None
    server: AnyConnector | None = None


class Source(Generic[S]):
    """Sends a flow its messages, from `start` to `stop`.

    Built at load, without touching the network; its constructor may raise `Refusal` over a setting.
    Register it under the entry point group `flowrt.sources`, named as its YAML type; where there is
    a connector of the same type, it gets one. `start` and `stop` come in pairs, possibly several
    times in the life of the object, each time in another event loop.
    """

    Settings: ClassVar[type[Settings]]

    inner: ClassVar[bool] = False
    """Fed by the flows of the service: it starts before the others and stops after them."""

    def __init__(self, settings: S, site: SourceSite) -> None:
        self.settings = settings
        self.site = site

    @classmethod
    def listens_on(cls, settings: S) -> str | None:
        """The type of a further connector that it needs; its setting of that name may choose one.

        None where it needs none.
        """
        return None

    @property
    def not_ready(self) -> str:
        """Why a started source cannot take messages yet; empty where it can."""
        return ""

    @property
    def waiting(self) -> int:
        """How many messages it has taken that wait to be worked on."""
        return 0

    async def open(self, deliver: Deliver, runtime: Runtime) -> None:
        """Get ready to deliver what was taken, also by others; before any source starts."""

    async def close(self) -> None:
        """The end of what `open` began; what was under way has ended or was cut off."""

    async def start(self, deliver: Deliver, runtime: Runtime) -> None:
        """Begin to deliver. Raise an error of the tree where that cannot work."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Deliver nothing more; what is under way may be finished or cut off."""
        raise NotImplementedError


AnySource = Source[Any]
