"""A form on its way to a page and back: fields as JSON, what a person typed as JSON, judged by the form model.

A page never makes values itself: JavaScript has no exact integers beyond 2^53, and the rules are here anyway. It sends
what was typed or which options were picked; see `fill`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..forms import MISSING, numbers
from ..forms.fields import Field
from ..handlers.form import Entry, FormModel
from ..handlers.form_texts import secret_warning
from .problems import Problem

__all__ = ["fields_json", "fill", "states_json"]


def fields_json(model: FormModel) -> list[dict[str, Any]]:
    """What a page has to know to show the fields, in order. Texts are the server's own: to be shown as text."""
    return [_field_json(entry) for entry in model.entries]


def _field_json(entry: Entry) -> dict[str, Any]:
    field = entry.field
    shown: dict[str, Any] = {
        "name": entry.name,
        "label": entry.label,
        "description": entry.description,
        "hint": entry.hint,
        "kind": field.kind,
        "format": field.format,
        "required": entry.required,
        "can_be_empty": entry.can_be_empty,
        "has_default": entry.default is not MISSING,
        "warning": secret_warning(field) if entry.is_secret_named else None,
        "options": [option.title for option in entry.options],
        "lines": _may_have_lines(field),
        "long": (field.max_length or 0) > 200 or len(entry.typed) > 80,
    }
    return shown | _state_json(entry)


def _may_have_lines(field: Field) -> bool:
    """Whether a text may be one of several lines."""
    return field.kind == "string" and not field.format and (field.max_length or 1000) > 80


def _state_json(entry: Entry) -> dict[str, Any]:
    """What a field holds: its state, as text to edit, and which options are picked."""
    held: dict[str, Any] = {"state": entry.state, "text": entry.typed, "picked": [], "problem": entry.problem}
    if entry.value is not MISSING:
        if entry.field.kind == "boolean":
            held["picked"] = [0 if entry.value is True else 1]
        elif entry.options:
            values = entry.value if entry.field.kind == "choices" else [entry.value]
            keys = [numbers.key(option.value) for option in entry.options]
            held["picked"] = [keys.index(numbers.key(value)) for value in values if numbers.key(value) in keys]
    return held


def states_json(model: FormModel) -> dict[str, Any]:
    """What is wrong with a draft, field by field; problems are the rest of a sentence that begins with the label."""
    rules, general = model.problems()
    fields = []
    for entry in model.entries:
        state = _state_json(entry)
        problem = rules.get(entry.name)
        fields.append(
            {"name": entry.name, **state, "problem": None if problem is None else f"{entry.label} {problem}."}
        )
    return {"fields": fields, "general": general, "is_complete": not rules and not general}


def fill(model: FormModel, draft: object) -> None:
    """Puts a draft into a model; what is no answer becomes the field's problem.

    Args:
        draft: a list of what was done with fields, each {"name": ..., and one of "text": "as typed", "picked": [0, 2]
            (numbers of options; of a boolean 0 is yes and 1 is no), "state": "omitted", "empty" or "default"}.

    Raises Problem (422) when it is no such list.
    """
    if not isinstance(draft, list) or len(draft) > len(model.entries):
        raise _malformed()
    seen: set[str] = set()
    for item in draft:
        if not isinstance(item, Mapping) or len(item) != 2 or not isinstance(item.get("name"), str):
            raise _malformed()
        name = item["name"]
        if name in seen or name not in model.form.by_name:
            raise _malformed()
        seen.add(name)
        _take(model[name], item)


def _take(entry: Entry, item: Mapping[str, Any]) -> None:
    if isinstance(item.get("text"), str):
        entry.set_text(item["text"])
    elif isinstance(item.get("picked"), list):
        entry.set_value(_picked(entry, item["picked"]))
    elif item.get("state") == "omitted":
        entry.omit()
    elif item.get("state") == "empty" and entry.field.kind in ("string", "choices"):
        entry.set_value("" if entry.field.kind == "string" else [])
    elif item.get("state") == "default":
        entry.reset()
    else:
        raise _malformed()


def _picked(entry: Entry, picked: list[Any]) -> Any:
    values = [True, False] if entry.field.kind == "boolean" else [option.value for option in entry.options]
    right = all(type(number) is int and 0 <= number < len(values) for number in picked)
    if not right or len(set(picked)) != len(picked) or (entry.field.kind != "choices" and len(picked) > 1):
        raise _malformed()
    if entry.field.kind == "choices":
        return [values[number] for number in picked]
    return values[picked[0]] if picked else MISSING


def _malformed() -> Problem:
    return Problem(422, "fields must be a list of {name, and one of text, picked, state} of this form's fields",
                   code="malformed")  # fmt: skip
