"""The five choices of the conformance suite's scenario elicitation-sep1330-enums."""

from __future__ import annotations

from typing import Any

_TITLED = [{"const": f"value{n}", "title": f"{nth} Option"} for n, nth in enumerate(("First", "Second", "Third"), 1)]
_NAMES = ["option1", "option2", "option3"]

FIVE_CHOICES: dict[str, Any] = {
    "untitledSingle": {"type": "string", "enum": _NAMES},
    "titledSingle": {"type": "string", "oneOf": _TITLED},
    "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": _NAMES}},
    "titledMulti": {"type": "array", "items": {"anyOf": _TITLED}},
}
