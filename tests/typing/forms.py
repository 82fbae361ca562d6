"""Forms where type checkers know what is taken; checked by `mypy --strict` and never run."""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import assert_type

from gopher_mcp_python.forms import MISSING, Field, Form, FormContentError, FormSchemaError, Option, read_form


def fill_in(schema: dict[str, Any]) -> dict[str, Any] | None:
    try:
        form = assert_type(read_form(schema), Form)
    except FormSchemaError:
        return None
    for field in form.fields:
        assert_type(field, Field)
        assert_type(field.kind, Literal["string", "number", "integer", "boolean", "choice", "choices"])
        assert_type(field.options, tuple[Option, ...])
        assert_type(field.check("x"), str | None)
        assert_type(field.label, str)
        if field.default is MISSING and field.is_secret_named:
            field.parse("text")
    try:
        return assert_type(form.validate({"a": 1}), dict[str, Any])
    except FormContentError as error:
        assert_type(error.errors, dict[str, str])
        assert_type(error.general, tuple[str, ...])
    form.validate([])  # type: ignore[arg-type]
    read_form("text")  # type: ignore[arg-type]
    return None
