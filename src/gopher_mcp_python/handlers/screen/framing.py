"""What surrounds a view: who asks, what for, the warning that never goes away, and which keys do what."""

from __future__ import annotations

from ..form import Entry, FormModel
from ..form_texts import NO_SECRETS, what_is_asked
from .deciding import Leaving
from .filling import state_of
from .look import Drawing, Line, Look, columns_of
from .views import Keys, Pages, View

__all__ = ["Frame", "help_text"]

_ALWAYS: Keys = (("^X", "decline"), ("F1", "help"))
_WIDE = 50  # columns with which keys stand two apart
_ROOMY = 20  # lines of a terminal on which there is room for rules between the parts
_HELP = (
    ("Tab, Enter, Down", "next field; behind the last one: the review"),
    ("Shift-Tab, Up", "field before"),
    ("PgUp, PgDn", "several fields on; Ctrl-Home and Ctrl-End: first and last"),
    ("F10 or Ctrl-S", "review the answers; nothing is sent before Enter there"),
    ("Ctrl-O", "leave the field out of the answer"),
    ("Ctrl-T", "answer with an empty text or list, which is not the same"),
    ("Ctrl-R", "back to what stood there at first"),
    ("y, n, Space", "answer a question; in a list, Space chooses"),
    ("Up, Down, letters", "in a list: move, search; Backspace takes a letter back"),
    ("Ctrl-U, Ctrl-K, Ctrl-W", "delete to the begin, to the end, a word"),
    ("F2", "all that the server says about the form and this field"),
    ("Ctrl-X", "another answer: decline, cancel, decline everything of this server where that can be"),
    ("Esc Esc, Ctrl-D, Ctrl-C", "cancel"),
    ("Ctrl-L", "draw the screen again"),
)
_STATES = (
    ("needed", "it has to be answered"),
    ("left out", "it is not part of the answer"),
    ("default", "the server's own suggestion; it is sent unless you change it"),
    ("empty", "an empty text or list is sent"),
    ("filled in", "your answer"),
    ("not right", "what is there can't be sent"),
)


def help_text(has_fields: bool) -> list[tuple[str, str]]:
    """Lines for `Pages`."""
    if not has_fields:
        return [("", "y: yes, I agree. n: no, decline. F2: all that the server says. Ctrl-X: other answers."),
                ("", "Esc twice, Ctrl-D, Ctrl-C: cancel.")]  # fmt: skip
    keys = [("", f"{key}: {what}.") for key, what in _HELP]
    states = [("", f"{state}: {what}.") for state, what in _STATES]
    return [*keys, ("", ""), ("strong", "What stands before a field"), *states]


class Frame:
    """The parts around a view."""

    def __init__(self, asker: str, message: str, model: FormModel) -> None:
        self._asker = asker
        self._model = model
        self._quoted: tuple[Look, list[str]] | None = None  # what was last shown of the texts
        self._texts = [text for text in (message, model.form.title, model.form.description) if text and text.strip()]

    def all_texts(self, entry: Entry | None) -> list[tuple[str, str]]:
        """Everything that the server says, about the form and about a field; lines for `Pages`."""
        found = [("quote", text) for text in self._texts] or [("", "Nothing.")]
        if entry is not None:
            found += [("", ""), ("strong", "About this field")]
            found += [("quote", text) for text in (entry.label, entry.description) if text]
            found += [("", entry.hint)]
        return found

    def progress(self) -> str:
        states = [state_of(entry) for entry in self._model.entries]
        needed, wrong = states.count("needed"), states.count("not right")
        parts = [f"{needed} of {len(states)} still needed" if needed else "", f"{wrong} not right" if wrong else ""]
        return ", ".join(part for part in parts if part) or "F10 shows your answers before they are sent"

    def around(self, view: View, look: Look, rows: int, note: str, time_left: str) -> Drawing:
        most = 6 if rows >= 30 else max(1, rows // 8)
        texts = [] if isinstance(view, (Leaving, Pages)) else self._message(look, most)
        head, foot = self._head(look, rows, texts), self._foot(view, look, rows, note, time_left)
        room = rows - len(head) - len(foot)
        if room < 3:  # smaller than a form is begun on; the view is what counts
            head = head[:1]
            room = max(1, rows - len(head) - len(foot))
        inner = view.draw(look, room)
        filler: list[Line] = [()] * (room - len(inner.lines))
        place = inner.cursor and (len(head) + inner.cursor[0], inner.cursor[1])
        return Drawing([*head, *inner.lines, *filler, *foot][:rows], place)

    def _head(self, look: Look, rows: int, texts: list[Line]) -> list[Line]:
        count = len(self._model.entries)
        title = look.padded(f" {look.encodable(self._asker)} asks you to {what_is_asked(count)}", look.columns)
        lines: list[Line] = [(("title", title),), *texts]
        if count:
            lines += [(("warning", line),) for line in look.wrapped(NO_SECRETS)]
        return [*lines, _rule(look)] if rows >= _ROOMY else lines

    def _message(self, look: Look, most: int) -> list[Line]:
        if self._quoted is None or self._quoted[0] != look:
            self._quoted = look, [line for text in self._texts for line in look.quoted(text)]
        lines = self._quoted[1]
        if len(lines) > most:
            shown = lines[: most - 1] if most > 1 else []
            rest = f"{look.sign('│', '|')} {look.sign('…', '...')} F2 shows all {len(lines)} lines"
            if most == 1:
                first = look.cut(lines[0], look.columns - 12)
                lines = [f"{first} ({look.sign('…', '...')} F2)"]
            else:
                lines = [*shown, rest]
        return [(("", look.cut(line)),) for line in lines]

    def _foot(self, view: View, look: Look, rows: int, note: str, time_left: str) -> list[Line]:
        left = look.cut(note, look.columns - (columns_of(time_left) + 2 if time_left else 0))
        gap = " " * max(0, look.columns - columns_of(left) - columns_of(time_left))
        status: Line = (("strong", left), ("", f"{gap}{time_left}"))
        keys, always = view.keys(), _ALWAYS[1:] if isinstance(view, Leaving) else _ALWAYS
        lines: list[Line] = [status, _key_line(keys, always, look)]
        return [_rule(look), *lines] if rows >= _ROOMY else lines


def _rule(look: Look) -> Line:
    return (("", look.sign("─", "-") * look.columns),)


def _key_line(keys: Keys, always: Keys, look: Look) -> Line:
    """As many of the keys as fit; the last ones always do."""
    gap = "  " if look.columns >= _WIDE else " "
    room = look.columns - 1 - sum(_length(pair) + len(gap) for pair in always)
    shown = []
    for pair in keys:
        room -= _length(pair) + len(gap)
        if room < -len(gap):
            break
        shown.append(pair)
    line: list[tuple[str, str]] = [("bar", " ")]
    for key, what in (*shown, *always):
        line += [("title", key), ("bar", f" {what}{gap}")]
    used = sum(len(text) for _, text in line)
    if used > look.columns:
        line[-1] = ("bar", line[-1][1][: look.columns - used])
    return (*line, ("bar", " " * (look.columns - used)))


def _length(pair: tuple[str, str]) -> int:
    return len(pair[0]) + 1 + len(pair[1])
