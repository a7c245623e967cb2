"""Which words find which: endings, irregular forms, accents, scripts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowrt.memory.search.tokens import MAX_WORD, matching, terms


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("I bought two dogs", "buying a dog"),
        ("she went running", "goes and runs"),
        ("we hoped", "hoping"),
        ("he studied cities", "study of the city"),
        ("stopped planning", "stop the plan"),
        ("their children", "the child"),
        ("she made wishes", "make a wish"),
        ("Caroline's boxes", "CAROLINE and the box"),
        ("café crème", "cafe creme"),
        ("cafe\u0301", "café"),
        ("Straße", "STRASSE"),
        ("ﬁne", "fine"),
        ("1,000 euros", "1000 euro"),
        ("an e-mail", "the email"),
        ("Привет", "ПРИВЕТ"),
        ("ΟΔΟΣ", "οδος"),
    ],
)
def test_words_of_one_meaning_give_the_same_terms(said: str, asked: str) -> None:
    assert set(terms(asked)) <= set(terms(said))


@pytest.mark.parametrize("text", ["", "  ", "?!…", "What did you do, and why?", "don't we've"])
def test_words_that_only_ask_give_no_term(text: str) -> None:
    assert [] == terms(text)


@pytest.mark.parametrize(
    ("said", "asked"),
    [
        ("私は東京に住んでいます", "東京"),
        ("我喜欢吃苹果", "苹果"),
        ("서울에서 살아요", "서울"),
        ("ฉันรักแมวมาก", "แมว"),
    ],
)
def test_a_script_without_spaces_is_found_by_pairs_of_letters(said: str, asked: str) -> None:
    assert set(terms(asked)) <= set(terms(said))
    assert not set(terms(asked)) <= set(terms(said.replace(asked, "")))


def test_one_character_is_found_within_a_text() -> None:
    assert "猫" in terms("黒猫がいる")


def test_vowel_signs_of_other_scripts_stay_in_their_word() -> None:
    assert ["हिन्दी"] == terms("हिन्दी")
    assert terms("दिल") != terms("दल")


def test_words_next_to_a_script_without_spaces_are_words() -> None:
    assert ["python", "東", "京", "東京"] == terms("Python東京")


def test_numbers_and_names_with_digits_are_found() -> None:
    assert ["ord", "1234", "ord1234"] == terms("ORD-1234")


def test_of_a_word_that_is_data_only_the_beginning_counts() -> None:
    assert ["a" * MAX_WORD] == terms("a" * 100_000)


def test_a_hit_names_the_words_as_they_were_said() -> None:
    assert ("buying", "dogs") == matching("Buying DOGS is dear; dogs!", terms("bought a dog"))
    assert ("東京",) == matching("東京", terms("東京"))


@given(st.text())
def test_any_text_gives_terms_that_find_it(text: str) -> None:
    found = terms(text)
    assert all(found)
    assert all(not term.isspace() for term in found)
    assert terms(text) == found
