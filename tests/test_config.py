"""GopherAgentConfig and its builder."""

from __future__ import annotations

from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentConfig,
    GopherAgentConfigBuilder,
    GopherAgentCreateOptions,
)


def complete() -> GopherAgentConfigBuilder:
    return GopherAgentConfig.builder().provider("AnthropicProvider").model("m").api_key("k")


def test_values_and_questions() -> None:
    config = GopherAgentConfig("p", "m", server_config="{}")
    assert (config.provider, config.model, config.api_key, config.server_config) == ("p", "m", None, "{}")
    assert (config.has_api_key(), config.has_server_config(), config.runtime_options) == (False, True, None)


def test_without_a_source_of_servers_no_agent_is_made() -> None:
    config = GopherAgentConfig("p", "m")
    assert (config.has_api_key(), config.has_server_config()) == (False, False)
    with pytest.raises(AgentError, match="neither api_key nor server_config"):
        GopherAgent.create(config)


def test_runtime_options_are_normalised() -> None:
    options = GopherAgentConfig("p", "m", "k", None, {"accessToken": "t"}).runtime_options
    assert isinstance(options, GopherAgentCreateOptions)
    assert options.headers == {"Authorization": "Bearer t"}
    with pytest.raises(ValueError, match="must be a GopherAgentCreateOptions instance or mapping"):
        GopherAgentConfig("p", "m", "k", None, 3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (GopherAgentConfig.builder(), "Provider is required"),
        (GopherAgentConfig.builder().provider("p"), "Model is required"),
        (GopherAgentConfig.builder().provider("p").model("m"), "Either api_key or server_config is required"),
        (complete().server_config("{}"), "Cannot specify both api_key and server_config"),
    ],
)
def test_builder_says_what_is_missing(builder: GopherAgentConfigBuilder, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        builder.build()


def test_builder_without_options_gives_none() -> None:
    assert complete().build().runtime_options is None


@pytest.mark.parametrize("token_first", [True, False])
def test_token_and_headers_add_to_options_in_any_order(token_first: bool) -> None:
    options: dict[str, Any] = {"elicitation": {"timeoutMs": 4}, "oauth": {"mode": "disabled"}, "headers": {"A": "1"}}
    builder = complete()
    if token_first:
        builder.access_token("t").headers({"B": "2"}).runtime_options(options)
    else:
        builder.runtime_options(options).access_token("t").headers({"B": "2"})
    built = builder.build().runtime_options
    assert built is not None
    assert built.headers == {"A": "1", "B": "2", "Authorization": "Bearer t"}
    assert built.elicitation.timeout_ms == 4
    assert built.oauth is not None
    assert built.oauth.mode == "disabled"


def test_a_new_token_replaces_the_one_in_the_options() -> None:
    built = complete().runtime_options({"access_token": "old"}).access_token("new").build().runtime_options
    assert built is not None
    assert (built.access_token, built.headers) == ("new", {"Authorization": "Bearer new"})


def test_repr_shows_no_key(canary: Any) -> None:
    text = repr(GopherAgentConfig("p", "m", canary.secret("key"), None, {"access_token": canary.secret("token")}))
    canary.check("repr", text)
    assert "<redacted>" in text


@pytest.mark.parametrize("headers", [1, [("a", "b")], "a"])
def test_headers_of_the_builder_are_a_mapping(headers: Any) -> None:
    with pytest.raises(ValueError, match="headers must be a string mapping"):
        GopherAgentConfig.builder().headers(headers)


@pytest.mark.parametrize("config", [None, {}, "{}", 1])
def test_create_takes_a_configuration_only(config: Any) -> None:
    with pytest.raises(ValueError, match="takes a GopherAgentConfig"):
        GopherAgent.create(config)


def test_a_token_with_blanks_is_replaced_by_the_builders() -> None:
    built = GopherAgentConfig.builder().provider("p").model("m").api_key("k")
    built = built.runtime_options({"access_token": " old "}).access_token("new")
    options = built.build().runtime_options
    assert options is not None
    assert options.headers == {"Authorization": "Bearer new"}
