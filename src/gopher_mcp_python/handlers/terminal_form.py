"""The default handler of forms, line by line: it works on every terminal, and drives none.

One field after another, then all answers once more; nothing is sent before the person has seen them together.
"""

from __future__ import annotations

import re
import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from . import dialogue, terminal_texts
from .console import Console, End
from .prompts import CANCELLED, DECLINED, PersonAnswer
from .terminal import ReadLine, Turn, asker_of, turn_at_terminal
from .watch import Watch

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest
    from .form import Entry, FormModel

__all__ = ["FormAnswer", "FormPrompt", "ask_on", "model_of"]

FormAnswer = tuple[str, "dict[str, Any] | None"]  # the action, and what an accepted form sends

_SEND = frozenset(("", "y", "yes", "ok", "send"))
_YES = frozenset(("y", "yes"))
_MOST_RETRIES = 20  # for one field; a person gives up sooner, a script must not go on for ever
_QUOTED_WORD = re.compile(r'"("*(?:back|skip|cancel|decline(?: all| always)?|none)"*)"', re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f]")
_REVIEW = 'Enter sends them, a number changes that field, "back", "cancel", "decline": '
_LONGEST = 1024 if sys.platform == "darwin" else 4095  # bytes of a line; a terminal drops what comes after them
_CONFIRM = 'Do you agree? (y/n, or "cancel"): '
_TOO_MANY = "Too many lines that are no answer: cancelled.\n"


