"""First-step OAuth and elicitation are separate: whatever a sign-in gives, elicitation stays as the caller chose it."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python import GopherAgent, GopherAgentElicitationOptions, first_step
from gopher_mcp_python.runtime_options import GopherAgentCreateOptions
from tests.support.recording_engine import RecordingEngine


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    from gopher_mcp_python.engines import embedded

    recording = RecordingEngine()
    monkeypatch.setenv("GOPHER_MCP_ENGINE", "embedded")
    monkeypatch.setattr(embedded, "create", recording.create)
    return recording


class SignIn:
    """A resolver that gives a token; in the place of a sign-in with a browser."""

    def __init__(self, token: str | None) -> None:
        self.token = token
        self.calls: list[tuple[str, str]] = []

    def __call__(self, factory: str, target: str, options: GopherAgentCreateOptions) -> str | None:
        self.calls.append((factory, target))
        return self.token


@pytest.fixture
def sign_in(monkeypatch: pytest.MonkeyPatch) -> SignIn:
    resolver = SignIn("from-sign-in")
    monkeypatch.setattr(first_step, "resolver", resolver)
    return resolver


def create(options: Any) -> GopherAgent:
    return GopherAgent.create_with_url("P", "m", "https://mcp.test/mcp", options)


@pytest.mark.parametrize("options", [None, {}, {"oauth": {"mode": "auto"}}, {"headers": {"A": "b"}}])
def test_the_resolvers_token_does_not_drop_elicitation(options: Any, engine: RecordingEngine, sign_in: SignIn) -> None:
    with create(options):
        spec = engine.spec
    assert sign_in.calls == [("url", "https://mcp.test/mcp")]
    assert spec.options.headers["Authorization"] == "Bearer from-sign-in"
    assert spec.elicitor.enabled
    assert not spec.elicitor.explicit


def test_the_resolvers_token_keeps_explicit_elicitation(engine: RecordingEngine, sign_in: SignIn) -> None:
    given = GopherAgentElicitationOptions(lambda request: "accept", 1234, "ask")
    with create({"elicitation": given, "headers": {"A": "b"}}):
        spec = engine.spec
    assert spec.options.elicitation is given
    assert spec.elicitor.timeout_ms == 1234
    assert spec.options.headers == {"A": "b", "Authorization": "Bearer from-sign-in"}


@pytest.mark.parametrize(
    "options",
    [
        {"oauth": {"mode": "disabled"}},
        {"access_token": "mine"},
        {"headers": {"authorization": "Basic mine"}},
    ],
)
def test_the_sign_in_is_skipped_and_elicitation_stays(options: Any, engine: RecordingEngine, sign_in: SignIn) -> None:
    with create(options):
        spec = engine.spec
    assert sign_in.calls == []
    assert "Bearer from-sign-in" not in spec.options.headers.values()
    assert spec.elicitor.enabled


def test_a_server_that_needs_no_sign_in_gets_no_token(engine: RecordingEngine, sign_in: SignIn) -> None:
    sign_in.token = None
    with create(None):
        assert engine.spec.options.headers == {}
        assert engine.spec.elicitor.enabled


def test_a_sign_in_that_fails_makes_no_agent(engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(*args: Any) -> str:
        raise PermissionError("denied")

    monkeypatch.setattr(first_step, "resolver", denied)
    with pytest.raises(PermissionError):
        create(None)
    assert engine.agents == []
