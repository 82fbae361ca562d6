"""No model at all: the query names the tool. For scripts, smoke tests and the demo."""

from __future__ import annotations

import json
import re
from typing import Any

from ..errors import AgentError
from . import ProviderRun, ToolSpec

# Tool names are listed up to here when a query names none.
_MAX_LISTED = 40


class DirectProvider:
    """Calls the one tool that the query names and answers with its result.

    get mail profile, using get_gmail_users_get_profile
    create_event {"title": "Lunch", "minutes": 45}
    """

    async def answer(self, run: ProviderRun) -> str:
        """Raises AgentError when the query names no tool, or its arguments are no JSON object."""
        name, arguments = read_query(run.query, run.tools)
        run.begin_iteration()
        answer = await run.call_tool(name, arguments)
        run.end_iteration()
        return answer.text

    async def aclose(self) -> None:
        return None


def read_query(query: str, tools: list[ToolSpec]) -> tuple[str, dict[str, Any]]:
    """The tool's name and its arguments. The JSON part is not searched for names; the last name in the text wins when
    it stands after "using", else the first.

    Raises AgentError.
    """
    text, arguments = _split(query)
    found = _named(text, [tool.name for tool in tools])
    if found is None:
        names = sorted(tool.name for tool in tools)
        more = f", and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
        listed = ", ".join(names[:_MAX_LISTED]) + more if names else "none"
        raise AgentError(
            "DirectProvider has no model: it calls the tool that the query names, and this query names none. "
            f'Write for example: do it, using TOOL - or: TOOL {{"json": "arguments"}}. Tools of this agent: {listed}'
        )
    return found, arguments


def _split(query: str) -> tuple[str, dict[str, Any]]:
    start = query.find("{")
    if start < 0:
        return query, {}
    try:
        arguments, end = json.JSONDecoder().raw_decode(query, start)
    except ValueError as error:
        raise AgentError(f"the tool's arguments in the query are not valid JSON: {error}") from None
    if not isinstance(arguments, dict):  # pragma: no cover - a text that begins with a brace is an object
        raise AgentError("the tool's arguments in the query are not a JSON object")
    return f"{query[:start]} {query[end:]}", arguments


def _named(text: str, names: list[str]) -> str | None:
    """Whole words only, so that `get` is not found in `get_profile`; the longest where several fit at one place."""
    found = [
        (match.start(), -len(name), name)
        for name in names
        if name in text
        for match in re.finditer(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", text)
    ]
    if not found:
        return None
    after_using = [entry for entry in found if re.search(r"\busing\s+[`'\"]?$", text[: entry[0]])]
    return min(after_using or found)[2]
