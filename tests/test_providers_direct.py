"""DirectProvider: the query names the tool."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.providers import PROVIDERS, ToolSpec, make_provider
from gopher_mcp_python.providers.direct import read_query

TOOLS = [
    ToolSpec(name, "", {"type": "object"})
    for name in ("get_gmail_users_get_profile", "get", "get_profile", "files.read", "delete-all", "plain")
]


@pytest.mark.parametrize(
    ("query", "name", "arguments"),
    [
        ("get mail profile, using get_gmail_users_get_profile", "get_gmail_users_get_profile", {}),
        ("using plain, get something", "plain", {}),
        ("get", "get", {}),
        ("please run get_profile", "get_profile", {}),
        ("run `plain` now", "plain", {}),
        ("use files.read", "files.read", {}),
        ("delete-all!", "delete-all", {}),
        ('plain {"text": "using get", "n": {"a": [1]}}', "plain", {"text": "using get", "n": {"a": [1]}}),
        ('do {"text": "x"} using plain', "plain", {"text": "x"}),
        ("plain {}", "plain", {}),
    ],
)
def test_query_names_the_tool(query: str, name: str, arguments: dict[str, Any]) -> None:
    assert read_query(query, TOOLS) == (name, arguments)


@pytest.mark.parametrize("query", ["what is the weather?", "plainly", "my_plain", '{"text": "plain"}', ""])
def test_query_without_a_tool_lists_them(query: str) -> None:
    with pytest.raises(AgentError, match=r"names none.*delete-all, files\.read, get, get_gmail"):
        read_query(query, TOOLS)


def test_long_lists_are_cut() -> None:
    with pytest.raises(AgentError, match=r"and 60 more") as caught:
        read_query("hello", [ToolSpec(f"tool_{n:03}", "", {}) for n in range(100)])
    assert len(str(caught.value)) < 1500


def test_agent_without_tools() -> None:
    with pytest.raises(AgentError, match="Tools of this agent: none"):
        read_query("plain", [])


@pytest.mark.parametrize("query", ['plain {"text": }', "plain {", "plain {'a': 1}"])
def test_broken_arguments(query: str) -> None:
    with pytest.raises(AgentError, match="not valid JSON"):
        read_query(query, TOOLS)


def test_unknown_provider_names_the_known_ones() -> None:
    with pytest.raises(AgentError, match="AnthropicProvider, OpenAIProvider, DirectProvider"):
        make_provider("GroqProvider", "m")
    assert "DirectProvider" in PROVIDERS
