"""A form while somebody fills it in: what each field holds, what is still wrong, the answer. Knows no user interface.

    model = FormModel(read_form(request.requested_schema))
    for entry in model.entries:
        ...                                # show entry.label, entry.description, entry.hint, entry.options
        problem = entry.set_text("typed")  # None, or the rest of a sentence: "needs 2 more characters (at least 3)"
    content = model.content()              # as it goes to the server
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from ..forms import MISSING, Field, Form, FormContentError, Option, read_form
from .form_texts import advice_of, hint_of, labels_of, shown, typed

__all__ = ["Entry", "FormModel", "State"]

State = Literal["value", "default", "omitted", "empty"]


class Entry:
    """One field and what it holds.

    Attributes:
        label: the title, else the name in words; no two fields have the same. On one line, harmless on a terminal.
        hint: what an answer has to be, in a few words; may be empty. Harmless on a terminal.
        state: "value" (given by the person), "default" (the server's, pre-filled), "omitted" (left out of the answer)
            or "empty" (an empty text or list, given by the person).
        value: what would be sent; MISSING when nothing would be.
        problem: why the last answer was not taken, as the rest of a sentence that begins with the label; None when it
            was. While there is one the form can't be accepted.
    """

    def __init__(self, field: Field, label: str) -> None:
        self.field = field
        self.label = label
        self.hint = hint_of(field)
        self.value: Any = MISSING
        self.state: State = "omitted"
        self.problem: str | None = None
        self.reset()

    def __repr__(self) -> str:
        return f"Entry({self.name[:60]!r}, {self.state!r})"

    @property
    def name(self) -> str:
        """The field's name, as the answer has it."""
        return self.field.name

    @property
    def description(self) -> str:
        """The server's explanation, its own text: to be escaped for a terminal or a page. May be empty."""
        return (self.field.description or "").strip()

    @property
    def required(self) -> bool:
        """Whether it has to be answered."""
        return self.field.required

    @property
    def is_secret_named(self) -> bool:
        """Whether it looks like a secret: warn, and mask what is typed."""
        return self.field.is_secret_named

    @property
    def options(self) -> tuple[Option, ...]:
        """What there is to choose from; empty when it is no choice."""
        return self.field.options

    @property
    def default(self) -> Any:
        """The server's default; MISSING when there is none."""
        return self.field.default

    @property
    def text(self) -> str:
        """The value for people: titles of options, yes or no, the text itself. "" when left out. To be escaped."""
        return "" if self.value is MISSING else shown(self.field, self.value)

    @property
    def typed(self) -> str:
        """The value as text to be edited further; in a list without options, items are quoted where `set_text` would
        read them otherwise. "" when left out. To be escaped."""
        return "" if self.value is MISSING else typed(self.field, self.value)

    @property
    def can_be_empty(self) -> bool:
        """Whether an empty text or list is an answer of its own, beside leaving the field out."""
        if self.field.kind not in ("string", "choices"):
            return False
        return self.field.check("" if self.field.kind == "string" else []) is None

    @property
    def changed(self) -> bool:
        """Whether something else would be sent than before anybody touched it."""
        if self.value is MISSING or self.default is MISSING:
            return self.value is not self.default
        return bool(self.value != self.default)

    def reset(self) -> None:
        """As it was before anybody touched it: the default, or left out."""
        self.value = self.default
        self.state = "omitted" if self.default is MISSING else "default"
        self.problem = None

    def omit(self) -> str | None:
        """Leaves it out of the answer. Returns the problem when it is required."""
        return self.set_value(MISSING)

    def discard(self) -> None:
        """Forgets an answer that was not taken: what was there before counts again."""
        self.problem = None

    def set_text(self, text: str) -> str | None:
        """Takes what a person typed (see `Field.parse`; `""` is the empty text or list). Returns None, or why it was
        not taken; then `problem` is set and the value is as before."""
        if self.field.kind == "choices" and text.strip() == '""':
            return self.set_value([])
        # Rules of length are left to set_value, which says how far the answer is from them.
        loose = replace(self.field, min_length=None, max_length=None, min_items=None, max_items=None)
        try:
            value = (self.field if self._is_per_item or not text.strip() else loose).parse(text)
        except ValueError as error:
            self.problem = str(error)
            return self.problem
        return self.set_value(value)

    @property
    def _is_per_item(self) -> bool:
        """Whether rules of length are about the items of a list, which `advice_of` does not count."""
        return self.field.kind == "choices" and (self.field.min_length, self.field.max_length) != (None, None)

    def set_value(self, value: Any) -> str | None:
        """Takes a value; MISSING and None leave the field out. Returns None, or why it was not taken, like
        `set_text`."""
        if value is None:
            value = MISSING
        self.problem = self._fault(value)
        if self.problem is None:
            self.value = value
            empty = isinstance(value, (str, list, tuple)) and not value
            self.state = "omitted" if value is MISSING else "empty" if empty else "value"
        return self.problem

    def check(self) -> str | None:
        """What is wrong with it as it is: an answer that was not taken, a default against the rules, a required field
        without one. None when it can be sent."""
        return self.problem or self._fault(self.value)

    def _fault(self, value: Any) -> str | None:
        if value is MISSING:
            return "needs an answer" if self.required else None
        rule = self.field.check(value)
        return None if rule is None else advice_of(self.field, value, rule)


class FormModel:
    """A form that is being filled in, in one thread at a time.

    Attributes:
        form: what the server asks for.
        entries: one for each field, in the server's order.
    """

    def __init__(self, form: Form | Mapping[str, Any]) -> None:
        """Raises FormSchemaError when a schema is given that can't be read."""
        self.form = form if isinstance(form, Form) else read_form(form)
        labels = labels_of(self.form.fields)
        self.entries = tuple(Entry(field, label) for field, label in zip(self.form.fields, labels, strict=True))
        self._by_name = {entry.name: entry for entry in self.entries}

    def __repr__(self) -> str:
        return f"FormModel({len(self.entries)} fields, {len(self.missing)} missing)"

    def __getitem__(self, name: str) -> Entry:
        return self._by_name[name]

    @property
    def missing(self) -> tuple[Entry, ...]:
        """Required fields that hold nothing."""
        return tuple(entry for entry in self.entries if entry.required and entry.value is MISSING)

    @property
    def changed(self) -> bool:
        """Whether a person has put anything into it that closing it would lose."""
        return any(entry.changed or entry.problem is not None for entry in self.entries)

    def problems(self) -> tuple[dict[str, str], list[str]]:
        """What keeps the form from being accepted: by the fields' names the rest of a sentence that begins with the
        label, and whole sentences about the form. Never a value."""
        found = {entry.name: problem for entry in self.entries if (problem := entry.check()) is not None}
        if found:
            return found, []
        try:
            self.form.validate(self._values())
        except FormContentError as error:
            rules = {name: self._rest_of(name, text) for name, text in error.errors.items() if name in self._by_name}
            others = [text for name, text in error.errors.items() if name not in self._by_name]
            return rules, [*others, *error.general]
        return {}, []

    def content(self) -> dict[str, Any]:
        """The answer as it goes to the server: fields left out are not in it, and nothing is null.

        Raises FormContentError, which names fields and rules, never values."""
        rules, general = self.problems()
        if rules or general:
            raise FormContentError({name: f"{self[name].label} {rule}" for name, rule in rules.items()}, general)
        return self.form.validate(self._values())

    def _values(self) -> dict[str, Any]:
        return {entry.name: entry.value for entry in self.entries if entry.value is not MISSING}

    def _rest_of(self, name: str, sentence: str) -> str:
        return sentence.removeprefix(f"{self.form.by_name[name].label} ")
