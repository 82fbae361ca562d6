"""Anthropic's models, through the vendor's SDK (extra `anthropic`)."""

from __future__ import annotations

from typing import Any

from . import MAX_ITERATIONS, ProviderRun, ToolSpec
from ._model import ModelProvider, ToolNames, Turn, model_error, reading_reply, too_many_turns

_KEY, _URL = "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"
# The most that one turn may say; the vendor requires a limit.
_MAX_TOKENS = 4096


class AnthropicProvider(ModelProvider):
    """Key from ANTHROPIC_API_KEY. Raises AgentError (missing extra) or ApiKeyError (missing key) when made."""

    sdk, key_variable = "anthropic", _KEY

    async def answer(self, run: ProviderRun) -> str:
        """Raises ApiKeyError, ConnectionError, TimeoutError, AgentError."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": run.query}]
        names = ToolNames(run.tools)
        tools = [_tool(tool, names) for tool in run.tools]
        for _ in range(MAX_ITERATIONS):
            run.begin_iteration()
            reply = await self._turn(run, messages, tools, names)
            said = [block.model_dump(exclude_none=True) for block in reply.content]
            messages.append({"role": "assistant", "content": said})
            uses = [block for block in reply.content if block.type == "tool_use"]
            if not uses:
                run.end_iteration()
                return "".join(block.text for block in reply.content if block.type == "text")
            run.end_iteration("tool_call")
            messages.append({"role": "user", "content": [await _use(run, block, names) for block in uses]})
        raise too_many_turns("AnthropicProvider")

    async def _turn(
        self, run: ProviderRun, messages: list[dict[str, Any]], tools: list[dict[str, Any]], names: ToolNames
    ) -> Any:
        if self._client is None:
            self._client = self._sdk.AsyncAnthropic(api_key=self._key)
        turn = Turn(run, provider="anthropic", model=self._model, messages=len(messages), max_tokens=_MAX_TOKENS)
        given: dict[str, Any] = {"tools": tools} if tools else {}
        with reading_reply("Anthropic", _URL):
            try:
                reply = await self._client.messages.create(
                    model=self._model, max_tokens=_MAX_TOKENS, messages=messages, **given
                )
            except self._sdk.AnthropicError as error:
                raise model_error(error, "Anthropic", _KEY, self._key) from None
            if any(block.type == "tool_use" and not isinstance(block.input or {}, dict) for block in reply.content):
                raise TypeError("a tool's input is not an object")
            text = "".join(block.text for block in reply.content if block.type == "text")
            uses = [block for block in reply.content if block.type == "tool_use"]
            calls = [(block.id, names.own(block.name), block.input or {}) for block in uses]
            turn.told(text, calls, reply.stop_reason, (reply.usage.input_tokens, reply.usage.output_tokens))
        return reply


def _tool(tool: ToolSpec, names: ToolNames) -> dict[str, Any]:
    return {"name": names.vendor(tool.name), "description": tool.description, "input_schema": dict(tool.input_schema)}


async def _use(run: ProviderRun, block: Any, names: ToolNames) -> dict[str, Any]:
    answer = await run.call_tool(names.own(block.name), block.input or {}, errors_as_text=True, call_id=block.id)
    return {
        "type": "tool_result",
        "tool_use_id": block.id,
        "content": answer.text,
        **({"is_error": True} if answer.is_error else {}),
    }
