"""One conversion for each state of a message."""

from __future__ import annotations

from flowrt.expr import Expression
from flowrt.message import Message

BODY = Expression.compile("'' + body.a")
VARS = Expression.compile("'' + vars.v + body.a")


def test_a_state_is_converted_once_for_every_expression() -> None:
    message = Message({"a": "b"}, {"v": "w"})
    BODY.value(message)
    state = message.activation
    VARS.value(message)
    Expression.compile("body.a + eventID").value(message)
    assert state is not None
    assert state is message.activation


def test_a_new_body_is_seen() -> None:
    message = Message({"a": "b"})
    BODY.value(message)
    message.body = {"a": "c"}
    assert "c" == BODY.value(message)


def test_a_changed_variable_is_seen_by_who_asks_for_it() -> None:
    message = Message({"a": "b"}, {"v": "1"})
    found = [VARS.value(message)]
    message.set("v", "2")
    found.append(VARS.value(message))
    message.update({"v": "3"})
    found.append(VARS.value(message))
    message.replace_vars({"v": "4"})
    found.append(VARS.value(message))
    assert ["1b", "2b", "3b", "4b"] == found


def test_a_changed_variable_does_not_convert_the_body_again_for_who_does_not_ask() -> None:
    message = Message({"a": "b"})
    BODY.value(message)
    state = message.body_activation
    message.set("v", "1")
    BODY.value(message)
    assert state is message.body_activation
    assert "1b" == VARS.value(message)


def test_a_scoped_copy_shares_the_converted_body_and_a_clone_does_not() -> None:
    message = Message({"a": "b"})
    BODY.value(message)
    assert message.body_activation is message.scoped().body_activation
    clone = message.rekeyed()
    assert clone.event_id == Expression.compile("'' + eventID").value(clone)


def test_memory_of_many_evaluations_is_let_go_again() -> None:
    message = Message({"a": "b"})
    BODY.value(message)
    first = message.activation
    for _ in range(1001):
        BODY.value(message)
    assert first is not message.activation


def test_the_doubles_of_a_state_are_made_once_and_follow_the_data() -> None:
    half = Expression.compile("body.n * 0.5 + vars.n")
    message = Message({"n": 3}, {"n": 0.5})
    assert 2.0 == half.value(message)
    message.set("n", 1)
    assert 2.5 == half.value(message)
    message.body = {"n": 5}
    assert 3.5 == half.value(message)
