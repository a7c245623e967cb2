"""What the field reports of part 7 try (FB-91 to FB-99), through a service that is loaded."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from flowrt.errors import ConfigError
from flowrt.service import Service


def load(folder: Path, text: str | bytes, **environ: str) -> Service:
    path = folder / "f.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return Service.load(path, storage="memory:", environ=environ)


def refused(folder: Path, text: str, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **environ)
    return [str(fault).replace(f"{folder}/", "") for fault in caught.value.faults]


async def value(folder: Path, expression: str, head: str = "", **environ: str) -> Any:
    text = (
        f"{head}flows:\n- name: main\n  process:\n  - type: set-payload\n    value: {expression}\n"
    )
    async with load(folder, text, **environ) as service:
        result = await service.invoke("main")
    assert result.message is not None, result.error
    return result.message.body


AGENT = """
connectors:
- {name: m, type: llm-scripted, settings: {replies: [{text: x}]}}
flows:
- name: chat
  process:
  - type: ai-agent
    connector: m
    prompt: Help.
"""


@pytest.mark.parametrize("word", ["no", "on", "off", "yes", "y", "NO"])
async def test_a_name_and_a_key_may_be_a_word_that_yaml_1_1_takes_for_a_bool(
    tmp_path: Path, word: str
) -> None:
    """FB-91."""
    block = f"  - type: set-variable\n    settings: {{name: {word}, value: '\"{word}\"'}}\n"
    text = f"flows:\n- name: {word}\n  process:\n{block}  - type: set-payload\n    value: vars\n"
    async with load(tmp_path, text) as service:
        result = await service.invoke(word)
    assert result.message is not None, result.error
    assert {word: word} == result.message.body


@pytest.mark.parametrize(
    ("text", "path", "line"),
    [
        (f"{AGENT}    prompt: Again.\n", "flows.chat.process[0].prompt", 10),
        (
            f"{AGENT}    tools:\n"
            "    - {name: t, description: d, process: []}\n"
            "    - {name: t, description: d, process: []}\n",
            "tools[0] and tools[1]",
            7,
        ),
        ("env:\n- {name: A}\n- {name: A}\nflows: []\n", "env.A", 3),
        ("flows:\n- {name: a, process: []}\n- {name: a, process: []}\n", "flows.a", 3),
    ],
)
def test_the_same_key_or_name_twice_is_refused_with_both_places(
    tmp_path: Path, text: str, path: str, line: int
) -> None:
    """FB-93."""
    (fault,) = refused(tmp_path, text)
    assert f"f.yaml:{line}:" in fault
    assert path in fault


@pytest.mark.parametrize(
    "bomb",
    [
        "x-a: &a0 [x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"x-{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 10)),
        "x-a: " + "[" * 10_000 + "]" * 10_000,
        "x-a: &x [*x]\n",
    ],
)
def test_a_small_file_that_grows_is_refused_in_no_time(tmp_path: Path, bomb: str) -> None:
    """FB-94."""
    began = time.process_time()
    (fault,) = refused(tmp_path, f"{bomb}flows: []\n")
    assert 2 > time.process_time() - began
    assert 1000 > len(fault)


@pytest.mark.parametrize(
    "secret", ["a: b", '"q"', "#x", "!t", "{}", "$HOME", "${P}", "x\ny", " s "]
)
async def test_a_password_arrives_in_an_expression_and_in_a_setting_as_it_is_set(
    tmp_path: Path, secret: str
) -> None:
    """FB-96."""
    assert secret == await value(tmp_path, "env.P", "env: [{name: P}]\n", P=secret)
    block = "  - type: set-variable\n    settings: {name: '${P}', value: 1}\n"
    text = f"env: [{{name: P}}]\nflows:\n- name: main\n  process:\n{block}"
    async with load(tmp_path, text, P=secret) as service:
        result = await service.invoke("main")
    assert result.message is not None, result.error
    assert {secret: 1} == dict(result.message.vars)


def test_all_unset_variables_are_reported_at_once_before_a_connector_is_made(
    tmp_path: Path,
) -> None:
    """FB-98."""
    names = ["A", "B", "C"]
    env = "env:\n" + "".join(f"- {{name: {name}, required: true}}\n" for name in names)
    connector = "connectors:\n- {name: m, type: llm-scripted, settings: {replies: nonsense}}\n"
    found = refused(tmp_path, f"{env}{connector}flows: []\n")
    assert [2, 3, 4] == [int(fault.split(":")[1]) for fault in found[:3]]
    assert all(f'"{name}" is not set' in fault for name, fault in zip(names, found, strict=False))


async def test_empty_is_not_unset(tmp_path: Path) -> None:
    """FB-98."""
    head = "env: [{name: A}, {name: B}, {name: C, default: '}:-x'}]\n"
    expression = "'[has(env.A), has(env.B), env.C]'"
    assert [True, False, "}:-x"] == await value(tmp_path, expression, head, A="")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (AGENT.replace("prompt:", "promt:"), "did you mean 'prompt'"),
        (f"{AGENT}    maxIteration: 3\n", "did you mean 'maxIterations'"),
        ("flows:\n- -name: x\n", "-name"),
        ("flows:\n- name: x\n\tprocess: []\n", "tab"),
        ("flows:\n- name: x\n  value: 1\n  process: []\n", "flows.x"),
        ("flows: []\n---\nflows: []\n", "a second document"),
        ("", "empty"),
    ],
)
def test_a_typo_is_an_error_with_its_place_and_the_nearest_name(
    tmp_path: Path, text: str, said: str
) -> None:
    """FB-99."""
    found = refused(tmp_path, text)
    assert any(said in fault for fault in found), found
    assert all(fault.startswith("f.yaml:") for fault in found)
