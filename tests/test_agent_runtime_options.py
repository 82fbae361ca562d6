"""Options of the factories: what is accepted, what is refused, and what reaches the engine from each of the eight."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentConfig,
    GopherAgentCreateOptions,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentOAuthOptions,
    GopherAgentRuntimeOptions,
    GopherAgentTokenRecord,
    GopherAgentTokenStore,
    ServerConfig,
    ServerConfigRoute,
)
from gopher_mcp_python.runtime_options import (
    normalize_create_options,
    normalize_oauth_options,
    normalize_runtime_options,
)
from tests.support.recording_engine import RecordingEngine

Create = GopherAgentCreateOptions
Runtime = GopherAgentRuntimeOptions


# ---- access token and headers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Create, Runtime])
def test_a_token_becomes_a_header(kind: Any) -> None:
    options = kind(access_token="t", headers={"A": "b"})
    assert (options.access_token, options.headers) == ("t", {"A": "b", "Authorization": "Bearer t"})
    assert (kind().access_token, kind().headers, kind(access_token="").access_token) == (None, {}, None)


@pytest.mark.parametrize("name", ["Authorization", "authorization", "AUTHORIZATION"])
def test_the_callers_own_authorization_wins(name: str) -> None:
    options = Create("t", {name: "Basic x"})
    assert options.headers == {name: "Basic x"}
    assert options.has_authorization


def test_headers_are_copied_in_and_out() -> None:
    source = {"A": "b"}
    options = Create(headers=source)
    source["B"] = "c"
    options.headers["Z"] = "q"
    assert options.headers == {"A": "b"}


@pytest.mark.parametrize("headers", [{"a": None}, {1: "x"}, {"A": 1}, [("a", "b")], "x", 3])
@pytest.mark.parametrize("kind", [Create, Runtime])
def test_headers_are_a_string_mapping(headers: Any, kind: Any) -> None:
    with pytest.raises(ValueError, match="headers must be a string mapping"):
        kind(headers=headers)


@pytest.mark.parametrize("bad", ["x\r\nInjected: 1", "x\n", "\rx", "x\0"])
@pytest.mark.parametrize("kind", [Create, Runtime])
def test_line_breaks_and_nul_are_refused_without_showing_the_value(bad: str, kind: Any, canary: Any) -> None:
    secret = canary.secret("token") + bad
    for given in ({"access_token": secret}, {"headers": {"X-Key": secret}}, {"headers": {bad: "v"}}):
        with pytest.raises(ValueError, match="line break or NUL") as caught:
            kind(**given)
        canary.check_exception("refused", caught.value)


def test_a_token_is_a_string() -> None:
    with pytest.raises(ValueError, match="access_token must be a string"):
        Create(access_token=3)  # type: ignore[arg-type]


def test_properties_are_read_only() -> None:
    with pytest.raises(AttributeError):
        Create().access_token = "x"  # type: ignore[misc]


def test_reprs_show_no_secret(canary: Any) -> None:
    for kind in (Create, Runtime):
        canary.check("repr", repr(kind(canary.secret("token"), canary.headers())))
    record = GopherAgentTokenRecord(canary.secret("token"), refresh_token=canary.secret("refresh"))
    canary.check("repr", repr(record))


# ---- elicitation ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", [None, {}])
def test_omitted_elicitation_is_enabled_in_create_options(given: Any) -> None:
    assert Create(elicitation=given).elicitation.enabled
    assert not Create(elicitation=given).elicitation.explicit


def test_runtime_options_leave_it_to_the_factories() -> None:
    assert Runtime().elicitation is None
    given = Runtime(elicitation={}).elicitation
    assert given is not None
    assert given.enabled


def test_false_switches_it_off() -> None:
    assert not Create(elicitation=False).elicitation.enabled
    assert not Runtime(elicitation=False).elicitation.enabled  # type: ignore[union-attr]


def test_instances_pass_unchanged() -> None:
    given = GopherAgentElicitationOptions(timeout_ms=3)
    assert Create(elicitation=given).elicitation is given


# ---- mappings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [normalize_create_options, normalize_runtime_options])
def test_nothing_is_none(function: Any) -> None:
    assert function(None) is None
    assert function({}) is None
    assert function({"unknown": 1}) is None
    assert function(Runtime()) is None


@pytest.mark.parametrize("key", ["access_token", "accessToken"])
@pytest.mark.parametrize("function", [normalize_create_options, normalize_runtime_options])
def test_both_spellings_of_keys(key: str, function: Any) -> None:
    assert function({key: "t"}).headers == {"Authorization": "Bearer t"}


def test_every_key_of_create_options() -> None:
    def on_event(event: Any) -> None: ...

    options = normalize_create_options(
        {
            "headers": {"A": "b"},
            "oauth": {"mode": "disabled", "clientName": "c", "redirectUri": "http://localhost/", "openBrowser": False},
            "elicitation": {"timeoutMs": 5, "openBrowser": "ask"},
            "engine": "embedded",
            "onEvent": on_event,
        }
    )
    assert options is not None
    assert options.oauth is not None
    assert (options.oauth.mode, options.oauth.client_name, options.oauth.open_browser) == ("disabled", "c", False)
    assert (options.elicitation.timeout_ms, options.elicitation.open_browser) == (5, "ask")
    assert (options.headers, options.engine, options.on_event) == ({"A": "b"}, "embedded", on_event)


def test_instances_are_converted_into_each_other() -> None:
    create = Create("t", elicitation={"timeoutMs": 3})
    assert normalize_create_options(create) is create
    runtime = normalize_runtime_options(create)
    assert isinstance(runtime, Runtime)
    assert runtime.elicitation is create.elicitation
    back = normalize_create_options(runtime)
    assert back is not None
    assert (back.headers, back.elicitation) == (create.headers, create.elicitation)


def test_other_things_are_no_options() -> None:
    with pytest.raises(ValueError, match="create options must be"):
        normalize_create_options(3)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="runtime_options must be"):
        normalize_runtime_options(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(("name", "value"), [("engine", "quick"), ("engine", 3), ("on_event", 3)])
def test_extensions_are_checked(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=name):
        Create(**{name: value})


# ---- OAuth ----------------------------------------------------------------------------------------------------------


def test_oauth_options() -> None:
    assert normalize_oauth_options(None) is None
    for empty in ({}, {"unknown": 1}):
        options = normalize_oauth_options(empty)
        assert options is not None
        given = {name: value for name, value in vars(options).items() if value is not None}
        assert given == {"grant": "authorization_code"}
    scopes = ["mail"]
    options = GopherAgentOAuthOptions(scopes=scopes)
    scopes.append("other")
    assert options.scopes == ["mail"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"mode": "Auto"}, 'mode must be "auto" or "disabled"'),
        ({"scopes": "a b"}, "scopes must be a list of strings"),
        ({"scopes": ("a",)}, "scopes must be a list of strings"),
        ({"scopes": [1]}, "scopes must be a list of strings"),
        ({"client_name": 3}, "client_name must be a string"),
        ({"redirect_uri": 3}, "redirect_uri must be a string"),
        ({"open_browser": "x"}, "open_browser must be a boolean"),
        ({"token_endpoint_auth_method": "basic"}, "must be one of none, client_secret_basic"),
        ({"grant": "password"}, "grant must be"),
        ({"client_secret": "x"}, "needs the client_id"),
        ({"client_metadata_url": "https://host.test/"}, "https address with a path"),
        ({"client_metadata_url": "http://host.test/client"}, "https address with a path"),
        ({"grant": "client_credentials", "client_id": "x"}, "needs client_id and client_secret or private_key"),
        ({"client_id": "x", "private_key": "x"}, "go together"),
        ({"grant": "jwt_bearer", "client_id": "x"}, "assertion and grant"),
        ({"grant": "jwt_bearer", "assertion": len}, "with client_id"),
        ({"client_id": "x", "assertion": len}, "assertion and grant"),
        ({"grant": "jwt_bearer", "client_id": "x", "assertion": "x"}, "assertion must be callable"),
        ({"timeout_ms": 0}, "timeout_ms must be a whole number"),
        ({"timeout_ms": True}, "timeout_ms must be a whole number"),
    ],
)
def test_oauth_options_are_checked(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        GopherAgentOAuthOptions(**given)
    with pytest.raises(ValueError, match=text):
        Create(oauth=given)


def test_oauth_needs_options_or_a_mapping() -> None:
    with pytest.raises(ValueError, match="oauth options must be"):
        normalize_oauth_options(3)  # type: ignore[arg-type]


def test_token_records_and_stores() -> None:
    record = GopherAgentTokenRecord("a")
    fields = ("access_token", "token_type", "refresh_token", "expires_at", "scope")
    assert [getattr(record, name) for name in fields] == ["a", "Bearer", None, None, None]
    for bad in ("", None, 3):
        with pytest.raises(ValueError, match="non-empty string"):
            GopherAgentTokenRecord(bad)  # type: ignore[arg-type]

    class Store:
        async def get(self, key: str) -> GopherAgentTokenRecord | None: ...
        async def set(self, key: str, token: GopherAgentTokenRecord) -> None: ...
        async def delete(self, key: str) -> None: ...

    assert isinstance(Store(), GopherAgentTokenStore)
    assert not isinstance(object(), GopherAgentTokenStore)


def test_a_new_token_changes_nothing_else() -> None:
    elicitation = GopherAgentElicitationOptions(timeout_ms=3)
    options = Create("old", {"A": "b"}, {"mode": "auto"}, elicitation, engine="embedded", on_event=print)
    new = options.with_token("new")
    assert new.headers == {"A": "b", "Authorization": "Bearer new"}
    assert new.elicitation is elicitation
    assert (new.engine, new.on_event, new.oauth) == ("embedded", print, options.oauth)


# ---- all eight factories --------------------------------------------------------------------------------------------

FACTORIES: dict[str, Callable[[Any], GopherAgent]] = {
    "create": lambda o: GopherAgent.create(GopherAgentConfig("P", "m", None, '{"servers": []}', o)),
    "create_by_key": lambda o: GopherAgent.create(GopherAgentConfig("P", "m", "key", None, o)),
    "create_with_api_key": lambda o: GopherAgent.create_with_api_key("P", "m", "key", o),
    "create_with_server_config": lambda o: GopherAgent.create_with_server_config("P", "m", "{}", o),
    "create_with_server_id": lambda o: GopherAgent.create_with_server_id("P", "m", "key", "target", o),
    "create_with_server_name": lambda o: GopherAgent.create_with_server_name("P", "m", "key", "target", o),
    "create_with_gateway_id": lambda o: GopherAgent.create_with_gateway_id("P", "m", "key", "target", o),
    "create_with_gateway_name": lambda o: GopherAgent.create_with_gateway_name("P", "m", "key", "target", o),
    "create_with_url": lambda o: GopherAgent.create_with_url("P", "m", "https://mcp.test/mcp", o),
}
every_factory = pytest.mark.parametrize("factory", FACTORIES.values(), ids=list(FACTORIES))


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    return RecordingEngine.instead_of_ours(monkeypatch)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """The service's configuration without the service; over real HTTP it is fetched in test_agent_server_config.py."""
    calls: list[tuple[str, Any]] = []

    def fetch(api_key: str, route: ServerConfigRoute | None = None) -> str:
        calls.append((api_key, route))
        return '{"fetched": true}'

    monkeypatch.setattr(ServerConfig, "fetch", staticmethod(fetch))
    return calls


