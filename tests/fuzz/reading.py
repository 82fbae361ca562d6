"""Inputs that are JSON."""

from __future__ import annotations

import json
from typing import Any

LARGEST = 100_000  # bytes


def document(data: bytes) -> dict[str, Any] | None:
    """The object that an input is; None for what is none."""
    try:
        found = json.loads(data) if len(data) <= LARGEST else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
