"""How texts look on a terminal: measured in columns, wrapped, cut, and in what the terminal's encoding can say."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from prompt_toolkit.utils import get_cwidth

from ...display import safe_line, safe_text

__all__ = ["Drawing", "Line", "Look", "columns_of"]

Line = tuple[tuple[str, str], ...]  # (style, text) from left to right

_MOST_TEXT = 4000  # characters of one text of a server


def columns_of(text: str) -> int:
    """How many columns a text takes. Letter by letter: whole texts would stay in prompt_toolkit's cache."""
    return sum(get_cwidth(letter) for letter in text)


@dataclass(frozen=True)
class Drawing:
    """Lines, and where the cursor stands among them (row, column); None: it is hidden."""

    lines: list[Line]
    cursor: tuple[int, int] | None = None


@dataclass(frozen=True)
class Look:
    """What fits on the terminal. `columns`: usable ones. `fancy`: whether there are more signs than those of ASCII."""

    columns: int
    encoding: str = "utf-8"
    fancy: bool = True

    @staticmethod
    def of_terminal(columns: int) -> Look:
        """For a terminal that is so wide. The last column stays free: some terminals wrap there."""
        encoding = (getattr(sys.stderr, "encoding", None) or "utf-8").lower().replace("_", "-")
        locale = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := os.environ.get(name))), "utf-8")
        says_so = any(word in locale.lower() for word in ("utf-8", "utf8"))
        has_signs = os.environ.get("TERM") != "linux"  # the console without windows has few
        return Look(max(1, columns - 1), encoding, encoding in ("utf-8", "utf8") and says_so and has_signs)

    def sign(self, fancy: str, plain: str) -> str:
        return fancy if self.fancy else plain

    def encodable(self, text: str) -> str:
        """In signs that the terminal has."""
        try:
            return text.encode(self.encoding, "backslashreplace").decode(self.encoding)
        except LookupError:
            return text.encode("ascii", "backslashreplace").decode("ascii")

    def line(self, text: str, limit: int = 200) -> str:
        """A text of a server or a person on one line, harmless."""
        return self.encodable(safe_line(text, limit=limit))

    def cut(self, text: str, columns: int | None = None) -> str:
        """As much as fits, with a mark where something is missing."""
        columns = self.columns if columns is None else max(0, columns)
        if columns_of(text) <= columns:
            return text
        more = self.sign("…", "~")
        return (_begin_of(text, columns - 1) + more) if columns else ""

    def padded(self, text: str, columns: int) -> str:
        """Exactly so wide."""
        text = self.cut(text, columns)
        return text + " " * (columns - columns_of(text))

    def wrapped(self, text: str, columns: int | None = None) -> list[str]:
        """One line of text on as many lines as it needs; words stay whole where they can."""
        columns = max(2, self.columns if columns is None else columns)
        lines = [""]
        for word in _words(text):
            if columns_of(lines[-1] + word.rstrip()) <= columns:
                lines[-1] += word
                continue
            if lines[-1].strip():
                lines.append("")
            # A letter has at most four marks: what is that long needs no counting.
            while len(word) > 6 * columns or columns_of(word.rstrip()) > columns:
                begin = _begin_of(word, columns)
                lines[-1], word = begin, word[len(begin) :]
                lines.append("")
            lines[-1] = word
        return [line.rstrip() for line in lines]

    def paragraphs(self, text: str, columns: int | None = None) -> list[str]:
        """A text of a server, harmless, on as many lines as it needs."""
        shown = self.encodable(safe_text(text.strip(), limit=_MOST_TEXT))
        return [line for paragraph in shown.split("\n") for line in self.wrapped(paragraph.rstrip(), columns)]

    def quoted(self, text: str, before: str = "") -> list[str]:
        """The same with a mark before each line, so that none of its lines can pass for one of ours."""
        mark = before + self.sign("│ ", "| ")
        return [mark + line for line in self.paragraphs(text, self.columns - len(mark))]


def _words(text: str) -> Iterator[str]:
    """Words, each with the blanks after it."""
    begin = 0
    for place in range(1, len(text)):
        if text[place - 1] == " " and text[place] != " ":
            yield text[begin:place]
            begin = place
    yield text[begin:]


def _begin_of(text: str, columns: int) -> str:
    """As many letters as fit, with what combines with them; at least one, so that there is progress."""
    used = 0
    for place, letter in enumerate(text):
        used += get_cwidth(letter)
        if used > columns:
            return text[: place or 1] if columns > 0 else ""
    return text
