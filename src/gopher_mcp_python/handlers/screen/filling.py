"""The list of fields. Of many only those are drawn that can be seen; the one that is filled in is shown whole."""

from __future__ import annotations

from collections.abc import Callable

from ...display import safe_line
from ...forms import MISSING
from ..form import Entry, FormModel
from ..form_texts import secret_warning
from .editors import INDENT, Editor, editor_for
from .keys import Key
from .look import Drawing, Line, Look
from .views import Keys

__all__ = ["STATE", "Filling", "continuation", "state_of"]

STATE = 9  # columns of what a field's state is called
_MOST_LABEL_LINES, _MOST_ABOUT_LINES, _MOST_INPUT_LINES = 2, 4, 8
_NEXT = frozenset(("tab", "enter", "down", "c-n"))
_PREVIOUS = frozenset(("backtab", "up", "c-p"))


def state_of(entry: Entry) -> str:
    """What is with a field, in a word of ours that stands before the server's."""
    if entry.problem is not None:
        is_nothing = entry.value is MISSING and entry.problem.startswith("needs an answer")
        return "needed" if is_nothing else "not right"
    if entry.value is MISSING:
        return "needed" if entry.required else "left out"
    return {"default": "default", "empty": "empty", "value": "filled in"}[entry.state]


def continuation(look: Look) -> str:
    """What stands before the further lines of a server's text: none of them can pass for a line of ours."""
    return " " * (STATE + 1) + look.sign("│ ", "| ")


