"""A form's field: what is asked, and whether a value is an answer to it."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from ..display import safe_line
from . import numbers
from .choices import Option
from .rules import Broken, Watch, cleaned
from .secrets import is_secret

if TYPE_CHECKING:
    from .pattern import Pattern

FieldKind = Literal["string", "number", "integer", "boolean", "choice", "choices"]


class Missing:
    """The type of MISSING: no answer, no default. There is one; it is false."""

    _only: Missing | None = None

    def __new__(cls) -> Missing:
        cls._only = cls._only or super().__new__(cls)
        return cls._only

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "MISSING"

    def __reduce__(self) -> str:
        return "MISSING"


MISSING = Missing()


@dataclass(repr=False, eq=False)
class Field:
    """One field of a form.

    Attributes:
        name: the key in the content, any text at all ("", "a.b", "__proto__").
        kind: "string", "number", "integer", "boolean", "choice" (one of `options`) or "choices" (any number of
            `options`; without options: texts, as many as wanted).
        title: the server's title, or None. `label` is what to show.
        description: the server's explanation, or None.
        required: whether the form can't be accepted without it.
        default: what to show as already filled in; MISSING when there is none. False, 0 and "" are defaults.
        nullable: whether the server would take null. MCP has no null in an answer: the field is left out instead.
        options: what can be chosen. A "boolean" has options only if one of its two values is not allowed.
        format: "email", "uri", "date", "date-time" or another name, or None.
        pattern: an ECMA-262 regular expression that is searched in the text (not anchored), or None.
        min_length, max_length: of a text, in characters (code points). These three hold for each item of "choices".
        minimum, maximum, exclusive_minimum, exclusive_maximum, multiple_of: of a number.
        min_items, max_items, unique_items: of "choices".
        write_only: whether the server says that it never shows the value again (a secret's mark in OpenAPI).
    """

    name: str
    kind: FieldKind
    title: str | None = None
    description: str | None = None
    required: bool = False
    default: Any = MISSING
    nullable: bool = False
    options: tuple[Option, ...] = ()
    format: str | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    multiple_of: float | None = None
    min_items: int | None = None
    max_items: int | None = None
    unique_items: bool = False
    write_only: bool = False
    compiled: Pattern | None = field(default=None)

    def __repr__(self) -> str:
        return f"Field({self.name[:60]!r}, {self.kind!r}{', required' if self.required else ''})"

    @cached_property
    def label(self) -> str:
        """The title, or the name in quotes: on one line, short and harmless for a terminal."""
        if self.title is not None and self.title.strip():
            return safe_line(self.title, limit=80)
        return label_of(self.name)

    @cached_property
    def is_secret_named(self) -> bool:
        """Whether the field looks like a secret's: by its name or title ("password", "apiKey", "Security code"), or by
        what the server says of it (`format: "password"`, `writeOnly`). A form must not ask for one (MCP specification
        2025-11-25, Elicitation), so who shows it warns and masks what is typed."""
        said = self.write_only or (self.format or "").casefold() == "password"
        return said or is_secret(self.name) or (self.title is not None and is_secret(self.title))

    @cached_property
    def values(self) -> dict[tuple[str, Any], Any]:
        """The options' values by what makes them equal (numbers.key)."""
        return {numbers.key(option.value): option.value for option in self.options}

    def check(self, value: Any) -> str | None:
        """None when `value` is an answer to this field, otherwise what it must be, as the rest of a sentence ("must be
        18 or more"). Never holds the value."""
        try:
            cleaned(self, value, Watch())
        except Broken as broken:
            return str(broken)
        return None

    def parse(self, text: str) -> Any:
        """What a person typed, as a value.

        Blanks around and in numbers don't count, nor those around a text whose format has none (an email address, a
        date ...). Whole numbers stay exact, and decimals that can't be sent exactly are refused. Booleans are yes, no,
        true, false, on, off, 1 and 0. An option is named by its number in the list (also "#2", which is always the
        number), its title or its value (in quotes: never the number), in any case of letters; several are separated by
        commas. An empty text is no answer; `""` is the empty text. "none" is no answer for everything but a text that
        can't be null.

        Returns the value, or MISSING for an optional field left empty.

        Raises ValueError, with a sentence for people, for what is no answer to this field.
        """
        from .parse import parse

        return parse(self, text)


class Place:
    """A field in an error: its name is written out only if there is one to write."""

    def __init__(self, name: str, before: str = "") -> None:
        self._name, self._before = name, before

    def __str__(self) -> str:
        return f"{self._before}the field {label_of(self._name)}"


def label_of(name: str) -> str:
    """A field's name in quotes: on one line, short and harmless for a terminal."""
    return json.dumps(safe_line(name, limit=80), ensure_ascii=False)
