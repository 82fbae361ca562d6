"""Who decides which tool to call: a model of a vendor, or nobody (`DirectProvider`).

Providers keep the native library's names. The vendors' SDKs are extras and are imported when an agent is made with one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from ..errors import AgentError

__all__ = ["MAX_ITERATIONS", "PROVIDERS", "Provider", "ProviderRun", "ToolAnswer", "ToolSpec", "make_provider"]

# Turns that a model gets in one run before the run is given up, tool calls included.
MAX_ITERATIONS = 10
PROVIDERS = ("AnthropicProvider", "OpenAIProvider", "DirectProvider")


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model sees it."""

    name: str
    description: str
    input_schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True, repr=False)
class ToolAnswer:
    """What a tool said. `is_error` is the server's own word for it."""

    text: str
    is_error: bool = False


class ProviderRun(Protocol):
    """What a provider has to work with: the query, the tools, and the means to call and to tell."""

    query: str

    @property
    def tools(self) -> list[ToolSpec]: ...

    def begin_iteration(self) -> None: ...

    def end_iteration(self, transition: str = "final") -> None:
        """Before its tools are called: "tool_call", or "final"."""

    def spend(self, prompt_tokens: int, completion_tokens: int) -> None: ...

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any],
        *,
        errors_as_text: bool = False,
        call_id: str | None = None,
    ) -> ToolAnswer: ...

    def tell(self, kind: str, **data: Any) -> None: ...


class Provider(Protocol):
    """Answers a query with the help of tools."""

    async def answer(self, run: ProviderRun) -> str: ...

    async def aclose(self) -> None: ...


def make_provider(name: str, model: str) -> Provider:
    """The provider of that name.

    Raises AgentError for an unknown name or a missing extra, ApiKeyError for a missing key.
    """
    if name == "DirectProvider":
        from .direct import DirectProvider

        return DirectProvider()
    if name == "AnthropicProvider":
        from .anthropic import AnthropicProvider

        return AnthropicProvider(model)
    if name == "OpenAIProvider":
        from .openai import OpenAIProvider

        return OpenAIProvider(model)
    raise AgentError(f"unknown provider {name[:60]!r}; the embedded engine knows {', '.join(PROVIDERS)}")
