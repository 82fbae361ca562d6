"""Canonical JSON: sorted keys, no spaces, so that equal requests have equal text."""

from __future__ import annotations

import json
from typing import Any


def canonical_json(value: Any) -> str:
    """The canonical text of a JSON value. Text that has no UTF-8 form (a lone surrogate) is escaped."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))
    return text
