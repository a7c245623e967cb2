"""The index of words: what is rare counts, what is newer is added, and length hardly matters."""

from __future__ import annotations

from flowrt.memory.search.bm25 import EXACT, WordIndex


def index(*texts: str) -> WordIndex:
    made = WordIndex()
    made.add(texts)
    return made


def best(made: WordIndex, *wanted: str) -> int:
    scores = made.scores(wanted)
    return max(scores, key=scores.__getitem__)


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    made = index("tea apple", "tea bread", "tea cheese", "lemon bread")
    assert 3 == best(made, "tea", "lemon")


def test_a_text_that_says_a_word_twice_comes_before_one_that_says_it_once() -> None:
    assert 1 == best(index("lemon tea milk", "lemon lemon tea", "bread", "bread"), "lemon")


def test_texts_that_say_nothing_of_it_have_no_score() -> None:
    assert {} == index("tea", "milk").scores(["wine"])
    assert {} == index("tea", "milk").scores([])
    assert {} == WordIndex().scores(["wine"])


def test_an_index_that_grew_scores_as_one_that_was_built_at_once() -> None:
    grown = WordIndex()
    for text in ("lemon tea", "", "green tea with lemon", "milk " * 9000):
        grown.add([text])
    whole = index("lemon tea", "", "green tea with lemon", "milk " * 9000)
    assert whole.scores(["lemon", "milk"]) == grown.scores(["lemon", "milk"])
    assert whole.footprint == grown.footprint


def test_in_a_long_history_common_words_still_decide_among_those_with_the_rare_one() -> None:
    made = index(*["tea", "milk", "milk"] * (EXACT + 1), "lemon", "lemon tea", "lemon")
    scores = made.scores(["tea", "lemon"])
    assert 3 * EXACT + 4 == max(scores, key=scores.__getitem__)
    assert 3 == len(scores)
