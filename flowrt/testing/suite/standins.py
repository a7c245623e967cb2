"""What plays the models of a case: scripts, and a guard where there is none."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from flowrt.clock import Clock
from flowrt.connectors.llm_scripted import condition, fields_asked
from flowrt.engine.connector import AnyConnector, Connector
from flowrt.errors import ModelRefused
from flowrt.llm.connector import EmbeddingConnector, ModelConnector
from flowrt.llm.embedding import EmbeddingModel, Embeddings
from flowrt.llm.model import ChatModel, Delta, Reply, Request
from flowrt.llm.scripted import NoAnswer, ScriptedModel
from flowrt.testing.suite.asked import ModelLog
from flowrt.testing.suite.model import ModelReply
from flowrt.testing.suite.recording import Entry, Recorder, Replayer

EMBEDDING_SIZE = 64


class PlayedModel:
    """A chat model whose requests are noted. `play` answers them."""

    def __init__(self, name: str, provider: str, play: ChatModel, log: ModelLog) -> None:
        self.name = name
        self.provider = provider
        self._play = play
        self._log = log

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        """What `play` answers. A request that nothing answers is a problem of the case."""
        self._log.ask(self.name, request)
        try:
            return await self._play.complete(request, on_delta)
        except NoAnswer as error:
            self._log.problems.append(str(error))
            raise


class Forbidden:
    """Stands where a suite would reach a real provider."""

    def __init__(self, name: str, provider: str, log: ModelLog) -> None:
        self.name = name
        self.provider = provider
        self._log = log

    async def complete(
        self, request: Request, on_delta: Callable[[Delta], None] | None = None
    ) -> Reply:
        text = (
            f"connector {self.name!r} would call a real provider; write what it answers under "
            f"`models: {{{self.name}: [...]}}`, record it with --record, or allow it with --live"
        )
        self._log.problems.append(text)
        raise ModelRefused(text)


class HashedEmbeddings:
    """Embeds texts as unit vectors made of their words' hashes: the same text, the same vector.

    Texts that share words are nearer to each other than texts that do not.
    """

    provider = "SCRIPTED"

    def __init__(self, name: str) -> None:
        self.name = name

    async def embed(
        self, texts: Sequence[str], *, model: str | None = None, dimensions: int | None = None
    ) -> Embeddings:
        """One vector for each text; `dimensions` None means `EMBEDDING_SIZE`."""
        size = dimensions or EMBEDDING_SIZE
        return Embeddings([_hashed(text, size) for text in texts], model or self.name, 0)


def _hashed(text: str, size: int) -> list[float]:
    vector = [0.0] * size
    for word in text.lower().split():
        digest = hashlib.sha256(word.encode()).digest()
        vector[int.from_bytes(digest[:4]) % size] += 1.0 if digest[4] % 2 else -1.0
    length = math.sqrt(sum(value * value for value in vector)) or 1.0
    return [value / length for value in vector]


class StandIn(Connector[Any], ModelConnector):
    """Takes the place of an LLM connector, which it starts and stops where calls go on to it."""

    def __init__(self, original: AnyConnector, model: ChatModel, *, opens: bool) -> None:
        super().__init__(original.name, original.settings)
        self._original = original if opens else None
        self._media = isinstance(original, ModelConnector) and original.media
        self._chat_model = model

    @property
    def chat_model(self) -> ChatModel:
        return self._chat_model

    @property
    def media(self) -> bool:
        return self._media

    @property
    def local(self) -> bool:
        return True

    async def start(self) -> None:
        if self._original is not None:
            await self._original.start()

    async def stop(self) -> None:
        if self._original is not None:
            await self._original.stop()


class EmbeddingStandIn(StandIn, EmbeddingConnector):
    """Takes the place of a connector that embeds as well."""

    def __init__(
        self, original: AnyConnector, model: ChatModel, embeds: EmbeddingModel, *, opens: bool
    ) -> None:
        super().__init__(original, model, opens=opens)
        self._embedding_model = embeds

    @property
    def embedding_model(self) -> EmbeddingModel:
        return self._embedding_model


def script(name: str, replies: Sequence[ModelReply], clock: Clock) -> ScriptedModel:
    """The model that plays `replies`."""
    conditions = [reply.when for reply in replies]
    return ScriptedModel(
        replies,
        name=name,
        matchers=[condition(when) for when in conditions],
        fields=fields_asked([when for when in conditions if when is not None]),
        clock=clock,
    )


class Cast:
    """Decides who plays each connector of a case.

    A script where the suite has one; else what was recorded; else itself, where its calls stay on
    this machine or the suite runs `live`. `recorded` None records: every connector without a script
    is asked itself, and its calls are added to `entries`.
    """

    def __init__(
        self,
        scripts: Mapping[str, Sequence[ModelReply]],
        recorded: Sequence[Entry] | None,
        log: ModelLog,
        clock: Clock,
        *,
        live: bool,
    ) -> None:
        self._scripts = scripts
        self._recorded = recorded
        self._log = log
        self._clock = clock
        self._live = live
        self.entries: list[Entry] = []

    def __call__(self, original: AnyConnector) -> AnyConnector:
        """The connector that blocks get: the `stand_in` of a build."""
        if not isinstance(original, ModelConnector):
            return original
        real = original.chat_model
        player = self._player(original.name, real, local=original.local)
        model = PlayedModel(original.name, real.provider, player, self._log)
        opens = player is real or isinstance(player, Recorder)
        if not isinstance(original, EmbeddingConnector):
            return StandIn(original, model, opens=opens)
        embeds = original.embedding_model if player is real else HashedEmbeddings(original.name)
        return EmbeddingStandIn(original, model, embeds, opens=opens)

    def _player(self, name: str, real: ChatModel, *, local: bool) -> ChatModel:
        if name in self._scripts:
            return script(name, self._scripts[name], self._clock)
        if self._live or isinstance(real, ScriptedModel):
            return real
        if self._recorded is None:
            return Recorder(real, self.entries)
        if any(entry["connector"] == name for entry in self._recorded):
            return Replayer(name, real.provider, self._recorded, self._log)
        return real if local else Forbidden(name, real.provider, self._log)
