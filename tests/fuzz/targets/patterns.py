"""Regular expressions of forms, and texts to search. There is an answer, the pattern is refused, or it takes too long.

Input: UTF-8 (lone surrogates are let through): the pattern, U+001E, the text.
"""

from __future__ import annotations

from typing import Any

from gopher_mcp_python.forms.pattern import PATTERN_STEPS, Budget, PatternError, PatternTimeout, compile_pattern

WORDS: tuple[Any, ...] = ()
LARGEST = 400
STEPS = 4_000  # few, so that many are tried


def one_input(data: bytes) -> None:
    source, _, text = data.decode("utf-8", "replace").partition("\x1e")
    if "\x1f" in source:  # halves of characters, which the encoding of inputs has not
        source, text = (one.replace("\x1f", "\ud83d").replace("\x1d", "\ude00") for one in (source, text))
    try:
        compiled = compile_pattern(source)
    except PatternError as refused:
        said = str(refused)
        assert 0 < len(said) < 500, said
        return
    assert compile_pattern(source) is compiled and str(len(source)) in repr(compiled)
    budget = Budget(STEPS)
    try:
        found = compiled.search(text[:300], budget)
    except PatternTimeout as late:
        said = str(late)
        assert budget.steps <= 0 and (len(text) < 20 or text not in said)
        return
    assert 0 <= budget.steps <= STEPS < PATTERN_STEPS
    assert compiled.search(text[:300], Budget(STEPS)) is found, "the same twice"
    check_relatives(source, text[:300], found)


def check_relatives(source: str, text: str, found: bool) -> None:
    """Patterns made of this one answer as they must."""
    for around, expected in ((f"(?:{source})", found), (f"(?:{source})|[]", found), (f"(?!(?:{source}))[]|^", True)):
        try:
            answer = compile_pattern(around).search(text, Budget(2 * STEPS))
        except (PatternError, PatternTimeout):
            continue
        assert answer is expected, (around, text)
