"""What the providers with a model share: their making and end, names of tools, the vendors' errors as ours."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, ClassVar

from ..errors import AgentError, ApiKeyError, ConnectionError, TimeoutError
from ..redaction import redact_text
from . import MAX_ITERATIONS, ProviderRun, ToolSpec

# What both vendors take as a tool's name; MCP servers may use dots, slashes and more.
_LONGEST_NAME = 64
# Anthropic's reasons to stop, in the words that the vendor's library has for both.
_REASONS = {"end_turn": "stop", "stop_sequence": "stop", "tool_use": "tool_calls", "max_tokens": "length"}
_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")


class ModelProvider:
    """A vendor's SDK and a key for it. Raises AgentError (missing extra) or ApiKeyError (missing key) when made."""

    sdk: ClassVar[str]  # the module, and the extra that brings it
    key_variable: ClassVar[str]

    def __init__(self, model: str) -> None:
        name = type(self).__name__
        try:
            self._sdk: Any = import_module(self.sdk)
        except ImportError:
            raise _missing_extra(name, self.sdk) from None
        self._model = model
        self._key = _api_key(self.key_variable, name)
        self._client: Any = None  # made on the loop that uses it

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


class Turn:
    """One turn of a model, told as the vendor's library tells it (docs/events.md)."""

    def __init__(self, run: ProviderRun, *, provider: str, model: str, messages: int, max_tokens: int = 0) -> None:
        self._run, self._model = run, model
        self._began = time.monotonic()
        run.tell("llm_request", provider=provider, model=model, messages=messages, max_tokens=max_tokens)

    def told(self, text: str, calls: Sequence[tuple[str, str, Any]], reason: object, usage: tuple[int, int]) -> None:
        """`calls`: id, name and arguments of each. `usage`: tokens of the prompt and of the completion."""
        message: dict[str, Any] = {"role": "assistant", "content": text}
        if calls:
            message["tool_calls"] = [{"id": one, "name": name, "arguments": given} for one, name, given in calls]
        prompt, completion = usage
        self._run.spend(prompt, completion)
        self._run.tell(
            "llm_response",
            model=self._model,
            assistant_message=message,
            finish_reason=_REASONS.get(str(reason), reason),
            duration_ms=round((time.monotonic() - self._began) * 1000),
            usage={"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion},
        )


class ToolNames:
    """Names of tools as the vendors take them: odd characters become `_`, long ones are cut, each is unique."""

    def __init__(self, tools: Sequence[ToolSpec]) -> None:
        self._vendor: dict[str, str] = {tool.name: tool.name for tool in tools if _fitting(tool.name) == tool.name}
        self._own: dict[str, str] = dict(self._vendor)
        for tool in tools:
            if tool.name not in self._vendor:
                name, number = _fitting(tool.name), 2
                while name in self._own:
                    suffix = f"_{number}"
                    name, number = _fitting(tool.name)[: _LONGEST_NAME - len(suffix)] + suffix, number + 1
                self._vendor[tool.name], self._own[name] = name, tool.name

    def vendor(self, own: str) -> str:
        return self._vendor[own]

    def own(self, vendor: str) -> str:
        """A name that a model made up stays as it is; calling it is an error that the model is told."""
        return self._own.get(vendor, vendor)


def _fitting(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name)[:_LONGEST_NAME]


@contextmanager
def reading_reply(vendor: str, variable: str) -> Iterator[None]:
    """What a vendor's SDK hands over is unchecked: where it is no reply of a model, that is said. Raises AgentError."""
    try:
        yield
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise AgentError(
            f"{vendor}: the answer is not what a model answers ({type(error).__name__}). Does {variable} lead to this "
            "vendor's API, or to something compatible?"
        ) from None


def _api_key(variable: str, provider: str) -> str:
    """The key from the environment. Raises ApiKeyError, naming the variable."""
    key = os.environ.get(variable, "").strip()
    if not key:
        raise ApiKeyError(
            f"{provider} needs an API key: set the environment variable {variable}, or use DirectProvider, which needs "
            "no model"
        )
    return key


def _missing_extra(provider: str, extra: str) -> AgentError:
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
