"""One field under the cursor: what keys do to it, and what it looks like while it is filled in.

What an answer may be is the form model's business: each change goes to the entry at once, which says what is wrong."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from prompt_toolkit.buffer import Buffer

from ...display import safe_text
from ...forms import MISSING
from ..form import Entry
from .keys import Key
from .look import Drawing, Look, columns_of

__all__ = ["Editor", "TextEditor", "YesNoEditor", "editor_for"]

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_HIDDEN = 8  # signs that stand for a secret, however long it is
INDENT = 4


class Editor(Protocol):
    """What is typed into one field."""

    entry: Entry
    keys: tuple[tuple[str, str], ...]  # what only this kind of field knows: (key, what it does)

    def press(self, key: Key) -> bool:
        """Takes a key; False when it means nothing to this field."""
        ...

    def draw(self, look: Look, most: int) -> Drawing:
        """What is filled in, on at most so many lines."""
        ...

    def reload(self) -> None:
        """The entry was changed from elsewhere."""
        ...

    def leave(self) -> None:
        """Another field is filled in now."""
        ...

    def typed(self) -> str:
        """What it holds though the entry did not take it; "" for what is not shown."""
        ...


def editor_for(entry: Entry) -> Editor:
    from .choosing import ManyEditor, OneEditor

    if entry.field.kind == "boolean":
        return YesNoEditor(entry)
    if entry.field.kind == "choice":
        return OneEditor(entry)
    return ManyEditor(entry) if entry.options else TextEditor(entry)


class TextEditor:
    """A text, a number, a list of texts; of a secret nothing is shown."""

    keys: tuple[tuple[str, str], ...] = ()

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._buffer = Buffer(multiline=True)
        self.reload()

    def reload(self) -> None:
        text = "" if self.entry.is_secret_named else self.entry.typed
        self._buffer.reset()
        self._buffer.text = text
        self._buffer.cursor_position = len(text)

    def leave(self) -> None:
        """What was typed stays."""

    def typed(self) -> str:
        return "" if self.entry.is_secret_named else self._buffer.text

    def press(self, key: Key) -> bool:
        if key.name in ("text", "paste"):
            text = key.text.strip("\n") if key.name == "paste" else key.text
            text = _CONTROL.sub("", text if self.entry.field.kind == "string" else text.replace("\n", " "))
            self._change(lambda: self._buffer.insert_text(text))
        elif key.name in _EDITS:
            self._change(lambda: _EDITS[key.name](self._buffer))
        elif key.name in _MOVES:
            if not self.entry.is_secret_named:
                _MOVES[key.name](self._buffer)
        else:
            return False
        return True

    def _change(self, edit: Callable[[], object]) -> None:
        before = self._buffer.text
        had_a_secret = self.entry.is_secret_named and self.entry.value is not MISSING and not before
        edit()
        if self._buffer.text != before or had_a_secret:
            self.entry.set_text(self._buffer.text)

    def draw(self, look: Look, most: int) -> Drawing:
        if self.entry.is_secret_named:
            is_there = bool(self._buffer.text) or self.entry.value is not MISSING
            shown = look.sign("•", "*") * _HIDDEN if is_there else ""
            return _box(look, shown, len(shown))
        text, place = self._buffer.text, self._buffer.cursor_position
        # Only what is near the cursor is looked at: a pasted text may be long.
        begin = max(0, place - 2 * look.columns)
        before = _visible(look, text[begin:place])
        return _box(look, before + _visible(look, text[place : place + 2 * look.columns]), columns_of(before))


def _visible(look: Look, text: str) -> str:
    """Each sign of a text as it can be shown on one line."""
    return "".join(look.encodable(look.sign("↵", "\\n") if sign == "\n" else _sign(sign)) for sign in text)


def _sign(sign: str) -> str:
    if sign == "\t":
        return " "
    return safe_text(f"a{sign}")[1:]  # what combines with a letter needs one


def _box(look: Look, text: str, cursor: int) -> Drawing:
    """A line to type on, moved so far to the left that the cursor is on it."""
    prompt = look.sign("› ", "> ")
    width = max(4, look.columns - INDENT - 2)
    used = first = 0
    while cursor - used > width - 1:
        used += columns_of(text[first])
        first += 1
    while first < len(text) and not columns_of(text[first]):  # what belongs to a letter that is not shown
        first += 1
    shown, room = "", width
    for sign in text[first:]:
        room -= columns_of(sign)
        if room < 0:
            break
        shown += sign
    shown += " " * (width - columns_of(shown))
    return Drawing([(("", " " * INDENT), ("strong", prompt), ("text", shown))], (0, INDENT + 2 + cursor - used))


def _left_word(buffer: Buffer) -> None:
    buffer.cursor_position += buffer.document.find_previous_word_beginning() or 0


def _right_word(buffer: Buffer) -> None:
    buffer.cursor_position += buffer.document.find_next_word_ending() or 0


def _delete_word(buffer: Buffer) -> None:
    buffer.delete_before_cursor(-(buffer.document.find_start_of_previous_word(WORD=True) or -buffer.cursor_position))


def _to_begin(buffer: Buffer) -> None:
    buffer.cursor_position = 0


def _to_end(buffer: Buffer) -> None:
    buffer.cursor_position = len(buffer.text)


def _left(buffer: Buffer) -> None:
    buffer.cursor_position -= 1 if buffer.cursor_position else 0


def _right(buffer: Buffer) -> None:
    buffer.cursor_position += 1 if buffer.cursor_position < len(buffer.text) else 0


def _backspace(buffer: Buffer) -> None:
    buffer.delete_before_cursor()


def _delete(buffer: Buffer) -> None:
    buffer.delete()


def _to_start_deleted(buffer: Buffer) -> None:
    buffer.delete_before_cursor(buffer.cursor_position)


def _to_end_deleted(buffer: Buffer) -> None:
    buffer.delete(len(buffer.text) - buffer.cursor_position)


_MOVES = {
    "left": _left, "right": _right, "home": _to_begin, "end": _to_end, "c-a": _to_begin, "c-e": _to_end,
    "c-b": _left, "c-f": _right, "c-left": _left_word, "c-right": _right_word,
}  # fmt: skip
_EDITS = {
    "backspace": _backspace, "delete": _delete, "c-w": _delete_word, "c-u": _to_start_deleted, "c-k": _to_end_deleted,
}  # fmt: skip


class YesNoEditor:
    """Yes or no, in one key."""

    keys: tuple[tuple[str, str], ...] = (("y n", "answer"), ("Space", "change"))

    def __init__(self, entry: Entry) -> None:
        self.entry = entry

    def reload(self) -> None:
        """It holds nothing of its own."""

    def leave(self) -> None:
        """Nothing changes."""

    def typed(self) -> str:
        return ""

    def press(self, key: Key) -> bool:
        letter = key.text.casefold() if key.name == "text" else key.name
        if letter in ("y", "n"):
            self.entry.set_value(letter == "y")
        elif letter in (" ", "left", "right"):
            self.entry.set_value(self.entry.value is not True)
        else:
            return False
        return True

    def draw(self, look: Look, most: int) -> Drawing:
        value = self.entry.value
        marks = [look.sign("(•)", "(*)") if value is each else "( )" for each in (True, False)]
        styles = ["strong" if value is each else "" for each in (True, False)]
        answers = ((styles[0], f"{marks[0]} yes"), ("", "   "), (styles[1], f"{marks[1]} no"))
        return Drawing([(("", " " * INDENT), *answers)])
