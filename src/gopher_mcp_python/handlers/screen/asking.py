"""One form on one terminal: which view is shown, what surrounds it, and how it ends."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...display import safe_line
from .. import dialogue
from ..console import NO_ANSWER, End, ended, pause_for
from ..console_posix import readable
from ..form import FormModel
from ..prompts import CANCELLED, PersonAnswer
from ..watch import Watch
from .deciding import Confirming, Leaving, Reviewing
from .editors import TextEditor
from .filling import Filling
from .framing import Frame, help_text
from .keys import ESCAPE_AFTER, Key, KeyReader
from .look import Look
from .owning import OwnTerminal
from .views import Pages, View

if TYPE_CHECKING:
    from ...elicitation import GopherAgentElicitationRequest

__all__ = ["Asking"]

REPAINT_EVERY = 1.0  # seconds; log lines of the program's other threads do not cover the form for longer


class Asking:
    """Asks until there is an answer, or nobody wants one."""

    def __init__(
        self,
        terminal: OwnTerminal,
        descriptor: int,
        model: FormModel,
        request: GopherAgentElicitationRequest,
        asker: str,
        watch: Watch,
    ) -> None:
        self._terminal = terminal
        self._descriptor = descriptor
        self._model = model
        self._asker = asker
        self._watch = watch
        self._answer: PersonAnswer | None = None
        self._end: End | None = None
        self._note = ""
        self._escaped = False
        self._changed = True
        self._reader = KeyReader(terminal.encoding)
        self._read_at = 0.0
        self._painted_at = time.monotonic()
        self._frame = Frame(asker, request.message or "", model)
        self._filling = Filling(model, self._review)
        self._form: View = self._filling if model.entries else Confirming(self._decide, self._agree)
        self._view: View = self._form

    def run(self) -> tuple[PersonAnswer, str]:
        """The answer, and the line that says so afterwards. KeyboardInterrupt passes."""
        shown: object = None
        while self._answer is None and self._end is None:
            size, left = self._terminal.size(), dialogue.time_left(self._watch)
            is_old = time.monotonic() - self._painted_at >= REPAINT_EVERY
            if not self._terminal.stays() or self._changed or is_old or (size, left) != shown:
                if is_old:
                    self._terminal.repaint()
                    self._painted_at = time.monotonic()
                self._draw(size, left)
                if shown is None:
                    self._watch.on_shown()
                shown, self._changed = (size, left), False
            self._end = NO_ANSWER["lost"] if self._terminal.is_lost else ended(self._watch)
            if self._end is None:
                self._take_keys()
        if self._answer is not None:
            return self._answer, self._told(self._answer)
        why = self._end.why if self._end is not None else "eof"
        if why != "lost":
            self._terminal.forget_typed()  # it was an answer that nobody takes, and not the program's next input
        return CANCELLED, dialogue.ENDINGS["withdrawn" if why == "finished" else why].strip()

    # ---- keys ------------------------------------------------------------------------------------------------------

    def _take_keys(self) -> None:
        looked_at = [self._descriptor] if self._watch.wakes is None else [self._descriptor, self._watch.wakes]
        if self._descriptor in readable(looked_at, pause_for(self._watch, None)):
            try:
                data = os.read(self._descriptor, 1 << 16)
            except BlockingIOError:
                return  # somebody else of this process was faster
            except OSError:
                data = b""
            if not data:
                self._end = NO_ANSWER["lost"]  # in this mode that is no Ctrl-D
                return
            self._read_at = time.monotonic()
            self._press_all(self._reader.feed(data))
        elif self._reader.is_waiting and time.monotonic() - self._read_at >= ESCAPE_AFTER:
            self._press_all(self._reader.flush())

    def _press_all(self, keys: list[Key]) -> None:
        """What was typed after a key that opened another view was not meant for that."""
        view = self._view
        for key in self._together(keys):
            self._changed = True
            self._press(key)
            if self._answer is not None or (self._view is not view and isinstance(self._view, Reviewing)):
                break

    def _together(self, keys: list[Key]) -> Iterator[Key]:
        """Letters for a text at once: a paste that the terminal does not mark may be long."""
        letters: list[str] = []
        for key in keys:
            if key.name == "text" and self._view is self._filling and isinstance(self._filling.editor, TextEditor):
                letters.append(key.text)
                continue
            if letters:
                yield Key("text", "".join(letters), alone=False)
                letters = []
            yield key
        if letters:
            yield Key("text", "".join(letters), alone=False)

    def _press(self, key: Key) -> None:
        escaped, self._escaped, self._note = self._escaped, False, ""
        if key.name in ("c-d", "c-c"):
            self._decide(CANCELLED)
        elif key.name == "c-l":
            self._terminal.redraw()
        elif key.name == "escape" and escaped:
            self._decide(CANCELLED)
        elif (view := self._view).press(key) or self._pressed_everywhere(key):
            self._note = self._note or view.told
        elif key.name == "escape":
            self._escaped = True
            lost = "what you filled in is lost" if self._model.changed else "nothing is sent"
            self._note = f"Esc again cancels: {lost}."

    def _pressed_everywhere(self, key: Key) -> bool:
        if key.name in ("f10", "c-s") and self._view is self._filling:
            self._review()
        elif key.name == "c-x":
            self._view = Leaving(self._watch.lasting, self._decide, self._back_to(self._view))
        elif key.name == "f1" or key.text == "?":
            self._view = Pages("Help", help_text(bool(self._model.entries)), self._back_to(self._view))
        elif key.name == "f2":
            entry = self._filling.entry if self._model.entries else None
            self._view = Pages(f"{self._asker} says", self._frame.all_texts(entry), self._back_to(self._view))
        else:
            return False
        return True

    def _back_to(self, view: View) -> Callable[[], None]:
        return lambda: self._show(view)

    def _show(self, view: View) -> None:
        self._view = view

    def _show_form(self, number: int | None = None) -> None:
        if number is not None:
            self._filling.go_to(number)
        self._view = self._form

    # ---- deciding --------------------------------------------------------------------------------------------------

    def _decide(self, answer: PersonAnswer) -> None:
        self._answer = answer

    def _review(self) -> None:
        """Shows the answers, or what is still wrong. What was typed ahead is for neither."""
        self._terminal.forget_typed()
        rules, general = self._model.problems()
        if not rules and not general:
            self._view = Reviewing(self._model, self._send, self._show_form)
            return
        numbers = [number for number, entry in enumerate(self._model.entries) if entry.name in rules]
        for number in numbers:
            entry = self._model.entries[number]
            entry.problem = entry.check() or rules[entry.name]
        if numbers:
            self._filling.go_to(numbers[0])
            count = len(numbers)
            self._note = "1 field needs another answer." if count == 1 else f"{count} fields need another answer."
        else:
            self._note = safe_line(f"{general[0]}.")
        self._view = self._filling

    def _send(self) -> None:
        self._decide(PersonAnswer("accept", self._model.content()))

    def _agree(self) -> None:
        _, general = self._model.problems()
        if general:  # a rule that an answer without fields can't keep
            self._note = safe_line(f"{general[0]}. It can't be sent.")
        else:
            self._send()

    def _told(self, answer: PersonAnswer) -> str:
        if answer.action == "accept":
            count = len(answer.content or {})
            what = f"{count} {'field' if count == 1 else 'fields'}" if self._model.entries else "you agreed"
            return f"Sent to {self._asker}: {what}."
        if answer.action == "cancel":
            return f"Cancelled: nothing was sent to {self._asker}."
        told = f"Declined: nothing was sent to {self._asker}."
        if answer.whole_server is None:
            return told
        return f"{told} {dialogue.WHOLE_SERVER[answer.whole_server]}"

    # ---- drawing ---------------------------------------------------------------------------------------------------

    def _draw(self, size: tuple[int, int], time_left: str) -> None:
        look = Look.of_terminal(size[0])
        note = self._note or (self._frame.progress() if self._view is self._filling else "")
        self._terminal.show(self._frame.around(self._view, look, size[1], note, time_left.strip().rstrip(".")))
