"""The judge of forms that say more than a field can hold: `not`, `if`, `dependentRequired`, `minProperties` ...

MCP's forms know none of these keywords, but a schema with one is still JSON Schema, and the server will judge the
answer by it. So the schema is given, as it was sent, to the library `jsonschema`: with our patterns (ECMA-262), our
strict formats and our exact decimals, without any way to fetch, and with a limit on the work. Ordinary forms never come
here: their fields hold all there is.

What depends on which part of a schema is looked at first, or on matching names by patterns, is refused when it is read:
`patternProperties`, `$dynamicRef`, `$recursiveRef`, a `$id` or `$anchor` inside the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from . import limits, numbers
from .rules import Broken, Watch
from .vetting import vet

if TYPE_CHECKING:
    from .pattern import Pattern

_DRAFTS = (
    ("json-schema.org/draft-07/", "Draft7Validator"),
    ("json-schema.org/draft-06/", "Draft6Validator"),
    ("json-schema.org/draft-04/", "Draft4Validator"),
    ("json-schema.org/draft/2019-09/", "Draft201909Validator"),
)
_SHOWN = 50  # faults that are looked at
_SENTENCES = {
    "minProperties": "are too few: at least {} are needed",
    "maxProperties": "are too many: at most {} are allowed",
    "dependentRequired": "are not complete: one of them asks for another one",
    "required": "are not complete: one of them asks for another one",
}


_TOO_MUCH = f"can't be checked: the form's rules need more than {limits.MAX_CHECKS} steps"


class _TooMuch(Exception):
    """The limit on the work was passed."""


class Judge:
    """Judges the answers to one form by the whole of JSON Schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises FormSchemaError for what is refused, see above."""
        from referencing import Registry

        plain = vet(schema)
        self._left, self._watch = 0, Watch()
        self._patterns: dict[str, Pattern] = {}
        self._validator = self._kind(plain)(plain, registry=Registry())

    def faults(self, content: Mapping[str, Any]) -> list[tuple[str | None, str]]:
        """What is wrong: the field's name (None for all answers together), and the rest of a sentence."""
        self._left, self._watch = limits.MAX_CHECKS, Watch()
        found: list[tuple[str | None, str]] = []
        try:
            for error in self._validator.iter_errors(content):
                found.append(_told(error))
                if len(found) == _SHOWN:
                    break
        except (_TooMuch, RecursionError):
            return [(None, _TOO_MUCH)]
        except Broken as broken:
            return [(None, str(broken))]
        except Exception as error:  # a keyword that is no JSON Schema; the library finds out when it uses it
            return [(None, f"can't be checked: the form's rules are broken ({type(error).__name__})")]
        return found

    def _kind(self, schema: Mapping[str, Any]) -> Callable[..., Any]:
        """The library's validator for the schema's own version of JSON Schema, with our keywords, counting."""
        from jsonschema import validators

        named = schema.get("$schema")
        named = named if isinstance(named, str) else ""
        draft = next((name for part, name in _DRAFTS if part in named), "Draft202012Validator")
        base = getattr(validators, draft)
        keywords = {**base.VALIDATORS, "pattern": self._pattern, "format": _format, "multipleOf": _multiple_of}
        counted = {name: self._counted(function) for name, function in keywords.items()}
        kind: Callable[..., Any] = validators.extend(base, counted)
        return kind

    def _pattern(self, validator: Any, source: str, instance: Any, schema: Any) -> Iterator[Any]:
        from jsonschema import ValidationError

        from .pattern import compile_pattern

        if source not in self._patterns:
            self._patterns[source] = compile_pattern(source)
        if isinstance(instance, str) and not self._watch.search(self._patterns[source], instance):
            yield ValidationError("pattern")

    def _counted(self, function: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def count(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
            self._left -= 1
            if self._left < 0:
                raise _TooMuch
            yield from function(validator, value, instance, schema) or ()

        return count


def _told(error: Any) -> tuple[str | None, str]:
    """A fault in our words: the library's messages hold values."""
    name = error.absolute_path[0] if error.absolute_path else None
    keyword = str(error.validator)
    sentence = _SENTENCES.get(keyword)
    if name is None and sentence is not None:
        return None, sentence.format(error.validator_value)
    subject = "do" if name is None else "does"
    return name, f"{subject} not meet a rule of the form ({keyword})"


def _format(validator: Any, format: str, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    from .formats import check_format

    if isinstance(instance, str) and check_format(format, instance) is not None:
        yield ValidationError("format")


def _multiple_of(validator: Any, of: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema import ValidationError

    if isinstance(instance, (int, float)) and not isinstance(instance, bool):
        if not numbers.is_multiple(instance, numbers.exact(of)):
            yield ValidationError("multipleOf")
