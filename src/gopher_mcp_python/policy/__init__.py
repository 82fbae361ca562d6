"""A policy in front of whoever answers elicitations: what is answered at once, what is asked, what is remembered.

`ElicitationPolicy` is the door; docs/policy.md tells the rules. Whatever can't be judged is declined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazily import names_of

if TYPE_CHECKING:
    from .core import ElicitationPolicy
    from .decisions import PolicyDecision, PolicyStoreError, Remembered, RememberedResponse
    from .rules import PolicyRule

__all__ = [
    "ElicitationPolicy",
    "PolicyDecision",
    "PolicyRule",
    "PolicyStoreError",
    "Remembered",
    "RememberedResponse",
]

__getattr__, __dir__ = names_of(
    __name__,
    {
        "core": ("ElicitationPolicy",),
        "decisions": ("PolicyDecision", "PolicyStoreError", "Remembered", "RememberedResponse"),
        "rules": ("PolicyRule",),
    },
)