class FormPrompt:
    """Asks one person, on this process's terminal, one form at a time. `read_line`, `turn`: see `UrlPrompt`."""

    def __init__(self, read_line: ReadLine | None = None, *, turn: Turn | None = None) -> None:
        self._turn = turn or (lambda watch: turn_at_terminal(watch, read_line))

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> FormAnswer:
        """The action and the content of `answer`."""
        answer = self.answer(request, watch)
        return answer.action, None if answer.content is None else dict(answer.content)

    def answer(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """The person's answer; "decline" without asking for what is no form. KeyboardInterrupt passes, for the caller
        to cancel."""
        model = model_of(request)
        if model is None:
            return DECLINED
        with self._turn(watch) as console:
            return CANCELLED if console is None else ask_on(console, model, request, watch)


def model_of(request: GopherAgentElicitationRequest) -> FormModel | None:
    """The form that a request asks to fill in; None when it can't be read."""
    from ..forms import FormSchemaError
    from .form import FormModel

    try:
        return FormModel(request.requested_schema if request.requested_schema is not None else {"type": "null"})
    except FormSchemaError:
        return None


def ask_on(console: Console, model: FormModel, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
    """One form on a console whose turn it is."""
    return _Filling(model, console, request, watch).run()


class _Ended(Exception):
    """The person, or something else, has ended it without an answer."""

    def __init__(self, action: str, whole_server: dialogue.Lasting | None = None) -> None:
        super().__init__()
        self.answer = PersonAnswer(action, whole_server=whole_server)


class _Filling:
    """One form on one console."""

    def __init__(
        self, model: FormModel, console: Console, request: GopherAgentElicitationRequest, watch: Watch
    ) -> None:
        self._model = model
        self._console = console
        self._asker = asker_of(request)
        self._message = request.message or ""
        self._watch = watch
        self._lines_left = _MOST_RETRIES * (len(model.entries) + 10)

    def run(self) -> PersonAnswer:
        can_answer, words = self._console.can_read, dialogue.lasting_words(self._watch)
        text = terminal_texts.introduction(self._asker, self._message, self._model, words, can_answer=can_answer)
        shown = self._console.write(text + dialogue.time_left(self._watch))
        self._watch.on_shown()
        if not can_answer:
            self._console.write(dialogue.nobody(self._console))
            return CANCELLED
        try:
            if not shown:
                raise _Ended("cancel")
            return PersonAnswer("accept", self._filled_in() if self._model.entries else self._confirmed())
        except _Ended as ended:
            return ended.answer

    # ---- the fields ------------------------------------------------------------------------------------------------

    def _filled_in(self) -> dict[str, Any]:
        number, count = 1, len(self._model.entries)
        while True:
            while number <= count:
                number += 1 if self._ask(number, can_go_back=number > 1) else -1
            self._show_review()
            content = self._reviewed()
            if content is not None:
                return content
            number = count  # "back"

    def _ask(self, number: int, *, can_go_back: bool) -> bool:
        """Asks for one field until it has an answer; False when the person goes back instead."""
        entry = self._model.entries[number - 1]
        listed = 0
        self._console.write(terminal_texts.heading(entry, number, len(self._model.entries)))
        self._console.write(terminal_texts.options(entry))
        for _ in range(_MOST_RETRIES):
            prompt = terminal_texts.prompt(entry, can_go_back=can_go_back)
            line = self._line(prompt, hidden=entry.is_secret_named)
            entry.discard()
            word = line.strip().casefold()
            if word == "back" and can_go_back:
                return False
            if word == "back":
                self._console.write("This is the first field.\n")
            elif word == "more" and len(entry.options) > terminal_texts.OPTIONS_AT_ONCE:
                listed = (listed + terminal_texts.OPTIONS_AT_ONCE) % _whole_lists(len(entry.options))
                self._console.write(terminal_texts.options(entry, listed))
            else:
                problem = _take(entry, line)
                if problem is None:
                    return True
                self._console.write(terminal_texts.problem(entry, problem))
        self._console.write(_TOO_MANY)
        raise _Ended("cancel")

    def _show_review(self) -> None:
        """Nobody can have answered it before: what was pasted along for the fields must not send them."""
        self._console.write(terminal_texts.review(self._model, self._asker))
        self._console.forget_typed()

    def _reviewed(self) -> dict[str, Any] | None:
        """What is sent when the person says so; None to go back to the last field."""
        while True:
            word = self._line(_REVIEW).strip().casefold()
            self._end_by(word)
            if word == "back":
                return None
            if word in _SEND:
                rules, general = self._model.problems()
                if not rules and not general:
                    return self._model.content()
                broken = [terminal_texts.problem(self._model[name], rule) for name, rule in rules.items()]
                self._console.write("".join([*broken, *(f"{text}.\n" for text in general)]))
            elif (number := _number(word, len(self._model.entries))) is not None:
                self._ask(number, can_go_back=True)
                self._show_review()
            else:
                self._console.forget_typed()  # an Enter that was pasted along is none either
                self._console.write(f"That is no answer. The fields are 1 to {len(self._model.entries)}.\n")

    def _confirmed(self) -> dict[str, Any]:
        """An empty form is a question that is answered with yes or no."""
        while True:
            word = self._line(_CONFIRM).strip().casefold()
            self._end_by(word)
            if word in _YES:
                break
            self._console.forget_typed()
            self._console.write('That is no answer. Type "y" or "n" and press Enter.\n')
        _, general = self._model.problems()
        if general:  # a rule that an answer without fields can't keep
            self._console.write("\n".join([*(f"{text}." for text in general), "It can't be sent: cancelled.", ""]))
            raise _Ended("cancel")
        return self._model.content()

    # ---- lines -----------------------------------------------------------------------------------------------------

    def _line(self, prompt: str, *, hidden: bool = False) -> str:
        """What was typed. Raises _Ended for the words that end a form, and when nothing can be typed any more."""
        self._lines_left -= 1
        if self._lines_left < 0:
            self._console.write(_TOO_MANY)
            raise _Ended("cancel")
        with self._console.hidden() if hidden else nullcontext():
            self._console.write(prompt)
            line = dialogue.next_line(self._console, self._watch, prompt)
        if isinstance(line, End):
            self._console.write(dialogue.ENDINGS["withdrawn" if line.why == "finished" else line.why])
            raise _Ended("cancel")
        word = line.strip().casefold()
        if word in ("cancel", "decline"):
            raise _Ended(word)
        if (lasting := dialogue.whole_server_of(word, self._watch)) is not None:
            raise _Ended("decline", lasting)
        return line

    def _end_by(self, word: str) -> None:
        """The shorter words for it, where no field could mean them."""
        if word in dialogue.CANCEL:
            raise _Ended("cancel")
        if word in dialogue.DECLINE:
            raise _Ended("decline")


def _take(entry: Entry, line: str) -> str | None:
    """Gives a line to a field; None, or why it was not taken."""
    word = line.strip()
    if not word:
        return entry.set_text("") if entry.state == "omitted" else entry.check()
    if word.casefold() == "skip" and not entry.required:
        return entry.omit()
    quoted = _QUOTED_WORD.fullmatch(word)
    if quoted is not None and entry.field.kind == "string":
        return entry.set_value(quoted[1])
    if len(line.encode("utf-8", "replace")) >= _LONGEST:
        return f"can't be longer than {_LONGEST - 1} bytes on a terminal: what comes after them is lost"
    if _CONTROL.search(line):
        return "can't take control characters (arrow keys do nothing here)"
    return entry.set_text(line)


def _number(word: str, most: int) -> int | None:
    digits = word.removeprefix("#")
    return int(digits) if re.fullmatch("[0-9]{1,6}", digits) and 1 <= int(digits) <= most else None


def _whole_lists(count: int) -> int:
    """How many options lists of that length hold, the last of which may be shorter."""
    return -(-count // terminal_texts.OPTIONS_AT_ONCE) * terminal_texts.OPTIONS_AT_ONCE
