"""From text to the terms by which it is found.

A term is a word in lower case, without accents and endings; of a script that is written without
spaces it is a character, or two that stand side by side. Words that say how a question is built
and not what it is about give no term.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from flowrt.memory.search.english import FORMS, STOP

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
_RUNS = re.compile(f"([{_UNSPACED}]+)|[^{_UNSPACED}]+")
_HAS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3})")

MAX_WORD = 64
"""Letters of a word that count: beyond are encoded data, of which each piece would be a term."""

_STEMS = 200_000
"""Words whose term is remembered; some 20 MB."""


class _Letters(dict[int, str]):
    """What becomes of each character: a letter without accent and case, or a space."""

    def __missing__(self, code: int) -> str:
        plain = unicodedata.normalize("NFKD", chr(code))
        # Only marks over European letters are accents. Elsewhere they are vowels, and belong.
        plain = "".join(mark for mark in plain if not "\u0300" <= mark <= "\u036f")
        plain = unicodedata.normalize("NFC", plain).casefold()
        known = "".join(char if _counts(char) else " " for char in plain)
        self[code] = known
        return known


def _counts(char: str) -> bool:
    return char.isalnum() or unicodedata.category(char)[0] == "M"


class _Terms(dict[str, str]):
    """The term of each word seen, "" where it gives none."""

    def __missing__(self, word: str) -> str:
        term = "" if word in STOP else stem(word)
        if len(self) >= _STEMS:
            self.clear()
        self[word] = term
        return term


_letters = _Letters()
_terms = _Terms()


def terms(text: str) -> list[str]:
    """The terms of a text, in its order, as often as they are said."""
    found = [term for word in _words(text) if (term := _terms[word])]
    if not text.isascii() and _HAS_UNSPACED.search(text):
        return [piece for term in found for piece in _unspaced(term)]
    return found


def matching(text: str, wanted: Iterable[str]) -> tuple[str, ...]:
    """The words of a text that give a term of `wanted`: each once, in lower case, in its order."""
    looked = set(wanted)
    words = dict.fromkeys(_words(text))
    if text.isascii():
        return tuple(word for word in words if _terms[word] in looked)
    return tuple(word for word in words if looked.intersection(_unspaced(_terms[word])))


def _words(text: str) -> list[str]:
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    if "," in text:
        text = _THOUSANDS.sub("", text)
    if "-" in text:
        # "e-mail" is also found as "email", and by its parts.
        joined = (piece.replace("-", "") for piece in text.split() if "-" in piece.strip("-"))
        text = f"{text} {' '.join(joined)}"
    return text.translate(_letters).split()


def _unspaced(term: str) -> Iterable[str]:
    for run in _RUNS.finditer(term):
        letters = run[1]
        if letters is None:
            yield run[0]
            continue
        yield from letters
        yield from (letters[at : at + 2] for at in range(len(letters) - 1))


def stem(word: str) -> str:
    """A word of English without its ending; others mostly stay as they are."""
    if len(word) > MAX_WORD:
        return word[:MAX_WORD]
    if word in FORMS:
        return _tidy(FORMS[word])
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    word = _singular(word)
    if word in FORMS:
        return _tidy(FORMS[word])
    for ending in ("ing", "ed"):
        if word.endswith(ending):
            return _tidy(_bare(word, ending))
    return _tidy(word)


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "shes", "ches", "xes", "zes")):
        return word[:-2]
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        return word[:-1]
    return word


def _bare(word: str, ending: str) -> str:
    """Without `-ing` or `-ed`, where what is left is a word."""
    left = word[: -len(ending)]
    if len(left) < 3 or not any(vowel in left for vowel in "aeiouy"):
        return word
    if left[-1] == left[-2] and left[-1] not in "lsz":
        return left[:-1]
    return left


def _tidy(word: str) -> str:
    """`hope` and `hoping`, `study` and `studied` are one."""
    if len(word) > 3 and word[-1] == "e":
        return word[:-1]
    if len(word) > 3 and word[-1] == "i":
        return word[:-1] + "y"
    return word
