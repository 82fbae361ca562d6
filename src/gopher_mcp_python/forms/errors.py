"""What can be wrong with a form or with an answer to it, in words for people. No message holds an answer's value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

_SHOWN = 5  # faults in the text of an error; the attributes hold all


class FormSchemaError(ValueError):
    """The server's schema can't be read as a form. The text names the field and what is wrong, and is fit to be sent
    back to the server."""


class FormContentError(ValueError):
    """Answers that the form does not allow.

    Attributes:
        errors: for each field with a fault, by its name: a sentence that begins with the field's title or name
            ("Age must be 18 or more").
        general: sentences about the answers as a whole.
    """

    def __init__(self, errors: Mapping[str, str], general: Sequence[str] = (), *, before: str = "") -> None:
        """`before` is what the text begins with."""
        self.errors = dict(errors)
        self.general = tuple(general)
        said = [*self.errors.values(), *self.general]
        more = f"; and {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
        super().__init__(before + "; ".join(said[:_SHOWN]) + more)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuilt, (type(self), str(self), self.errors, self.general)


def _rebuilt(
    kind: type[FormContentError], text: str, errors: dict[str, str], general: tuple[str, ...]
) -> FormContentError:
    error = kind(errors, general)
    error.args = (text,)
    return error
