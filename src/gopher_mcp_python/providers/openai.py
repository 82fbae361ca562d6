"""OpenAI's models, through the vendor's SDK (extra `openai`)."""

from __future__ import annotations

import json
from typing import Any

from . import MAX_ITERATIONS, ProviderRun, ToolSpec
from ._model import ModelProvider, ToolNames, Turn, model_error, reading_reply, too_many_turns

_KEY, _URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"


class OpenAIProvider(ModelProvider):
    """Key from OPENAI_API_KEY. Raises AgentError (missing extra) or ApiKeyError (missing key) when made."""

    sdk, key_variable = "openai", _KEY

    async def answer(self, run: ProviderRun) -> str:
        """Raises ApiKeyError, ConnectionError, TimeoutError, AgentError."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": run.query}]
        names = ToolNames(run.tools)
        tools = [_tool(tool, names) for tool in run.tools]
        for _ in range(MAX_ITERATIONS):
            run.begin_iteration()
            message = await self._turn(run, messages, tools, names)
            if not message.tool_calls:
                run.end_iteration()
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            run.end_iteration("tool_call")
            for call in message.tool_calls:
                messages.append(await _use(run, call, names))
        raise too_many_turns("OpenAIProvider")

    async def _turn(
        self, run: ProviderRun, messages: list[dict[str, Any]], tools: list[dict[str, Any]], names: ToolNames
    ) -> Any:
        if self._client is None:
            self._client = self._sdk.AsyncOpenAI(api_key=self._key)
        turn = Turn(run, provider="openai", model=self._model, messages=len(messages))
        given: dict[str, Any] = {"tools": tools} if tools else {}
        with reading_reply("OpenAI", _URL):
            try:
                reply = await self._client.chat.completions.create(model=self._model, messages=messages, **given)
            except self._sdk.OpenAIError as error:
                raise model_error(error, "OpenAI", _KEY, self._key) from None
            message, reason = reply.choices[0].message, reply.choices[0].finish_reason
            if any(call.type != "function" for call in message.tool_calls or ()):
                raise TypeError("only functions were offered")
            calls = [
                (call.id, names.own(call.function.name), _told_arguments(call.function.arguments))
                for call in message.tool_calls or ()
            ]
            turn.told(message.content or "", calls, reason, _usage(reply.usage))
        return message


def _usage(usage: Any) -> tuple[int, int]:
    """Tokens of the prompt and of the rest; compatible services may give no numbers at all."""
    if usage is None:
        return 0, 0
    return usage.total_tokens - (usage.completion_tokens or 0), usage.completion_tokens or 0


def _told_arguments(text: str | None) -> Any:
    """A call's arguments as an event tells them: what is no JSON, as it is."""
    try:
        return json.loads(text or "{}")
    except ValueError:
        return text


def _tool(tool: ToolSpec, names: ToolNames) -> dict[str, Any]:
    function = {"name": names.vendor(tool.name), "description": tool.description, "parameters": dict(tool.input_schema)}
    return {"type": "function", "function": function}


async def _use(run: ProviderRun, call: Any, names: ToolNames) -> dict[str, Any]:
    try:
        arguments = json.loads(call.function.arguments or "{}")
        text = None if isinstance(arguments, dict) else "Error: the arguments are not a JSON object"
    except ValueError as error:
        text = f"Error: the arguments are not valid JSON: {error}"
    if text is None:
        name = names.own(call.function.name)
        text = (await run.call_tool(name, arguments, errors_as_text=True, call_id=call.id)).text
    return {"role": "tool", "tool_call_id": call.id, "content": text}
