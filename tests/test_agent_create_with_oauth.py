"""First-step OAuth and elicitation are separate: whatever a sign-in gives, elicitation stays as the caller chose it."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python import GopherAgent, GopherAgentConfig, GopherAgentElicitationOptions, ServerConfig
from tests.support.recording_engine import RecordingEngine

CONFIG = '{"servers": [{"name": "mail", "url": "https://mcp.test/mcp"}]}'


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    return RecordingEngine.instead_of_ours(monkeypatch)


def create(options: Any) -> GopherAgent:
    return GopherAgent.create_with_url("P", "m", "https://mcp.test/mcp", options)


@pytest.mark.parametrize("options", [None, {}, {"oauth": {"mode": "auto"}}, {"headers": {"A": "b"}}])
def test_every_agent_may_sign_in_and_elicitation_stays(options: Any, engine: RecordingEngine) -> None:
    with create(options):
        spec = engine.spec
    assert spec.sign_ins is not None
    assert spec.elicitor.enabled
    assert not spec.elicitor.explicit


@pytest.mark.parametrize(
    "make",
    [
        lambda options: GopherAgent.create_with_server_config("P", "m", CONFIG, options),
        lambda options: GopherAgent.create_with_api_key("P", "m", "key", options),
        lambda options: GopherAgent.create_with_server_id("P", "m", "key", "id", options),
        lambda options: GopherAgent.create_with_server_name("P", "m", "key", "name", options),
        lambda options: GopherAgent.create_with_gateway_id("P", "m", "key", "id", options),
        lambda options: GopherAgent.create_with_gateway_name("P", "m", "key", "name", options),
        lambda options: GopherAgent.create(GopherAgentConfig("P", "m", server_config=CONFIG, runtime_options=options)),
    ],
)
def test_so_does_every_other_factory(make: Any, engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerConfig, "fetch", lambda api_key, route=None: CONFIG)
    with make(None), make({"oauth": {"mode": "disabled"}}):
        signing, disabled = (agent.spec for agent in engine.agents)
    assert signing.sign_ins is not None and signing.elicitor.enabled
    assert disabled.sign_ins is None and disabled.elicitor.enabled


def test_explicit_elicitation_goes_with_a_sign_in(engine: RecordingEngine) -> None:
    given = GopherAgentElicitationOptions(lambda request: "accept", 1234, "ask")
    with create({"elicitation": given, "headers": {"A": "b"}}):
        spec = engine.spec
    assert spec.sign_ins is not None
    assert spec.options.elicitation is given
    assert spec.elicitor.timeout_ms == 1234
    assert spec.options.headers == {"A": "b"}


@pytest.mark.parametrize(
    "options",
    [
        {"oauth": {"mode": "disabled"}},
        {"access_token": "mine"},
        {"headers": {"authorization": "Basic mine"}},
    ],
)
def test_the_sign_in_is_skipped_and_elicitation_stays(options: Any, engine: RecordingEngine) -> None:
    with create(options):
        spec = engine.spec
    assert spec.sign_ins is None
    assert spec.elicitor.enabled


def test_a_token_store_that_is_none_is_refused(engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_MCP_TOKEN_STORE", "cloud")
    with pytest.raises(ValueError, match="GOPHER_MCP_TOKEN_STORE"):
        create(None)
    assert engine.agents == []


def test_a_token_in_the_environment_is_the_callers_own(
    engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOPHER_ACCESS_TOKEN", "from-the-environment")
    with create(None), create({"access_token": "mine"}):
        unnamed, named = (agent.spec for agent in engine.agents)
    assert unnamed.sign_ins is None and unnamed.elicitor.enabled
    assert unnamed.options.headers == {"Authorization": "Bearer from-the-environment"}
    assert named.options.headers == {"Authorization": "Bearer mine"}
