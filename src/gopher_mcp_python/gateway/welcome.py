"""What the gateway says of itself in its handshake: what the servers behind it offer, together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["capabilities_of", "instructions_of"]

# What is passed on, and so may be offered. Declared for a server that could not be asked yet.
_PASSED: dict[str, dict[str, Any]] = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
    "completions": {},
    "logging": {},
}


def capabilities_of(welcomes: Mapping[str, Mapping[str, Any]], servers: int) -> dict[str, Any]:
    """The capabilities of all servers together.

    Args:
        welcomes: what each server that was reached said.
        servers: how many there are.
    """
    if len(welcomes) < servers:
        return {name: dict(flags) for name, flags in _PASSED.items()}
    found: dict[str, dict[str, Any]] = {}
    for welcome in welcomes.values():
        declared = welcome.get("capabilities")
        for name in _PASSED:
            flags = declared.get(name) if isinstance(declared, Mapping) else None
            if isinstance(flags, Mapping):
                known = found.setdefault(name, {})
                known.update({flag: value for flag, value in flags.items() if value or flag not in known})
    return found


def instructions_of(welcomes: Mapping[str, Mapping[str, Any]], *, prefixed: bool) -> str | None:
    """One server's as they came; several servers', each under its name."""
    told = {name: text for name, welcome in welcomes.items() if isinstance(text := welcome.get("instructions"), str)}
    if not prefixed:
        return next(iter(told.values()), None)
    return "\n\n".join(f"{name}:\n{text}" for name, text in told.items()) or None
