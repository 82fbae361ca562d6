"""The views in which a person decides: the review before sending, the question of an empty form, other answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import accumulate

from ...forms import MISSING
from ..form import FormModel
from ..prompts import CANCELLED, DECLINED, PersonAnswer
from .filling import STATE, continuation, state_of
from .keys import Key
from .look import Drawing, Line, Look
from .views import Keys, scrolled

__all__ = ["Confirming", "Leaving", "Reviewing", "refusals"]

Decide = Callable[[PersonAnswer], None]
HELD_FOR = 0.5  # seconds; a key that comes sooner was on its way to something else, and answers nothing
_TOO_SOON = "That came too soon to be an answer: press it once more."
_MOST_VALUE = 200  # characters; that a longer one is longer is said


class Reviewing:
    """All answers as they will be sent. Only an Enter that comes alone sends them: a paste may hold one, too, and a key
    that is held down brings many."""

    def __init__(self, model: FormModel, send: Callable[[], None], back: Callable[[int | None], None]) -> None:
        self._model = model
        self._send = send
        self._back = back
        self._first = 0
        self._rows = 1
        self._laid_out: tuple[Look, list[int], list[Line]] | None = None  # where answers begin, their lines
        self.told = ""  # what the last key could not do
        self.at = -1  # the field that would be changed; none until an arrow is pressed

    def keys(self) -> Keys:
        return (("Enter", "send"), ("Esc", "back"), ("Up Down", "choose"), ("c", "change"))

    def press(self, key: Key) -> bool:
        self.told = ""
        last = len(self._model.entries) - 1
        steps = {"up": -1, "backtab": -1, "down": 1, "tab": 1, "pageup": 1 - self._rows, "pagedown": self._rows - 1}
        if key.name in steps:
            self.at = max(0, min(last, self.at + steps[key.name]))
        elif key.name in ("home", "end"):
            self.at = 0 if key.name == "home" else last
        elif key.name == "enter":
            if key.alone:
                self._send()
            else:
                self.told = "Enter once more sends them."
        elif key.name in ("escape", "backspace", "left") or key.text == "b":
            self._back(None)
        elif key.text == "c":
            self._back(max(0, self.at))
        else:
            return False
        return True

    def draw(self, look: Look, rows: int) -> Drawing:
        if self._laid_out is None or self._laid_out[0] != look:
            answers = [self._answer(number, look) for number in range(len(self._model.entries))]
            places = list(accumulate(map(len, answers), initial=0))
            self._laid_out = look, places, [line for each in answers for line in each]
        _, places, lines = self._laid_out  # answers do not change while they are reviewed
        self._rows = max(2, rows - 2)
        chosen = range(places[self.at], places[self.at + 1]) if self.at >= 0 else range(0)
        if chosen:
            self._first = max(min(self._first, chosen.start - 1), chosen.stop - self._rows + 1)
            marked = [_marked(line, look, place == chosen.start) for place, line in enumerate(lines) if place in chosen]
            lines = [*lines[: chosen.start], *marked, *lines[chosen.stop :]]
        shown, self._first = scrolled(lines, self._first, max(1, rows - 2), look)
        title = look.cut("Your answers, not sent yet:")
        return Drawing([(("strong", title),), (), *shown][-rows:])

    def _answer(self, number: int, look: Look) -> list[Line]:
        entry = self._model.entries[number]
        state = "not shown" if entry.is_secret_named and entry.value is not MISSING else state_of(entry)
        text = look.encodable(entry.label)
        if entry.value is not MISSING and not entry.is_secret_named:
            text += f": {look.line(entry.text, _MOST_VALUE) or chr(34) * 2}"
        wrapped = look.wrapped(text, look.columns - STATE - 3)
        of_state = "good" if state == "filled in" else "state"
        first = (("", "  "), (of_state, state.ljust(STATE + 1)), ("", wrapped[0]))
        return [first, *((("", continuation(look)), ("", line)) for line in wrapped[1:])]


def _marked(line: Line, look: Look, is_first: bool) -> Line:
    """The line of an answer that would be changed."""
    begin = ("", look.sign("▸ ", "> ")) if is_first else line[0]
    return (begin, *line[1:-1], ("chosen", line[-1][1]))


class Confirming:
    """A form without fields is a question."""

    def __init__(self, decide: Decide, agree: Callable[[], None]) -> None:
        self._decide = decide
        self._agree = agree
        self._shown_at: float | None = None
        self.told = ""

    def keys(self) -> Keys:
        return (("y", "yes"), ("n", "no"))

    def press(self, key: Key) -> bool:
        self.told = ""
        letter = key.text.casefold() if key.name == "text" else ""
        if letter in ("y", "n") and not (key.alone and self._can_be_meant()):
            self.told = _TOO_SOON
        elif letter == "y":
            self._agree()
        elif letter == "n":
            self._decide(DECLINED)
        else:
            return False
        return True

    def _can_be_meant(self) -> bool:
        return self._shown_at is not None and time.monotonic() - self._shown_at >= HELD_FOR

    def draw(self, look: Look, rows: int) -> Drawing:
        if self._shown_at is None:
            self._shown_at = time.monotonic()
        lines: list[Line] = [
            (), (("strong", "Do you agree?"),), (),
            (("strong", "  y"), ("", "  yes")), (("strong", "  n"), ("", "  no")),
        ]  # fmt: skip
        return Drawing(lines[-rows:] if rows < len(lines) else lines)


def refusals(lasting: tuple[str, ...]) -> list[tuple[str, str, PersonAnswer]]:
    """What else a person can answer: key, words, answer."""
    found = [("d", "Decline this request", DECLINED)]
    if "session" in lasting:
        whole = PersonAnswer("decline", whole_server="session")
        found.append(("a", "Decline everything of this server, for this session", whole))
    if "always" in lasting:
        found.append(("w", "Decline everything of this server, always", PersonAnswer("decline", whole_server="always")))
    return [*found, ("c", "Cancel, without an answer", CANCELLED)]


class Leaving:
    """Answers that send nothing."""

    told = ""

    def __init__(self, lasting: tuple[str, ...], decide: Decide, back: Callable[[], None]) -> None:
        self._choices = refusals(lasting)
        self._decide = decide
        self._back = back
        self._at = 0

    def keys(self) -> Keys:
        return (("Enter", "take"), ("Esc", "back"), ("Up Down", "choose"))

    def press(self, key: Key) -> bool:
        if key.name in ("up", "down", "tab", "backtab"):
            step = 1 if key.name in ("down", "tab") else -1
            self._at = (self._at + step) % len(self._choices)
        elif key.name in ("escape", "backspace", "left", "c-x"):
            self._back()
        elif key.name == "enter" and key.alone:
            self._decide(self._choices[self._at][2])
        elif key.name == "text" and key.alone:
            for letter, _, answer in self._choices:
                if key.text.casefold() == letter:
                    self._decide(answer)
        else:
            return False
        return True

    def draw(self, look: Look, rows: int) -> Drawing:
        lines: list[Line] = [(("strong", "Another answer"),), ()] if rows > 8 else []
        end = 0
        for number, (letter, words, _) in enumerate(self._choices):
            wrapped = look.wrapped(look.encodable(words), look.columns - 6)
            style = "chosen" if number == self._at else ""
            lines.append((("strong", f"  {letter}  "), (style, wrapped[0])))
            lines += [(("", "     "), (style, line)) for line in wrapped[1:]]
            end = len(lines) if number == self._at else end
        return Drawing(lines[max(0, end - rows) :][:rows])
