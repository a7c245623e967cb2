"""Nodes that know their places."""

from __future__ import annotations

import json

from pydantic import BaseModel

from flowrt.config.nodes import Table, Text, plain
from flowrt.errors import Position

HERE = Position("f.yaml", 1, 1)


def test_a_text_is_a_str_everywhere_but_in_our_own_hands() -> None:
    class Model(BaseModel):
        value: str

    assert json.dumps(Text("a", HERE)) == '"a"'
    assert str is type(Model.model_validate({"value": Text("a", HERE)}).value)
    assert {"a": 1}[Text("a", HERE)]


def test_plain_leaves_nothing_of_ours() -> None:
    table = Table(HERE)
    table.put("k", [Text("a", HERE), {"b": Text("c", HERE)}], HERE, HERE)
    found = plain(table)
    assert found == {"k": ["a", {"b": "c"}]}
    assert (dict, list, str) == (type(found), type(found["k"]), type(found["k"][0]))


def test_an_entry_taken_from_another_table_keeps_place_and_path() -> None:
    there = Table(Position("g.yaml", 5, 1), "there")
    there.put("k", 1, Position("g.yaml", 6, 1), Position("g.yaml", 6, 4))
    here = Table(HERE, "here")
    here.take("k", there)
    assert Position("g.yaml", 6, 4) == here.value_positions["k"]
    assert (here.path_of("k"), here.path_of("other")) == ("there.k", "here.other")
