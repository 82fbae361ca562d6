"""The prompt on the desktop, with Qt (extra `qt`): the dialog, handlers that show it, functions for one of your own.

`build_declined_result` and `resolve_elicitation` need no Qt; everything else imports PySide6 when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Union

from ..resolving import build_declined_result, resolve_elicitation

if TYPE_CHECKING:
    from .dialog import McpElicitationDialog
    from .handler import AsyncQtElicitationHandler, QtElicitationHandler
    from .prompt import QtPrompt, QtPromptUnavailable

__all__ = [
    "AsyncQtElicitationHandler",
    "ElicitValue",
    "McpElicitationDialog",
    "QtElicitationHandler",
    "QtPrompt",
    "QtPromptUnavailable",
    "build_declined_result",
    "resolve_elicitation",
]

#: What one answered field may carry.
ElicitValue = Union[str, int, float, bool, list[str], None]  # | is no operator of list[str] in 3.10

_MODULES = {
    "AsyncQtElicitationHandler": "handler",
    "McpElicitationDialog": "dialog",
    "QtElicitationHandler": "handler",
    "QtPrompt": "prompt",
    "QtPromptUnavailable": "prompt",
}


def __getattr__(name: str) -> Any:
    """Raises ImportError, which names the extra, where PySide6 can't be imported."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ...integrations.extras import needs_extra

    with needs_extra("qt", "PySide6"):
        import_module("PySide6.QtWidgets")
    return getattr(import_module(f"{__name__}.{module}"), name)
