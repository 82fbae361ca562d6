"""What the providers with a model share: keys, missing extras, the vendors' errors as ours."""

from __future__ import annotations

import os
from typing import Any

from ..errors import AgentError, ApiKeyError, ConnectionError, TimeoutError
from ..redaction import redact_text
from . import MAX_ITERATIONS


def api_key(variable: str, provider: str) -> str:
    """The key from the environment. Raises ApiKeyError, naming the variable."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ApiKeyError(
            f"{provider} needs an API key: set the environment variable {variable}, or use DirectProvider, which needs "
            "no model"
        )
    return key


def missing_extra(provider: str, extra: str) -> AgentError:
    return AgentError(
        f"{provider} on the embedded engine needs the vendor's SDK, which is not installed: "
        f'pip install "gopher-mcp-python[{extra}]"'
    )


def model_error(error: Exception, vendor: str, variable: str, key: str) -> AgentError:
    """A vendor's exception as one of ours. `anthropic` and `openai` name theirs alike; the key is never part of it."""
    status = getattr(error, "status_code", None)
    reason = redact_text(_reason(error).replace(key, "<redacted>"))[:500]
    if status in (401, 403):
        return ApiKeyError(f"{vendor} refused the API key (HTTP status {status}): check {variable}. {reason}")
    if isinstance(status, int):
        return AgentError(f"{vendor} answered with an error (HTTP status {status}): {reason}")
    kind = type(error).__name__
    if kind == "APITimeoutError":
        return TimeoutError(f"{vendor} did not answer in time")
    if kind == "APIConnectionError":
        cause = type(error.__cause__).__name__ if error.__cause__ is not None else kind
        return ConnectionError(f"{vendor} could not be reached ({cause}); check the network and any proxy settings")
    return AgentError(f"{vendor}: {kind}: {reason}")


def _reason(error: Exception) -> str:
    """The vendor's own message, without the wrapping that the SDK puts around it."""
    body: Any = getattr(error, "body", None)
    if isinstance(body, dict):
        inner = body.get("error", body)
        if isinstance(inner, dict) and isinstance(inner.get("message"), str):
            return str(inner["message"])
    return str(error)


def too_many_turns(provider: str) -> AgentError:
    return AgentError(
        f"{provider}: the model asked for tools in each of its {MAX_ITERATIONS} turns and gave no answer; run ended"
    )
