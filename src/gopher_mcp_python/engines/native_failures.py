"""What the native library's failures mean: its codes and texts as the package's typed errors. Pure functions."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from ..errors import AgentError, ApiKeyError, ConnectionError, TimeoutError
from ..redaction import redact_text

if TYPE_CHECKING:
    from ..ffi._bridge import Outcome

__all__ = ["completed_data", "create_failure", "run_failure"]

# gopher_orch_error_info_t.code after a failed create, and the bridge's own.
_CREATE_CONNECTION, _CREATE_TIMEOUT, _NO_FUNCTION = -20, -22, -1000
# "error": {"code": ...} of run_completed; seen with 0.1.39 and a scripted model.
_RUN_REFUSED_KEY, _RUN_TRANSPORT = "-100", "-99"
# Failures for which the library sends no run_completed event at all.
_SILENT_TIMEOUT = "Error: Agent execution timed out after"
_SILENT_BUSY = "Error: Agent is already running"

_KEY = re.compile(
    r"\b(401|403|unauthori[sz]ed|forbidden|(invalid|incorrect|missing|bad) [\w ]{0,12}api[ _-]?key|"
    r"[A-Z_]*API[_ ]KEY[\w ]* (is )?(not set|required)|authentication[_ ]error|permission[_ ]error)\b",
    re.IGNORECASE,
)
_TIME = re.compile(r"\btime[d]?[ _-]?out\b|\btimeout was reached\b", re.IGNORECASE)
_CONNECTION = re.compile(
    r"\bCURL error\b|could(n't| not) (connect|resolve)|connection (refused|reset|closed)|no route to host|"
    r"failed to (discover|connect)|\bSSL\b|session not found",
    re.IGNORECASE,
)


def create_failure(outcome: Outcome, server: str) -> AgentError:
    """The error of a create call that gave no agent."""
    told = ": ".join(redact_text(text) for text in (outcome.error_message, outcome.error_details) if text)
    if outcome.error_code == _NO_FUNCTION:
        return AgentError(
            f"{told or 'The native library lacks a function'}. Upgrade it (pip install --upgrade "
            "'gopher-mcp-python[native]') or use engine=\"embedded\""
        )
    text = f"Failed to create agent for {server}: {told or 'the native library gave no reason'}"
    if _KEY.search(told):
        return ApiKeyError(text)
    if outcome.error_code == _CREATE_TIMEOUT or _TIME.search(told):
        return TimeoutError(text)
    if outcome.error_code == _CREATE_CONNECTION:
        return ConnectionError(f"{text}. A server that refuses the token (401, 403) looks the same to the library")
    return ConnectionError(text) if _CONNECTION.search(told) else AgentError(text)


def completed_data(outcome: Outcome) -> dict[str, Any] | None:
    """The payload of the run_completed event; None when none came (an old library, or a failure that sends none)."""
    if outcome.completed_json is None:
        return None
    try:
        data = json.loads(outcome.completed_json)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}


def run_failure(outcome: Outcome, data: dict[str, Any] | None, *, has_events: bool) -> AgentError | None:
    """The error of a run, or None when its text is an answer.

    Told by the run_completed event, never by how a text begins, since a model may well answer "Error: ...". A library
    without events (before 0.1.38) leaves only its two fixed texts to know a failure by; everything else is an answer.
    """
    if not outcome.ok:
        return _typed(outcome.error_message or outcome.error_details or "the native library gave no answer", "")
    text = outcome.text or ""
    if data is not None:
        return _completed_failure(data, text)
    if text.startswith(_SILENT_TIMEOUT):
        return TimeoutError(f"Query execution failed: {text.removeprefix('Error: ')} (a limit of the native library)")
    if text.startswith(_SILENT_BUSY) or (has_events and text.startswith("Error: ")):
        return _typed(text.removeprefix("Error: "), "")
    return None


def _completed_failure(data: dict[str, Any], text: str) -> AgentError | None:
    if data.get("status") == "completed" and not data.get("error"):
        return None
    error = data.get("error")
    if isinstance(error, dict):
        return _typed(str(error.get("message") or text), str(error.get("code") or ""))
    return _typed(str(error or text.removeprefix("Error: ") or data.get("status")), "")


def _typed(told: str, code: str) -> AgentError:
    text = f"Query execution failed: {redact_text(told)}"
    if code == _RUN_REFUSED_KEY or _KEY.search(told):
        return ApiKeyError(f"{text} (the model's API key was refused)")
    if _TIME.search(told):
        return TimeoutError(text)
    if code == _RUN_TRANSPORT or _CONNECTION.search(told):
        return ConnectionError(text)
    return AgentError(text)
