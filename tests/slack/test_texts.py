"""Texts in Slack: Markdown, mentions that ring nobody, parts (FB-80, FB-81)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.slack.escaping import escape, escape_but, unescape
from flowrt.slack.mrkdwn import to_mrkdwn
from flowrt.slack.splitting import LIMIT, split


@pytest.mark.parametrize(
    ("markdown", "mrkdwn"),
    [
        ("**bold** and *it* ~~gone~~", "*bold* and _it_ ~gone~"),
        ("a < b && c > d", "a &lt; b &amp;&amp; c &gt; d"),
        ("already &amp; escaped", "already &amp; escaped"),
        ("[t](https://x?a=1&b=2)", "<https://x?a=1&amp;b=2|t>"),
        ("[**a|b**](https://x/a|b)", "<https://x/a%7Cb|a¦b>"),
        ("<https://x/?a&b>", "<https://x/?a&amp;b>"),
        ("# A **title**\n\ntext", "*A title*\n\ntext"),
        ("- a\n- b\n  - c", "• a\n• b\n    ◦ c"),
        ("3. a\n4. b", "3. a\n4. b"),
        ("> a\n> b", "> a\n> b"),
        ("```python\nif **x** < 1: pass\n```", "```\nif **x** &lt; 1: pass\n```"),
        ("`**x** < 1`", "`**x** &lt; 1`"),
        ("~~~\na ``` b\n~~~", "```\na `\u200b`\u200b` b\n```"),
        ("| a | b |\n|---|---|\n| 1 | `2` |", "```\na | b\n--+--\n1 | 2\n```"),
        ("![a cat](https://x/cat.png)", "<https://x/cat.png|a cat>"),
        ("snake_case_name and 2 * 3", "snake_case_name and 2 * 3"),
        ("@someone", "@someone"),
        ("", ""),
    ],
)
def test_markdown_in_slacks_markup(markdown: str, mrkdwn: str) -> None:
    assert mrkdwn == to_mrkdwn(markdown)


PINGS = [
    "<!channel>", "<!here|here>", "<@U123>", "<@W1|x>", "<!subteam^S1>", "`<!channel>`",
    "```\n<!channel>\n```", "    <!everyone>", "# <@U1>", "[x](!channel)", "[x](@U123)",
    "[<!channel>](https://x)", "![<!here>](!here)", "<!channel|[x](https://y)>", "> <@U1>",
    "| <@U1> |\n|---|\n| <!here> |", "[x](<!channel>)", "**<@U1>**", "\\<!channel>",
    "&lt;!channel&gt;",
    "[x]: !channel\n\n[x]", "<https://x|<!channel>>", "[a](https://x/<!here>)",
]  # fmt: skip


@pytest.mark.parametrize("text", PINGS)
def test_nothing_that_a_model_writes_rings_anybody(text: str) -> None:
    assert not re.search(r"<[@!#]", to_mrkdwn(text))
    assert not re.search(r"<[@!#]", escape(text))


@given(st.text(alphabet="<>!@&|`*_[]()#ahU1 \n~-^:/", max_size=60))
def test_whatever_it_writes(text: str) -> None:
    found = re.findall(r"<([^>]*)>?", to_mrkdwn(text))
    assert [] == [each for each in found if not each.lower().startswith(("http", "mailto"))]


def test_mentions_that_are_allowed_stay() -> None:
    text = "ask <@U1> or <@U2>, <!here> and <!subteam^S1|team>, `<@U1>`"
    assert to_mrkdwn(text, ["U1", "here", "S1"]) == (
        "ask <@U1> or &lt;@U2&gt;, <!here> and <!subteam^S1|team>, `&lt;@U1&gt;`"
    )
    assert "<@U1> <@U2> &lt;!here&gt;" == escape_but("<@U1> <@U2> <!here>", ["users"])


@given(st.text())
def test_escaping_can_be_undone(text: str) -> None:
    assert text == unescape(escape(text))


def bare(text: str) -> str:
    return re.sub(r"\s+|```", "", text)


@pytest.mark.parametrize("size", [3_001, 4_001, 45_000])
@pytest.mark.parametrize(
    "piece", ["word ", "line of text\n", "a paragraph.\n\n", "x", "👩‍👩‍👧", "&lt;"]
)
def test_a_long_text_goes_out_whole_and_in_order(piece: str, size: int) -> None:
    text = piece * (size // len(piece))
    parts = split(text)
    assert all(0 < len(part) <= LIMIT for part in parts)
    assert bare(text) == bare("".join(parts))
    assert len(parts) <= size // (LIMIT // 2) + 1
    for part in parts:
        assert not re.search(r"&(?!lt;|amp;|gt;)", part)
        assert not part.startswith("\u200d")
        assert not part.endswith("\u200d")


def test_a_code_block_across_a_cut_is_closed_and_opened_again() -> None:
    code = "\n".join(f"    line {number}" for number in range(1000))
    text = f"before\n```\n{code}\n```\nafter"
    parts = split(text)
    assert len(parts) > 3
    assert all(part.count("```") == 2 for part in parts)
    assert bare(text) == bare("".join(parts))
    lines = [line for part in parts for line in part.split("\n") if "line" in line]
    assert code.split("\n") == lines


PIECES = [
    "word ", "\n", "\n\n", "```\n", "\n```\n", "&amp;", "x" * 30, "`a b`", "👍🏽",
    "<https://x|a b>",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=60), st.integers(60, 120))
def test_any_text_and_any_limit(pieces: list[str], limit: int) -> None:
    text = "".join(pieces)
    parts = split(text, limit)
    assert all(len(part) <= limit for part in parts)
    assert bare(text) == bare("".join(parts))
    assert "".join(parts).count("<https://x|a b>") == text.count("<https://x|a b>")
    assert "".join(parts).count("👍🏽") == text.count("👍🏽")


def test_a_short_text_is_one_part_and_none_is_one_too() -> None:
    assert ["a\n\nb "] == split("a\n\nb ")
    assert [""] == split("")