@every_factory
@pytest.mark.parametrize("options", [None, {}, {"access_token": "t"}, Create(), Runtime("t"), {"elicitation": None}])
def test_every_factory_enables_elicitation_by_default(
    factory: Callable[[Any], GopherAgent], options: Any, engine: RecordingEngine, fetched: Any
) -> None:
    with factory(options):
        spec = engine.spec
    assert spec.elicitor.enabled
    assert not spec.elicitor.explicit
    assert spec.options.elicitation.enabled
    assert spec.elicitor.mode == "handed_over"


@every_factory
@pytest.mark.parametrize(
    "options",
    [
        {"oauth": {"mode": "disabled"}},
        {"headers": {"authorization": "Bearer mine"}},
        {"access_token": "mine"},
        {"oauth": {"mode": "disabled"}, "access_token": "mine"},
        {"oauth": {"mode": "auto"}},
    ],
)
def test_no_first_step_option_switches_elicitation_off(
    factory: Callable[[Any], GopherAgent], options: Any, engine: RecordingEngine, fetched: Any
) -> None:
    with factory(options):
        assert engine.spec.elicitor.enabled
        assert engine.spec.options.headers == Create(options.get("access_token"), options.get("headers")).headers


@every_factory
def test_explicit_choices_reach_the_engine(
    factory: Callable[[Any], GopherAgent], engine: RecordingEngine, fetched: Any
) -> None:
    def handler(request: Any) -> str:
        return "accept"

    given = GopherAgentElicitationOptions(handler, 2500, False)
    with factory({"elicitation": given}):
        spec = engine.spec
    assert spec.options.elicitation is given
    assert (spec.elicitor.timeout_ms, spec.elicitor.explicit, spec.elicitor.needs_helper) == (2500, True, True)
    assert spec.elicitor.inline_answer(GopherAgentElicitationRequest("url", url="https://a.test/")) == 1


