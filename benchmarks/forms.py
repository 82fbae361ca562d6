"""A form of 1,000 fields: read and validated, against the library `jsonschema` on the same schema and content.

Ours also reads the fields for people, says what is wrong in their words, and has strict formats, ECMA-262 patterns and
a bound on its work. The library, which the MCP SDK brings, checks formats only where it is told to; here it is not.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from benchmarks._report import Compared, Target, main, median, note, rounded

FIELDS = 1000
TURNS = 15

TARGETS = (Target("form_ratio", "<=", 2.5, f"a form of {FIELDS} fields, read and validated, against jsonschema alone"),)
COMPARED = (
    Compared(f"form of {FIELDS:,} fields, read and validated", "form_ms", "jsonschema_ms", "form_ratio", "jsonschema"),
)
QUICK = {"TURNS": 3}


def form() -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema with each kind of field in turn, and content that fits it."""
    kinds: list[tuple[dict[str, Any], Any]] = [
        ({"type": "string", "title": "Name", "minLength": 1, "maxLength": 40}, "Ada"),
        ({"type": "string", "pattern": "^[A-Z]{2}[0-9]+$"}, "AB12"),
        ({"type": "string", "format": "email"}, "ada@example.com"),
        ({"type": "string", "format": "date"}, "2026-01-31"),
        ({"type": "integer", "minimum": 0, "maximum": 10}, 7),
        ({"type": "number", "exclusiveMinimum": 0}, 0.5),
        ({"type": "boolean", "default": False}, True),
        ({"type": "string", "enum": ["low", "high"]}, "low"),
        ({"type": "string", "oneOf": [{"const": "a", "title": "A"}, {"const": "b", "title": "B"}]}, "b"),
        ({"type": "array", "items": {"type": "string", "enum": ["x", "y", "z"]}, "minItems": 1}, ["x", "z"]),
    ]
    properties = {f"field {number}": kinds[number % len(kinds)][0] for number in range(FIELDS)}
    content = {f"field {number}": kinds[number % len(kinds)][1] for number in range(FIELDS)}
    return {"type": "object", "properties": properties, "required": list(properties)}, content


def _seconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def measure() -> dict[str, float | str | None]:
    """Milliseconds (medians) and the median of the turns' ratios."""
    from jsonschema import Draft202012Validator

    from gopher_mcp_python.forms import read_form

    schema, content = form()

    def bare() -> None:
        Draft202012Validator(schema).validate(content)

    note(f"{TURNS} turns of {FIELDS} fields")
    reading, validating, library = [], [], []
    for turn in range(TURNS + 1):
        begin = time.perf_counter()
        made = read_form(schema)
        read = time.perf_counter() - begin
        valid = _seconds(lambda made=made: made.validate(content))  # type: ignore[misc]
        raw = _seconds(bare)
        if turn:  # the first one imports and compiles
            reading.append(read)
            validating.append(valid)
            library.append(raw)
    whole = [one + other for one, other in zip(reading, validating, strict=True)]
    return {
        "read_ms": rounded(median(reading) * 1e3),
        "validate_ms": rounded(median(validating) * 1e3),
        "form_ms": rounded(median(whole) * 1e3),
        "jsonschema_ms": rounded(median(library) * 1e3),
        "form_ratio": rounded(median([one / raw for one, raw in zip(whole, library, strict=True)])),
    }


if __name__ == "__main__":
    raise SystemExit(main("benchmarks.forms"))
