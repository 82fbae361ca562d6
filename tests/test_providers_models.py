"""The providers with a model: the vendors' own SDKs against a scripted endpoint."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    ApiKeyError,
    ConnectionError,
    GopherAgent,
)
from gopher_mcp_python.providers import MAX_ITERATIONS, make_provider
from tests.support.scripted_llm import ScriptedModel
from tests.support.servers import McpServer

VENDORS = [("AnthropicProvider", "ANTHROPIC", "anthropic"), ("OpenAIProvider", "OPENAI", "openai")]
vendors = pytest.mark.parametrize(("provider", "prefix", "extra"), VENDORS)


@pytest.fixture(autouse=True)
def _environment(scripted_model: ScriptedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in scripted_model.environment().items():
        if not name.lower().endswith("https_proxy"):
            monkeypatch.setenv(name, value)


def run(server: McpServer, provider: str, query: str, model: str = "scripted", **options: Any) -> Any:
    given = {"engine": "embedded", "elicitation": {"handler": lambda request: "accept"}, **options}
    with GopherAgent.create_with_url(provider, model, server.url, given) as agent:
        return agent.run_detailed(query)


@vendors
def test_model_calls_the_tool_and_answers(server: McpServer, provider: str, prefix: str, extra: str) -> None:
    result = run(server, provider, "get mail profile, using get_gmail_users_get_profile")
    assert "FINAL" in result.response and "ada@example.com" in result.response
    assert result.iteration_count == 2 and result.tokens_used > 0
    assert server.actions() == ["accept"]


@vendors
def test_through_the_vendors_own_host(
    scripted_model: ScriptedModel, server: McpServer, monkeypatch: pytest.MonkeyPatch,
    provider: str, prefix: str, extra: str,
) -> None:  # fmt: skip
    monkeypatch.delenv(f"{prefix}_BASE_URL")
    monkeypatch.setenv("HTTPS_PROXY", scripted_model.proxy)
    monkeypatch.setenv("SSL_CERT_FILE", scripted_model.ca)
    assert "plain: ok" in run(server, provider, "use plain").response


@vendors
def test_failing_tool_is_told_to_the_model(server: McpServer, provider: str, prefix: str, extra: str) -> None:
    assert "no such label" in run(server, provider, "use tool_error").response
    assert "the server broke" in run(server, provider, "use protocol_error").response


@vendors
def test_refused_key(server: McpServer, provider: str, prefix: str, extra: str) -> None:
    with pytest.raises(ApiKeyError, match=f"HTTP status 401.*{prefix}_API_KEY"):
        with GopherAgent.create_with_url(provider, "status-401", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")


@vendors
@pytest.mark.parametrize("status", [400, 404])
def test_other_refusals(server: McpServer, provider: str, prefix: str, extra: str, status: int) -> None:
    with pytest.raises(AgentError, match=f"HTTP status {status}") as caught:
        with GopherAgent.create_with_url(provider, f"status-{status}", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")
    assert not isinstance(caught.value, ApiKeyError | ConnectionError)


@vendors
def test_overloaded_model_is_an_agent_error_after_retries(
    server: McpServer, provider: str, prefix: str, extra: str
) -> None:
    with pytest.raises(AgentError, match="HTTP status 429"):
        with GopherAgent.create_with_url(provider, "status-429", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")


@vendors
def test_nobody_at_the_models_address(
    server: McpServer, monkeypatch: pytest.MonkeyPatch, provider: str, prefix: str, extra: str
) -> None:
    monkeypatch.setenv(f"{prefix}_BASE_URL", "http://127.0.0.1:9")
    with pytest.raises(ConnectionError, match="could not be reached"):
        with GopherAgent.create_with_url(provider, "m", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")


@vendors
def test_model_that_never_ends_calling_tools(server: McpServer, provider: str, prefix: str, extra: str) -> None:
    with pytest.raises(AgentError, match=f"{MAX_ITERATIONS} turns"):
        with GopherAgent.create_with_url(provider, "loop", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")
    assert server.tools_run() == ["plain"] * MAX_ITERATIONS


@vendors
@pytest.mark.parametrize("key", [None, "", "  "])
def test_missing_key_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, provider: str, prefix: str, extra: str, key: str | None
) -> None:
    if key is None:
        monkeypatch.delenv(f"{prefix}_API_KEY")
    else:
        monkeypatch.setenv(f"{prefix}_API_KEY", key)
    with pytest.raises(ApiKeyError, match=f"{prefix}_API_KEY"):
        make_provider(provider, "m")


@vendors
def test_missing_extra_names_the_command(
    monkeypatch: pytest.MonkeyPatch, provider: str, prefix: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, extra, None)  # what an import sees of a package that is not installed
    with pytest.raises(AgentError, match=rf'pip install "gopher-mcp-python\[{extra}\]"'):
        make_provider(provider, "m")


@vendors
def test_key_is_in_no_error(
    server: McpServer, monkeypatch: pytest.MonkeyPatch, provider: str, prefix: str, extra: str
) -> None:
    monkeypatch.setenv(f"{prefix}_API_KEY", "sk-topsecret-0123456789")
    with pytest.raises(ApiKeyError) as caught:
        with GopherAgent.create_with_url(provider, "status-401", server.url, {"engine": "embedded"}) as agent:
            agent.run("use plain")
    assert "topsecret" not in str(caught.value) and "topsecret" not in repr(caught.value)