@every_factory
@pytest.mark.parametrize(("given", "action"), [(False, "cancel"), ({"handler": "decline"}, "decline")])
def test_switching_off_and_policies_reach_the_engine(
    factory: Callable[[Any], GopherAgent], given: Any, action: str, engine: RecordingEngine, fetched: Any
) -> None:
    with factory({"elicitation": given}):
        spec = engine.spec
    assert spec.elicitor.enabled is (given is not False)
    assert spec.elicitor.fixed_action == action


@every_factory
def test_bad_options_are_refused_before_anything_is_made(
    factory: Callable[[Any], GopherAgent], engine: RecordingEngine, fetched: Any
) -> None:
    async def later(request: Any) -> str:
        return "accept"

    for bad in ({"elicitation": {"handler": later}}, {"elicitation": {"timeout_ms": "x"}}, 3):
        with pytest.raises(ValueError):
            factory(bad)
    assert (engine.agents, fetched) == ([], [])


@pytest.mark.parametrize(
    ("name", "factory", "target", "server"),
    [
        ("create", "json", '{"servers": []}', "MCP server"),
        ("create_with_server_config", "json", "{}", "MCP server"),
        ("create_with_url", "url", "https://mcp.test/mcp", "mcp.test"),
        ("create_by_key", "json", '{"fetched": true}', "MCP server"),
        ("create_with_api_key", "json", '{"fetched": true}', "MCP server"),
        ("create_with_server_id", "json", '{"fetched": true}', "target"),
        ("create_with_server_name", "json", '{"fetched": true}', "target"),
        ("create_with_gateway_id", "json", '{"fetched": true}', "target"),
        ("create_with_gateway_name", "json", '{"fetched": true}', "target"),
    ],
)
def test_what_the_embedded_engine_is_given(
    name: str, factory: str, target: str, server: str, engine: RecordingEngine, fetched: list[tuple[str, Any]]
) -> None:
    with FACTORIES[name](None):
        spec = engine.spec
    assert (spec.factory, spec.target, spec.server, spec.provider, spec.model) == (factory, target, server, "P", "m")
    routes = {
        "create_by_key": [("key", None)],
        "create_with_api_key": [("key", None)],
        "create_with_server_id": [("key", ServerConfigRoute("serverId", "target"))],
        "create_with_server_name": [("key", ServerConfigRoute("serverName", "target"))],
        "create_with_gateway_id": [("key", ServerConfigRoute("gatewayId", "target"))],
        "create_with_gateway_name": [("key", ServerConfigRoute("gatewayName", "target"))],
    }
    assert fetched == routes.get(name, [])


