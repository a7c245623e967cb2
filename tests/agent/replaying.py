"""Random conversations of an agent that remembers, and the requests that its model was sent."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from flowrt.agent.replay import Replayed, replay
from flowrt.service import Service
from flowrt.storage.agents.protocol import Place, Turn
from flowrt.testing import FakeMessagesAPI, FakeReply
from tests.agent.compacting import is_summary_request
from tests.agent.remembering import AGENT, Kept, remembering, say
from tests.services import load


@dataclass
class Exchange:
    """A message of so many words, and what the model does: calls of tools, then an ending."""

    words: int
    rounds: list[str]
    ending: str


@dataclass
class Talk:
    """A conversation, with the settings it happens under. `anew` loads the service each time."""

    exchanges: list[Exchange]
    budget: int
    strategy: str
    compact_to: float
    anew: bool


exchanges = st.builds(
    Exchange,
    words=st.integers(1, 300),
    rounds=st.lists(
        st.sampled_from(["echo", "echo", "long", "remember", "forget", "cut off"]), max_size=4
    ),
    ending=st.sampled_from(["answer", "answer", "answer", "long answer", "fail", "refuse"]),
)
talks = st.builds(
    Talk,
    exchanges=st.lists(exchanges, min_size=1, max_size=8),
    budget=st.one_of(st.integers(600, 3000), st.just(200_000)),
    strategy=st.sampled_from(["prune", "summarize"]),
    compact_to=st.sampled_from([0.3, 0.6, 1.0]),
    anew=st.booleans(),
)


class Model:
    """Plays exchanges on the fake API."""

    def __init__(self) -> None:
        self.script: list[FakeReply] = []
        self._made = 0

    def play(self, exchange: Exchange) -> None:
        """Answer what follows as this exchange says."""
        self.script = [self._round(each) for each in exchange.rounds]
        match exchange.ending:
            case "fail":
                self.script.append(FakeReply(error=400, message="no"))
            case "refuse":
                self.script.append(FakeReply(text="No.", stop_reason="refusal"))
            case "long answer":
                self.script.append(FakeReply(text="well " * 400))
            case _:
                self.script.append(FakeReply(text="Fine."))

    def __call__(self, body: dict[str, Any]) -> FakeReply:
        if is_summary_request(body):
            return FakeReply(text="They talked about this and that.")
        return self.script.pop(0)

    def _round(self, kind: str) -> FakeReply:
        self._made += 1
        note = {"name": f"note {self._made % 3}", "value": f"value {self._made}"}
        match kind:
            case "remember":
                call = {"name": "remember", "input": note}
            case "forget":
                call = {"name": "forget", "input": {"name": note["name"]}}
            case "long":
                call = {"name": "echo", "input": {"x": "long " * 300}}
            case _:
                call = {"name": "echo", "input": {"x": self._made}}
        stop = "max_tokens" if kind == "cut off" else None
        return FakeReply(tool_calls=[call], stop_reason=stop)


class Heard:
    """The requests of the model, exchange by exchange, without those for summaries."""

    def __init__(self, api: FakeMessagesAPI) -> None:
        self._api = api
        self._seen = len(api.bodies)
        self.exchanges: list[list[dict[str, Any]]] = []

    def exchange(self) -> None:
        """An exchange is over."""
        bodies, self._seen = self._api.bodies[self._seen :], len(self._api.bodies)
        self.exchanges.append([body for body in bodies if not is_summary_request(body)])


async def replayed(service: Service, turn: Turn, *, volatile: bool = False) -> Replayed:
    """The request at a turn of thread `t`."""
    memories, place = service.memories, Place("test", AGENT, turn.thread)
    return await replay(memories.of(volatile), memories.of(), place, turn, context={})


async def play(talk: Talk, folder: Path, storage: str, thread: str) -> list[str]:
    """Have a conversation and compare what each turn gives with what the model was sent.

    Gives what was lacking in requests, where something was.
    """
    model = Model()
    with FakeMessagesAPI([], reply=model) as api:
        document = remembering(
            api.base_url,
            userMemory=True,
            contextMaxTokens=talk.budget,
            memoryCompaction=talk.strategy,
            compactTo=talk.compact_to,
        )
        heard = Heard(api)
        each = [[exchange] for exchange in talk.exchanges]
        for exchanges in each if talk.anew else [talk.exchanges]:
            async with load(folder, document, storage) as service:
                for exchange in exchanges:
                    model.play(exchange)
                    text = f"message {len(heard.exchanges)} " + "w " * exchange.words
                    await service.invoke("chat", say(text, thread))
                    heard.exchange()
        async with load(folder, document, storage) as service:
            return await compare(service, heard, thread)


async def compare(service: Service, heard: Heard, thread: str = "t") -> list[str]:
    """Every turn against what was sent; what was lacking in requests."""
    lacking: list[str] = []
    number = -1
    for turn in await Kept.of(service).turns(thread):
        number += turn.role == "user"
        sent = heard.exchanges[number]
        told = await replayed(service, turn)
        assert told.request is not None, (turn.seq, told.unknown)
        if told.exact:
            assert (sent[0] if turn.role == "user" else sent[-1]) == told.request
        assert len(sent) == told.calls
        lacking += told.lacking
    return lacking
