"""Text of servers, made harmless for a terminal: shown as characters, never obeyed as commands.

Escaped are all control characters (ESC, CR, BEL, C1, ...), all format characters (bidirectional overrides and isolates,
zero-width ones, tags), private and lone surrogate code points, and line and paragraph separators. Combining marks are
escaped where a letter has more than languages give it, or there is no letter: they would grow over other lines.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

__all__ = ["quoted_block", "rows_of", "safe_line", "safe_text"]

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


def quoted_block(text: str, *, mark: str = "  | ", max_lines: int = 20, columns: int | None = None) -> str:
    """A server's text with a mark before each line, so that none of its lines can pass for one of ours.

    columns: of the terminal, which would continue a longer line below, without the mark; None: lines stay whole."""
    lines = safe_text(text).strip().split("\n")
    left_out = len(lines) - max_lines
    if left_out > 0:
        lines = [*lines[:max_lines], f"... ({left_out} more lines)"]
    if columns is not None:
        lines = [row for line in lines for row in rows_of(line, columns - len(mark) - 1)]
    return "\n".join(mark + line for line in lines)


def rows_of(text: str, columns: int) -> list[str]:
    """A line of harmless text on as many rows as it needs, none of them wider than so many columns (of at least 8).
    Words stay whole where they can."""
    columns = max(8, columns)
    rows, row, used = [], "", 0
    for word in re.findall(r" *[^ ]+", text):
        width = _width(word)
        if used + width > columns and used:
            rows.append(row)
            row, used, word = "", 0, word.lstrip(" ")
            width = _width(word)
        while width > columns:
            begin = _begin_of(word, columns)
            rows.append(begin)
            word = word[len(begin) :]
            width -= _width(begin)
        row, used = row + word, used + width
    return [*rows, row]


def _width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    """How many columns it takes on a terminal. Marks and the inner parts of a Hangul syllable take none there, and are
    few on one letter, so that counting them makes rows only shorter."""
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def _begin_of(text: str, columns: int) -> str:
    used = 0
    for place, character in enumerate(text):
        used += _columns(character)
        if used > columns:
            return text[:place]
    return text


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
