"""A server's `requestedSchema`, read as a form.

The shapes are those of the MCP specification 2025-11-25 (Elicitation: PrimitiveSchemaDefinition and the enum schemas),
and what JSON Schema writers make of them: `$ref`, no `type`, "or null", `const`, OpenAPI's `nullable`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import limits
from .bounds import check_bounds
from .errors import FormSchemaError
from .fields import Field, label_of
from .flatten import JUDGED, Flattener, said
from .reading import FieldReader

if TYPE_CHECKING:
    from .judge import Judge

# Rules for the form as a whole that are the judge's.
_JUDGED = JUDGED | {"allOf", "anyOf", "oneOf", "enum", "const"}


class Form:
    """What a server asks for in one form.

    Attributes:
        fields: in the order in which the server named them.
        required: names of the fields that have to be answered.
        title, description: of the form as a whole, or None.
        closed: whether answers beside the fields are refused (`additionalProperties: false`).
    """

    def __init__(
        self,
        fields: tuple[Field, ...],
        *,
        title: str | None = None,
        description: str | None = None,
        closed: bool = False,
        judge: Judge | None = None,
    ) -> None:
        self.fields = fields
        self.required = frozenset(field.name for field in fields if field.required)
        self.title, self.description, self.closed = title, description, closed
        self.by_name = {field.name: field for field in fields}
        self._judge = judge

    def __repr__(self) -> str:
        return f"Form({len(self.fields)} fields, {len(self.required)} required)"

    def validate(self, content: Mapping[str, Any]) -> dict[str, Any]:
        """The answers as they go to the server: nothing added, no null (a field answered with None is left out), whole
        numbers of integer fields as int.

        Raises FormContentError, which names every field with a fault, and never its value.
        """
        from .validate import validate

        return validate(self, content, self._judge)


def read_form(schema: Mapping[str, Any]) -> Form:
    """Reads a `requestedSchema`. Ends within a second, whatever it is given (see limits.py); nothing is fetched.

    Raises FormSchemaError, which names the field and what is wrong.
    """
    if not isinstance(schema, Mapping):
        raise FormSchemaError("the form's schema is no object")
    schema = said(schema)
    properties = schema.get("properties")
    if isinstance(properties, dict) and len(properties) > limits.MAX_FIELDS:
        raise _too_many(len(properties))
    check_bounds(schema)
    flattener = Flattener(schema)
    root = _root(schema, flattener)
    properties = _properties(root)
    required = _required(root, properties)
    reader = FieldReader(flattener)
    read = (reader.read(name, inner, name in required) for name, inner in properties.items())
    fields = tuple(field for field in read if field is not None)
    extra = root.get("additionalProperties", True)
    judged = flattener.judged or not _JUDGED.isdisjoint(root) or not isinstance(extra, bool)
    return Form(
        fields,
        title=_text(root.get("title"), "title", limits.MAX_TITLE),
        description=_text(root.get("description"), "description", limits.MAX_DESCRIPTION),
        closed=extra is False,
        judge=_judge(schema) if judged else None,
    )


def _too_many(count: int) -> FormSchemaError:
    return FormSchemaError(f"the form has {count} fields; more than {limits.MAX_FIELDS} are not read")


def _root(schema: Mapping[str, Any], flattener: Flattener) -> Mapping[str, Any]:
    """The schema of the form as a whole; a $ref at the top is followed, rules for the whole are the judge's."""
    if "$ref" not in schema:
        root: Mapping[str, Any] = schema
    else:
        beside = {keyword: schema[keyword] for keyword in schema if keyword not in ("$id", "allOf", "anyOf", "oneOf")}
        flattener.judged |= not _JUDGED.isdisjoint(schema)
        root = flattener.flat(beside, "the form")
    kinds = root.get("type", "object")
    if kinds != "object" and (not isinstance(kinds, (list, tuple, frozenset)) or "object" not in kinds):
        raise FormSchemaError('the form\'s type is not "object"')
    return root


def _properties(root: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = root.get("properties", {})
    if not isinstance(properties, dict):
        raise FormSchemaError("the form's properties are no object")
    if len(properties) > limits.MAX_FIELDS:
        raise _too_many(len(properties))
    for name in properties:
        if len(name) > limits.MAX_NAME:
            raise FormSchemaError(f"a field has a name of more than {limits.MAX_NAME} characters")
    return properties


def _required(root: Mapping[str, Any], properties: Mapping[str, Any]) -> frozenset[str]:
    required = root.get("required", ())
    if not isinstance(required, (list, tuple)) or not all(isinstance(name, str) for name in required):
        raise FormSchemaError("the form's required is no list of names")
    for name in required:
        if name not in properties:
            raise FormSchemaError(f"the form requires the field {label_of(name)} but does not say what it is")
    return frozenset(required)


def _text(value: Any, keyword: str, most: int) -> str | None:
    if not isinstance(value, str):
        return None
    if len(value) > most:
        raise FormSchemaError(f"the form's {keyword} is longer than {most} characters")
    return value


def _judge(schema: Mapping[str, Any]) -> Judge:
    from .judge import Judge

    return Judge(schema)
