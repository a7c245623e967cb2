"""`flow-ref`: what a call takes along."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from flowrt.engine import registry
from flowrt.engine.block import Block, Settings
from flowrt.engine.fields import SubFlow
from flowrt.engine.run import Run
from flowrt.engine.site import Site
from flowrt.message import Message
from tests.services import flows, load


class HolderSettings(Settings):
    body: SubFlow


class Holder(Block[HolderSettings]):
    """Runs its body as an agent that holds a conversation runs a tool."""

    Settings = HolderSettings

    def __init__(self, settings: HolderSettings, site: Site) -> None:
        super().__init__(settings, site)
        self._body = site.chain(settings.body, "body")

    async def run(self, message: Message, run: Run) -> Message | None:
        return await self._body.run(message, run.within("a conversation"))


class Claims(Block[Settings]):
    """Notes which conversations the run says are held for it."""

    Settings = Settings
    seen: list[frozenset[str]] = []  # noqa: RUF012 - emptied for each test

    async def run(self, message: Message, run: Run) -> Message:
        Claims.seen.append(run.claims)
        return message


@pytest.mark.parametrize(
    ("one_way", "held"), [(False, {"a conversation"}), (True, frozenset[str]())]
)
async def test_only_a_call_that_is_waited_for_may_use_what_its_caller_holds(
    tmp_path: Path, one_way: bool, held: Any
) -> None:
    Claims.seen.clear()
    registry.blocks.add("test-holder", Holder)
    registry.blocks.add("test-claims", Claims)
    call = {"type": "flow-ref", "settings": {"flow": "other", "oneWay": one_way}}
    holder = {"type": "test-holder", "body": {"process": [call]}}
    async with load(tmp_path, flows(main=[holder], other=[{"type": "test-claims"}])) as service:
        await service.invoke("main")
    assert [held] == Claims.seen


async def test_flows_that_call_each_other_without_an_end_fail_and_say_so(tmp_path: Path) -> None:
    document = flows(
        main=[{"type": "flow-ref", "settings": {"flow": "other"}}],
        other=[{"type": "flow-ref", "settings": {"flow": "main"}}],
    )
    async with load(tmp_path, document) as service:
        result = await service.invoke("main")
    assert "they call each other in a circle that does not end" in str(result.error)
