"""OpenAI's models, through the vendor's SDK (extra `openai`)."""

from __future__ import annotations

import json
from typing import Any

from . import MAX_ITERATIONS, ProviderRun, ToolSpec
from ._model import api_key, missing_extra, model_error, too_many_turns

_KEY = "OPENAI_API_KEY"


class OpenAIProvider:
    """Key from OPENAI_API_KEY. Raises AgentError (missing extra) or ApiKeyError (missing key) when made."""

    def __init__(self, model: str) -> None:
        try:
            import openai
        except ImportError:
            raise missing_extra("OpenAIProvider", "openai") from None
        self._sdk = openai
        self._model = model
        self._key = api_key(_KEY, "OpenAIProvider")
        self._client: Any = None

    async def answer(self, run: ProviderRun) -> str:
        """Raises ApiKeyError, ConnectionError, TimeoutError, AgentError."""
        messages: list[dict[str, Any]] = [{"role": "user", "content": run.query}]
        tools = [_tool(tool) for tool in run.tools]
        for _ in range(MAX_ITERATIONS):
            run.begin_iteration()
            message = await self._turn(run, messages, tools)
            if not message.tool_calls:
                run.end_iteration()
                return message.content or ""
            messages.append(message.model_dump(exclude_none=True))
            for call in message.tool_calls:
                messages.append(await _use(run, call))
            run.end_iteration()
        raise too_many_turns("OpenAIProvider")

    async def _turn(self, run: ProviderRun, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Any:
        if self._client is None:  # made on the loop that uses it
            self._client = self._sdk.AsyncOpenAI(api_key=self._key)
        run.tell("llm_request", model=self._model, messages=len(messages))
        given: dict[str, Any] = {"tools": tools} if tools else {}
        try:
            reply = await self._client.chat.completions.create(model=self._model, messages=messages, **given)
        except self._sdk.OpenAIError as error:
            raise model_error(error, "OpenAI", _KEY, self._key) from None
        if reply.usage is not None:
            run.tokens += reply.usage.total_tokens
        run.tell("llm_response", model=self._model, finish_reason=reply.choices[0].finish_reason)
        return reply.choices[0].message

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.close()


def _tool(tool: ToolSpec) -> dict[str, Any]:
    function = {"name": tool.name, "description": tool.description, "parameters": dict(tool.input_schema)}
    return {"type": "function", "function": function}


async def _use(run: ProviderRun, call: Any) -> dict[str, Any]:
    try:
        arguments = json.loads(call.function.arguments or "{}")
        text = None if isinstance(arguments, dict) else "Error: the arguments are not a JSON object"
    except ValueError as error:
        text = f"Error: the arguments are not valid JSON: {error}"
    if text is None:
        text = (await run.call_tool(call.function.name, arguments, errors_as_text=True)).text
    return {"role": "tool", "tool_call_id": call.id, "content": text}