class Filling:
    """The fields of a form, one of which is filled in. `done` is called behind the last one."""

    def __init__(self, model: FormModel, done: Callable[[], None]) -> None:
        self._model = model
        self._done = done
        self._editors: dict[int, Editor] = {}
        self._first = 0  # the first field that can be seen
        self._page = 1
        self.at = 0
        self.told = ""  # what the last key could not do

    # ---- keys ------------------------------------------------------------------------------------------------------

    @property
    def entry(self) -> Entry:
        return self._model.entries[self.at]

    @property
    def editor(self) -> Editor:
        if self.at not in self._editors:
            self._editors[self.at] = editor_for(self.entry)
        return self._editors[self.at]

    def keys(self) -> Keys:
        special: Keys = () if self.entry.required else (("^O", "leave out"),)
        if self.entry.can_be_empty:
            special += (("^T", "empty"),)
        if self.entry.default is not MISSING:
            special += (("^R", "default"),)
        return (("Tab", "next"), ("F10", "review"), *self.editor.keys, *special)

    def press(self, key: Key) -> bool:
        self.told = ""
        if self.editor.press(key):
            return True
        steps = {"pagedown": self._page, "pageup": -self._page, "c-home": -self.at, "c-end": 1 << 20}
        if key.name in _NEXT:
            self._next()
        elif key.name in _PREVIOUS:
            self.go_to(self.at - 1)
        elif key.name in steps:
            self.go_to(self.at + steps[key.name])
        else:
            return self._change(key.name)
        return True

    def _next(self) -> None:
        if self.at + 1 < len(self._model.entries):
            self.go_to(self.at + 1)
        else:
            self._done()

    def go_to(self, number: int) -> None:
        self.editor.leave()
        self.at = max(0, min(number, len(self._model.entries) - 1))

    def _change(self, name: str) -> bool:
        entry = self.entry
        if name == "c-o":
            entry.omit()
        elif name == "c-r":
            entry.reset()
        elif name == "c-t" and entry.field.kind in ("string", "choices"):
            entry.set_value("" if entry.field.kind == "string" else [])
        elif name == "c-t":
            self.told = "Only texts and lists can be empty."
        else:
            return False
        self.editor.reload()
        return True

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def draw(self, look: Look, rows: int) -> Drawing:
        focused = self._focused(look, rows)
        self._first = max(min(self._first, self.at), self.at - rows)
        heights = [len(self._row(number, look)) for number in range(self._first, self.at)]
        while heights and sum(heights) + len(focused.lines) > rows:
            self._first += 1
            heights.pop(0)
        lines: list[Line] = []
        for number in range(self._first, len(self._model.entries)):
            if number == self.at:
                top = len(lines)
                lines += focused.lines
            else:
                lines += self._row(number, look)
            if len(lines) >= rows:
                break
        self._page = max(1, rows // 2)
        cursor = focused.cursor
        return Drawing(lines[:rows], cursor and (top + cursor[0], cursor[1]))

    def _row(self, number: int, look: Look) -> list[Line]:
        """A field that is not filled in now: its state, its label, what it holds, and what is wrong with that."""
        entry = self._model.entries[number]
        editor = self._editors.get(number)
        label = safe_line(entry.label, limit=80)
        value = self._value(entry, editor)
        room = look.columns - 2 - STATE - 1
        shown = look.encodable(label)
        if value:
            shown = f"{look.cut(shown, max(room // 2, room - 2 - len(value)))}: {look.line(value, 400)}"
        state = state_of(entry)
        lines: list[Line] = [
            (("", "  "), (_style(state), state.ljust(STATE + 1)), ("", look.cut(shown, room))),
        ]
        if entry.problem is not None:
            lines.append((("bad", look.cut(f"{' ' * (STATE + 3)}{_problem(look, entry)}")),))
        return lines

    def _value(self, entry: Entry, editor: Editor | None) -> str:
        if entry.is_secret_named:
            return "" if entry.value is MISSING else "not shown"
        if entry.problem is not None and editor is not None and editor.typed():
            return editor.typed()[:1000]
        if entry.value is MISSING:
            return ""
        return entry.text[:1000] if entry.text.strip() else '""'

    def _focused(self, look: Look, rows: int) -> Drawing:
        """The field that is filled in, as far as there is room: what is typed and what is wrong always have it."""
        entry = self.entry
        problem: list[Line] = []
        if entry.problem is not None:
            text = look.wrapped(_problem(look, entry), look.columns - INDENT)[:2]
            problem = [(("bad", " " * INDENT + line),) for line in text]
        head = self._head(look, entry)
        is_list = bool(entry.options) and entry.field.kind != "boolean"
        listed = min(len(entry.options) + 1, _MOST_INPUT_LINES) if is_list else 1
        kept = 1 + bool(entry.description) + 2 * entry.is_secret_named  # lines about the field
        listed = max(1, min(listed, rows - len(head) - len(problem) - kept))
        typed = self.editor.draw(look, listed)
        room = rows - len(head) - len(typed.lines) - len(problem)
        about = self._about(look, entry, min(room, _MOST_ABOUT_LINES))
        before = [*head, *about]
        cursor = typed.cursor
        place = cursor and (len(before) + cursor[0], cursor[1])
        return Drawing([*before, *typed.lines, *problem][:rows], place)

    def _head(self, look: Look, entry: Entry) -> list[Line]:
        label = look.wrapped(look.encodable(entry.label), look.columns - STATE - 3)[:_MOST_LABEL_LINES]
        state = state_of(entry)
        begin = (("focus", look.sign("▸ ", "> ")), (_style(state), state.ljust(STATE + 1)), ("focus", label[0]))
        return [begin, *((("focus", continuation(look) + line),) for line in label[1:])]

    def _about(self, look: Look, entry: Entry, room: int) -> list[Line]:
        """The warning, the hint and the server's explanation, the most important first when room is short."""
        if room < 1:
            return []
        inner = look.columns - INDENT
        warning = look.wrapped(_warning(entry), inner) if entry.is_secret_named else []
        hint = look.wrapped(look.encodable(entry.hint), inner) if entry.hint else []
        if entry.field.kind == "choices" and entry.options and isinstance(entry.value, (list, tuple)):
            hint = look.wrapped(f"{look.encodable(entry.hint)} ({len(entry.value)} chosen)", inner)
        described = bool(entry.description)
        kept = [(("warning", " " * INDENT + line),) for line in warning[:room]]
        kept += [(("", " " * INDENT + line),) for line in hint[: max(0, room - len(kept) - described)]]
        left = room - len(kept)
        quoted = look.quoted(entry.description, " " * INDENT) if entry.description and left > 0 else []
        if len(quoted) > left:
            quoted = [*quoted[: left - 1], " " * INDENT + look.sign("│ … F2 shows all", "| ... F2 shows all")]
        return [*((("", look.cut(line)),) for line in quoted), *kept]


def _style(state: str) -> str:
    return {"needed": "bad", "not right": "bad", "filled in": "good"}.get(state, "state")


def _problem(look: Look, entry: Entry) -> str:
    text = entry.problem or ""
    return f"{look.sign('✗', '!')} {look.encodable(safe_line(text))}"


def _warning(entry: Entry) -> str:
    return f"WARNING: {secret_warning(entry.field)} What you type is not shown."
