"""The judge of forms that say more than a field can hold: `not`, `if`, `dependentRequired`, `minProperties` ...

MCP's forms know none of these keywords, but a schema with one is still JSON Schema, and the server will judge the
answer by it. So such a schema is judged as a whole, as it was sent, in the version of JSON Schema that it names
(2020-12 if none): with our patterns (ECMA-262), our strict formats and our exact decimals. Ordinary forms never come
here: their fields hold all there is.

The judge is our own. The library `jsonschema` was here before, and its work can't be bounded from outside: it looks for
`unevaluatedProperties` again and again, doubling with every `$ref`, it writes whole answers and schemas into messages
that nobody reads, and a `$schema` inside the schema makes it forget whatever keywords and counters it was given. Here
every schema, keyword and member that is looked at is counted (judging.py).

What depends on which part of a schema is looked at first, or on matching names by patterns, is refused when it is read:
`patternProperties`, `$dynamicRef`, `$recursiveRef`, a `$id` or `$anchor` inside the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import limits, numbers
from .fields import label_of
from .judging import Fault, Run, TooDeep, TooMuch
from .rules import Broken
from .vetting import Vetted

_NEWEST = 2020
_VERSIONS = (
    ("json-schema.org/draft-07/", 7),
    ("json-schema.org/draft-06/", 6),
    ("json-schema.org/draft-04/", 4),
    ("json-schema.org/draft/2019-09/", 2019),
)
_SENTENCES = {
    "minProperties": "are too few: at least {} are needed",
    "maxProperties": "are too many: at most {} are allowed",
}
_NAMED = 5  # fields in a sentence


class Judge:
    """Judges the answers to one form by the whole of JSON Schema. Nothing in it changes while it judges, so threads may
    share it, and it can be copied and pickled."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raises FormSchemaError for what is refused, see above."""
        self._vetted = Vetted(schema)
        named = schema.get("$schema")
        named = named if isinstance(named, str) else ""
        self._version = next((version for part, version in _VERSIONS if part in named), _NEWEST)

    def faults(self, content: Mapping[str, Any]) -> list[tuple[str | None, str]]:
        """What is wrong: the field's name (None for all answers together), and the rest of a sentence."""
        run = Run(self._vetted, self._version)
        try:
            run.fits(self._vetted.schema, dict(content), None)
        except TooMuch:
            return [(None, f"can't be checked: the form's rules need more than {limits.MAX_CHECKS} steps")]
        except (TooDeep, RecursionError):
            deep = f"more than {limits.MAX_NESTED} deep, or in a circle"
            return [(None, f"can't be checked: the form's rules refer to each other {deep}")]
        except Broken as broken:
            return [(None, str(broken))]
        return [_told(fault) for fault in run.found]


def _told(fault: Fault) -> tuple[str | None, str]:
    if fault.keyword == "required":
        return fault.name, "is required beside the other answers"
    if fault.name is not None:
        return fault.name, f"does not meet a rule of the form ({fault.keyword})"
    if fault.keyword in _SENTENCES:
        return None, _SENTENCES[fault.keyword].format(numbers.shown(fault.argument))
    return None, _about_fields(fault) or f"do not meet a rule of the form ({fault.keyword})"


def _about_fields(fault: Fault) -> str | None:
    """A rule that is only about which fields are answered, in words."""
    branches = [fault.argument] if fault.keyword == "not" else fault.argument
    if fault.keyword not in ("anyOf", "oneOf", "not") or len(branches) > _NAMED:
        return None
    asked = [_demanded(branch) for branch in branches]
    if not all(asked):
        return None
    named = [" with ".join(map(label_of, names)) for names in asked]
    if fault.keyword == "not":
        return f"must not hold {named[0]}" + (" together" if len(asked[0]) > 1 else "")
    return f"need {' or '.join(named)}" + (", and only one of them" if fault.keyword == "oneOf" else "")


def _demanded(branch: Any) -> list[str]:
    """The names that a schema requires, if that is all it says and they are few."""
    names = branch.get("required") if isinstance(branch, dict) and len(branch) == 1 else None
    return names if isinstance(names, list) and len(names) <= _NAMED else []
