"""`pattern` of JSON Schema: regular expressions that mean what they mean in ECMA-262.

As Ajv reads them: with the u flag; and what the u flag's grammar refuses, without it (Annex B), so that
`\\d{3}\\-\\d{4}` works. A pattern is searched for, not anchored. As of ES2024: `(?i:a)` and two groups of one name
are errors.

This is a matcher of our own, as Python has none. `re` reads another language. The `regex` library, after translation,
still gave other answers than Node: a group keeps its text from one turn of a loop to the next (`^(?:(a)|b)*\\1$` fits
"aba"), a group can't be referred to from inside (`(a\\1)`), `(a{1000}){1000}` took 0.7 s to compile, and its time limit
depends on the machine's load. Here the bound is in steps, the same everywhere, and compiling takes time in proportion
to the pattern. `regex` is used for what it has and Python has not: the characters of `\\p{Script=Greek}`.

A search runs as Python code and so never keeps other threads from running; an event loop that calls it waits for it,
at most about PATTERN_SECONDS (three times that for texts of a hundred thousand different characters).
"""

from __future__ import annotations

import re
import threading
from collections import OrderedDict

from .ecma_errors import PatternError, PatternTimeout, PropertyUnknownHere
from .ecma_machine import search
from .ecma_parse import MAX_NESTING, parse
from .ecma_program import Program, build

__all__ = [
    "MAX_NESTING",
    "MAX_PATTERN",
    "PATTERN_SECONDS",
    "PATTERN_STEPS",
    "Budget",
    "Pattern",
    "PatternError",
    "PatternTimeout",
    "compile_pattern",
]

MAX_PATTERN = 10_000  # characters of a pattern
PATTERN_STEPS = 200_000  # of one search
PATTERN_SECONDS = 0.1  # what so many steps take, about: 0.07 to 0.12 of a 2-core server's processor
_KEPT = 256  # compiled patterns
_KEPT_CHARACTERS = 100_000  # of their texts together

_PAIR = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")


class Budget:
    """Steps that several searches share, so that a form of many slow patterns has a bound as a whole.

    Attributes:
        steps: what is left.
    """

    def __init__(self, steps: int) -> None:
        self.steps = steps


class Pattern:
    """A compiled pattern; may be used by several threads at once.

    Attributes:
        source: its text.
        unicode: whether it was read with the u flag; otherwise it sees UTF-16 code units, as JavaScript does.
    """

    def __init__(self, source: str, program: Program, *, unicode: bool) -> None:
        self.source = source
        self.unicode = unicode
        self._program = program

    def search(self, text: str, budget: Budget | None = None) -> bool:
        """Whether the pattern fits anywhere in the text.

        Args:
            budget: is charged with the steps taken, and limits them.

        Raises PatternTimeout after PATTERN_STEPS, or what the budget has left. The error does not hold the text.
        """
        allowed = PATTERN_STEPS if budget is None else max(0, min(PATTERN_STEPS, budget.steps))
        left = 0
        try:
            found, left = search(self._program, _as_read(text, self.unicode), allowed)
        finally:
            if budget is not None:
                budget.steps -= allowed - max(0, left)
        return found

    def __repr__(self) -> str:
        return f"<Pattern of {len(self.source)} characters>"


_cache: OrderedDict[str, Pattern] = OrderedDict()
_cache_lock = threading.Lock()


def compile_pattern(source: str) -> Pattern:
    """The pattern of this text. Compiled ones are kept, the latest few hundred.

    Raises PatternError: what is wrong with it, at which character (counted from 1).
    """
    with _cache_lock:
        if source in _cache:
            _cache.move_to_end(source)
            return _cache[source]
    pattern = _compiled(source)
    with _cache_lock:
        _cache[source] = pattern
        while len(_cache) > _KEPT or sum(map(len, _cache)) > _KEPT_CHARACTERS:
            _cache.popitem(last=False)
    return pattern


def _compiled(source: str) -> Pattern:
    if len(source) > MAX_PATTERN:
        raise PatternError(f"a pattern of {len(source)} characters; at most {MAX_PATTERN} are read")
    try:
        return _read(source, unicode=True)
    except PropertyUnknownHere:
        raise  # without the flag \p would be a mere p
    except PatternError as refused:
        try:
            return _read(source, unicode=False)
        except PatternError:
            raise refused from None


def _read(source: str, *, unicode: bool) -> Pattern:
    return Pattern(source, build(parse(_as_read(source, unicode), unicode=unicode)), unicode=unicode)


def _as_read(text: str, unicode: bool) -> str:
    """The text as code points (two surrogates that are a pair are one), or as UTF-16 code units."""
    if text.isascii():
        return text
    return _PAIR.sub(_one, text) if unicode else _ASTRAL.sub(_two, text)


def _one(pair: re.Match[str]) -> str:
    high, low = map(ord, pair[0])
    return chr(0x10000 + ((high - 0xD800) << 10) + low - 0xDC00)


def _two(found: re.Match[str]) -> str:
    code = ord(found[0]) - 0x10000
    return chr(0xD800 + (code >> 10)) + chr(0xDC00 + (code & 0x3FF))
