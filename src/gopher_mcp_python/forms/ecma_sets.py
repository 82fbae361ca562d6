"""Sets of characters: those of a class, of `\\d`, `\\w`, `\\s`, `.` and of `\\p{...}`."""

from __future__ import annotations

import threading
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from .ecma_errors import PatternTimeout, PropertyUnknownHere
from .ecma_names import library_name

_REMEMBERED = 500  # characters, for each set
_LAST = 0x10FFFF

Ranges = Iterable[tuple[int, int]]


class _Questions(threading.local):
    """How often a set may still be asked for a character that it does not remember, in this thread."""

    left: int | None = None


_questions = _Questions()


@contextmanager
def limited_questions(most: int) -> Iterator[None]:
    """Within it, sets that have to look up more than `most` characters raise PatternTimeout."""
    _questions.left = most
    try:
        yield
    finally:
        _questions.left = None


class Members(dict[str, bool]):
    """`members[character]`: whether it is in the set. A dict that remembers what was asked for, as that is fastest.

    Args:
        ranges: code points (first, last).
        others: sets whose members are members too.
        negated: all characters but those.
    """

    def __init__(self, ranges: Ranges = (), others: Iterable[Members] = (), *, negated: bool = False) -> None:
        super().__init__()
        self._starts, self._ends = _merged(ranges)
        self._others = tuple(others)
        self._negated = negated

    def __missing__(self, character: str) -> bool:
        if _questions.left is not None:
            _questions.left -= 1 + len(self._others) // 2
            if _questions.left < 0:
                raise PatternTimeout
        value = self._holds(character) != self._negated
        if len(self) >= _REMEMBERED:
            self.clear()
        self[character] = value
        return value

    def _holds(self, character: str) -> bool:
        code = ord(character)
        index = bisect_right(self._starts, code) - 1
        return (index >= 0 and code <= self._ends[index]) or any(other[character] for other in self._others)


class _Property(Members):
    """The characters of one Unicode property: those that a pattern of the `regex` library fits."""

    def __init__(self, fitting: Any, *, negated: bool) -> None:
        super().__init__(negated=negated)
        self._fits = fitting.match

    def _holds(self, character: str) -> bool:
        return self._fits(character) is not None


class _FoldedOtherwise(Members):
    """Changes_When_NFKC_Casefolded (UAX 44), which `regex` lacks: what NFKC_Casefold makes something else of."""

    def _holds(self, character: str) -> bool:
        folded = unicodedata.normalize("NFD", character)
        for _ in range(2):
            folded = unicodedata.normalize("NFKC", folded.casefold())
        ignorable = _property("Default_Ignorable_Code_Point", False)
        return "".join(one for one in folded if not ignorable[one]) != character


def property_members(name: str, value: str | None, *, negated: bool) -> Members | None:
    """The set of `\\p{name=value}` or `\\p{name}`, negated for `\\P`; None: there is no such property.

    Raises PropertyUnknownHere when ECMA-262 has it and the installed `regex` library has not.
    """
    called = library_name(name, value)
    return None if called is None else _property(called, negated)


@lru_cache(maxsize=200)
def _property(called: str, negated: bool) -> Members:
    if called == "Changes_When_NFKC_Casefolded":
        return _FoldedOtherwise(negated=negated)
    import regex

    try:
        return _Property(regex.compile(rf"\p{{{called}}}", regex.V0), negated=negated)
    except regex.error as error:
        known = f"the installed regex library does not know \\p{{{called}}}; a newer one may"
        raise PropertyUnknownHere(known) from error


def _merged(ranges: Ranges) -> tuple[list[int], list[int]]:
    """Starts and ends of the ranges, in order and without overlaps."""
    starts: list[int] = []
    ends: list[int] = []
    for first, last in sorted(ranges):
        if ends and first <= ends[-1] + 1:
            ends[-1] = max(ends[-1], last)
        else:
            starts.append(first)
            ends.append(last)
    return starts, ends


_DIGITS = ((0x30, 0x39),)
_WORD = (*_DIGITS, (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A))
# ECMA-262 WhiteSpace and LineTerminator: also U+FEFF and all of category Zs.
_SPACE = ((9, 13), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A), (0x2028, 0x2029),
          (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF))  # fmt: skip
_LINE_ENDS = ((10, 10), (13, 13), (0x2028, 0x2029))

CLASS_ESCAPES = {
    letter: Members(ranges, negated=letter.isupper())
    for low, ranges in (("d", _DIGITS), ("w", _WORD), ("s", _SPACE))
    for letter in (low, low.upper())
}
WORD = CLASS_ESCAPES["w"]
DOT = Members(_LINE_ENDS, negated=True)
