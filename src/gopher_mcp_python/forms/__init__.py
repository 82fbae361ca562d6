"""Forms: a server's `requestedSchema` in, fields to ask for and validated content out.

    form = read_form(request.requested_schema)
    for field in form.fields:
        ...                                    # ask for field.label, show field.description, field.options ...
    content = form.validate({"name": "Ada"})   # as it goes to the server

No error of this module holds an answer's value, so they may be shown and logged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .choices import Option
    from .errors import FormContentError, FormSchemaError
    from .fields import MISSING, Field
    from .schema import Form, read_form

__all__ = ["MISSING", "Field", "Form", "FormContentError", "FormSchemaError", "Option", "read_form"]

__getattr__, __dir__ = names_of(
    __name__,
    {
        "choices": ("Option",),
        "errors": ("FormContentError", "FormSchemaError"),
        "fields": ("MISSING", "Field"),
        "schema": ("Form", "read_form"),
    },
)