def test_the_label_is_the_only_servers_name(engine: RecordingEngine) -> None:
    for text, label in (
        ('{"servers": [{"name": "mail"}]}', "mail"),
        ('{"data": {"servers": [{"name": "mail"}]}}', "mail"),
        ('{"servers": [{"name": "a"}, {"name": "b"}]}', "MCP server"),
        ("not json", "MCP server"),
    ):
        with GopherAgent.create_with_server_config("P", "m", text):
            assert engine.agents[-1].spec.server == label


@pytest.mark.parametrize("bad", ["", "  ", None, 3, "a\0b", "\ud800"])
def test_texts_are_checked(bad: Any, engine: RecordingEngine) -> None:
    for make in (
        lambda: GopherAgent.create_with_url(bad, "m", "https://mcp.test/"),
        lambda: GopherAgent.create_with_url("P", bad, "https://mcp.test/"),
        lambda: GopherAgent.create_with_url("P", "m", bad),
        lambda: GopherAgent.create_with_server_config("P", "m", bad),
    ):
        with pytest.raises(AgentError, match=r"must be a non-empty string|NUL"):
            make()
    assert engine.agents == []


def test_specs_show_no_secret(engine: RecordingEngine, fetched: Any, canary: Any) -> None:
    with GopherAgent.create_with_api_key(
        "P", "m", canary.secret("key"), {"access_token": canary.secret("token")}
    ) as agent:
        canary.check("repr", repr(engine.spec) + repr(agent))


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"headers": {"": "x"}}, "header name"),
        ({"headers": {"a b": "x"}}, "'a b'"),
        ({"headers": {"a:b": "x"}}, "'a:b'"),
        ({"headers": {"\u00e9": "x"}}, "header name"),
        ({"headers": {"a": "x\x07"}}, "header 'a' holds a control character"),
        ({"headers": {"a": "\ud800"}}, "header 'a'"),
        ({"access_token": "caf\u00e9"}, "access_token"),
        ({"access_token": "x\ud800"}, "access_token"),
        ({"oauth": {"token_store": 1}}, "token_store must have the methods get, set and delete"),
    ],
)
def test_what_no_request_can_carry_is_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        normalize_create_options(wrong)


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    options = normalize_create_options({"access_token": " t ", "headers": {"A": " x "}})
    assert options is not None
    assert options.headers == {"A": "x", "Authorization": "Bearer t"}
    assert options.access_token == " t "


@pytest.mark.parametrize("expires_at", [float("nan"), float("inf"), 10**400])
def test_a_token_expires_at_a_finite_time(expires_at: Any) -> None:
    with pytest.raises(ValueError, match="expires_at"):
        GopherAgentTokenRecord("t", expires_at=expires_at)
