"""What a form says about its fields: labels, hints, values for people, and what to do about a wrong answer.

Labels and hints are harmless on a terminal; `shown` gives the server's and the person's own text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

from ..display import safe_line
from ..forms import Field, numbers
from ..forms.fields import label_of

__all__ = ["NO_SECRETS", "advice_of", "hint_of", "labels_of", "secret_warning", "shown", "typed", "what_is_asked"]

NO_SECRETS = "Never give a password, a key or other credentials in a form."

_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_\- .][A-Za-z0-9]+)*\Z")
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_EXAMPLES = {
    "email": "an email address such as name@example.com",
    "uri": "an address such as https://example.com/page",
    "date": "a date such as 2026-01-31",
    "date-time": "a date and time such as 2026-01-31T09:30:00Z",
}


def labels_of(fields: Iterable[Field]) -> list[str]:
    """A label for each field: its title, else its name in words. Where two are the same, their names are told, too."""
    fields = list(fields)
    labels = [_label(field) for field in fields]
    seen: dict[str, int] = {}
    for label in labels:
        seen[label.casefold()] = seen.get(label.casefold(), 0) + 1
    return [
        label if seen[label.casefold()] == 1 or label == label_of(field.name) else f"{label} ({label_of(field.name)})"
        for field, label in zip(fields, labels, strict=True)
    ]


def _label(field: Field) -> str:
    if (field.title is not None and field.title.strip()) or not _IDENTIFIER.match(field.name):
        return field.label
    words = [word if word.isupper() and len(word) > 1 else word.lower() for word in _WORD.findall(field.name[:80])]
    text = " ".join(words)
    return text[:1].upper() + text[1:]


def hint_of(field: Field) -> str:
    """What an answer has to be, in a few words: "at least 3 characters", "1 to 10", "choose 1 to 2". May be empty."""
    if field.kind == "choices":
        return _choices_hint(field)
    if field.kind == "choice":
        return "choose one"
    if field.kind == "boolean":
        return f"only {shown(field, field.options[0].value)}" if len(field.options) == 1 else "yes or no"
    if field.kind == "string":
        return ", ".join(_text_hints(field))
    return ", ".join(_number_hints(field))


def _choices_hint(field: Field) -> str:
    least, most = field.min_items or 0, field.max_items
    what = "" if field.options else " texts, with commas between them"
    verb = "choose" if field.options else "give"
    if most is None:
        count = f"{numbers.shown(least)} or more" if least else "any number"
    else:
        count = _range(least, most)
    return f"{verb} {count}{' of' if not least and most is None and what else ''}{what}"


def _range(least: Any, most: Any) -> str:
    if least == most:
        return f"exactly {numbers.shown(most)}"
    return f"{numbers.shown(least)} to {numbers.shown(most)}" if least else f"at most {numbers.shown(most)}"


def _text_hints(field: Field) -> Iterator[str]:
    if field.format:
        example = _EXAMPLES.get(field.format)
        yield example or f"format: {safe_line(field.format, limit=40)}"
    least, most = field.min_length or 0, field.max_length
    if most is not None:
        yield f"{_range(least, most)} {'character' if most == 1 else 'characters'}"
    elif least > 1 or (least and not field.required):
        yield f"at least {numbers.shown(least)} {'character' if least == 1 else 'characters'}"
    if field.pattern:
        yield f'like the pattern "{safe_line(field.pattern, limit=80)}"'


def _number_hints(field: Field) -> Iterator[str]:
    yield "a whole number" if field.kind == "integer" else "a number"
    if field.minimum is not None and field.maximum is not None:
        yield f"{numbers.shown(field.minimum)} to {numbers.shown(field.maximum)}"
    elif field.minimum is not None:
        yield f"{numbers.shown(field.minimum)} or more"
    elif field.maximum is not None:
        yield f"{numbers.shown(field.maximum)} or less"
    if field.exclusive_minimum is not None:
        yield f"more than {numbers.shown(field.exclusive_minimum)}"
    if field.exclusive_maximum is not None:
        yield f"less than {numbers.shown(field.exclusive_maximum)}"
    if field.multiple_of is not None:
        yield f"a multiple of {numbers.shown(field.multiple_of)}"


def shown(field: Field, value: Any) -> str:
    """A value of a field for people: an option's title, yes or no, a number, the text itself."""
    if isinstance(value, (list, tuple)):
        return ", ".join(shown(field, item) for item in value)
    for option in field.options:
        if numbers.key(option.value) == numbers.key(value):
            return option.title
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else numbers.plain(value)


def typed(field: Field, value: Any) -> str:
    """A value as a person would type it; see `Entry.typed`."""
    if field.kind == "choices" and not field.options:
        return ", ".join(_quoted(item) if re.search(r'[,"\\]|^\s|\s$|^$', item) else item for item in value)
    return shown(field, value)


def _quoted(item: str) -> str:
    return '"' + re.sub(r'(["\\])', r"\\\1", item) + '"'


def what_is_asked(count: int) -> str:
    """What a form of so many fields asks a person to do: "... asks you to fill in 3 fields"."""
    return f"fill in {count} {'field' if count == 1 else 'fields'}" if count else "confirm this"


def secret_warning(field: Field) -> str:
    """What to tell about a field that looks like a secret."""
    advice = "decline" if field.required else "leave it out"
    return f"this looks like a secret, which a form must not ask for. If it is one, {advice}."


def advice_of(field: Field, value: Any, rule: str) -> str:
    """`rule`, or better: how far a value of the right kind is from it. How long a secret is stays untold."""
    if field.is_secret_named:
        return rule
    if field.kind == "choices" and isinstance(value, list):
        return _how_many(len(value), field.min_items, field.max_items, hint_of(field)) or rule
    if field.kind == "string" and isinstance(value, str):
        return _how_many(len(value), field.min_length, field.max_length, "") or rule
    return rule


def _how_many(count: int, least: float | None, most: float | None, of_items: str) -> str | None:
    """How far a count is from what it has to be, in items of a list or in characters."""
    if least is not None and count < least:
        missing = numbers.shown(least - count)
        if of_items:
            return f"needs {missing} more: {of_items}"
        return f"needs {_characters(missing, 'more ')} (at least {numbers.shown(least)})"
    if most is not None and count > most:
        over = numbers.shown(count - most)
        if of_items:
            return f"has {over} too many: {of_items}"
        return f"has {_characters(over)} too many (at most {numbers.shown(most)})"
    return None


def _characters(count: str, word: str = "") -> str:
    return f"{count} {word}{'character' if count == '1' else 'characters'}"
