"""Answers, checked against their form and made ready to be sent."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import limits
from .bounds import is_unsendable
from .errors import FormContentError
from .fields import Field, label_of
from .rules import Broken, Watch, cleaned, cleaned_number, cleaned_text

if TYPE_CHECKING:
    from .judge import Judge
    from .schema import Form


def validate(form: Form, content: Mapping[str, Any], judge: Judge | None) -> dict[str, Any]:
    """See Form.validate."""
    if not isinstance(content, Mapping):
        raise FormContentError({}, ["The answers must be a mapping of field names to values"])
    if len(content) > limits.MAX_CONTENT:
        raise FormContentError({}, [f"There are more than {limits.MAX_CONTENT} answers"])
    watch = Watch()
    errors: dict[str, str] = {}
    ready: dict[str, Any] = {}
    for field in form.fields:
        value = content.get(field.name)
        if value is not None:
            _take(field, value, watch, ready, errors)
        elif field.required:
            errors[field.name] = f"{field.label} {_missing(field, content)}"
    if len(content) > len(form.fields) or not form.by_name.keys() >= content.keys():
        _take_extras(form, content, watch, ready, errors)
    if errors:
        raise FormContentError(errors)
    if judge is not None:
        faults = judge.faults(ready)
        if faults:
            raise FormContentError(*_placed(form, faults))
    return ready


def _take(field: Field, value: Any, watch: Watch, ready: dict[str, Any], errors: dict[str, str]) -> None:
    try:
        ready[field.name] = cleaned(field, value, watch)
    except Broken as broken:
        errors[field.name] = f"{field.label} {broken}"


def _missing(field: Field, content: Mapping[str, Any]) -> str:
    if field.nullable and field.name in content:
        return "needs an answer (null can't be sent in a form)"
    return "is required"


def _take_extras(
    form: Form, content: Mapping[str, Any], watch: Watch, ready: dict[str, Any], errors: dict[str, str]
) -> None:
    """Answers that no field asks for: allowed by JSON Schema unless the form is closed, if MCP can carry them."""
    for name, value in content.items():
        if not isinstance(name, str):
            raise FormContentError({}, [f"A field's name is no text but a {type(name).__name__}"])
        if name in form.by_name or value is None:
            continue
        if form.closed:
            errors[name] = f"{label_of(name)} is no field of this form"
        elif is_unsendable(name):
            errors[name] = f"{label_of(name)} is a name that can't be sent"
        else:
            _take_extra(name, value, watch, ready, errors)


def _take_extra(name: str, value: Any, watch: Watch, ready: dict[str, Any], errors: dict[str, str]) -> None:
    bare = Field(name, "choices" if isinstance(value, (list, tuple)) else "string")
    try:
        if isinstance(value, (int, float)):
            ready[name] = value if isinstance(value, bool) else cleaned_number(bare, value)
        elif bare.kind == "choices":
            ready[name] = cleaned(bare, value, watch)
        else:
            ready[name] = cleaned_text(bare, value, watch)
    except Broken as broken:
        errors[name] = f"{label_of(name)} {broken}"


def _placed(form: Form, faults: list[tuple[str | None, str]]) -> tuple[dict[str, str], list[str]]:
    """What the judge found, at its field where it has one."""
    errors: dict[str, str] = {}
    general: list[str] = []
    for name, rule in faults:
        if name is None:
            general.append(f"The answers together {rule}")
        else:
            label = form.by_name[name].label if name in form.by_name else label_of(name)
            errors.setdefault(name, f"{label} {rule}")
    return errors, general
