"""Text of servers, made harmless for a terminal: shown as characters, never obeyed as commands.

Escaped are all control characters (ESC, CR, BEL, C1, ...), all format characters (bidirectional overrides and isolates,
zero-width ones, tags), private and lone surrogate code points, and line and paragraph separators. Combining marks are
escaped where a letter has more than languages give it, or there is no letter: they would grow over other lines.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

__all__ = ["quoted_block", "safe_line", "safe_text"]

_ESCAPED_CATEGORIES = frozenset(("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"))
# Blank or invisible though their category does not say so: Hangul fillers, the Braille blank, the grapheme joiner.
_ESCAPED_CHARACTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f")
_MOST_MARKS = 4  # on one letter
_PLAIN_SPACES = frozenset("\t\u00a0\u2007\u202f\u3000")


def safe_text(text: str, *, limit: int = 4000) -> str:
    """`text` on as many lines as it has, with everything else that could drive a terminal written as an escape.

    Longer texts end with a note of how much was left out (`limit` in characters of the input)."""
    shown = "".join(_characters(text[:limit].replace("\r\n", "\n")))
    return shown if len(text) <= limit else f"{shown} ... ({len(text) - limit} more characters)"


def safe_line(text: str, *, limit: int = 200) -> str:
    """`safe_text` on one line."""
    return " ".join(safe_text(text, limit=limit).split())


def quoted_block(text: str, *, mark: str = "  | ", max_lines: int = 20) -> str:
    """A server's text with a mark before each line, so that none of its lines can pass for one of ours."""
    lines = safe_text(text).strip().split("\n")
    left_out = len(lines) - max_lines
    if left_out > 0:
        lines = [*lines[:max_lines], f"... ({left_out} more lines)"]
    return "\n".join(mark + line for line in lines)


def _characters(text: str) -> Iterator[str]:
    marks = _MOST_MARKS  # there is no letter yet
    for character in text:
        if unicodedata.category(character) in ("Mn", "Me"):
            marks += 1
            yield _shown(character) if marks <= _MOST_MARKS else _escaped(character)
        else:
            marks = _MOST_MARKS if character.isspace() else 0
            yield _shown(character)


def _shown(character: str) -> str:
    if " " <= character <= "~" or character == "\n":
        return character
    if character in _PLAIN_SPACES:
        return " "
    code = ord(character)
    hidden = character in _ESCAPED_CHARACTERS or 0xE0100 <= code <= 0xE01EF
    if not hidden and unicodedata.category(character) not in _ESCAPED_CATEGORIES:
        return character
    return _escaped(character)


def _escaped(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
