"""How programs use the public API, checked by `mypy --strict` and never run.

A wrong use stands beside the right one with the error that a type checker must give for it; an ignore that is not
needed is an error itself.
"""

from __future__ import annotations

from typing_extensions import assert_type

import gopher_mcp_python as gopher
from gopher_mcp_python import (
    AgentError,
    AgentResult,
    AgentResultStatus,
    GopherAgent,
    GopherAgentConfig,
    GopherAgentCreateOptions,
    GopherAgentElicitationHandler,
    GopherAgentElicitationOptions,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    GopherAgentEvent,
    GopherAgentOAuthOptions,
    GopherAgentRuntimeOptions,
    GopherAgentTokenRecord,
    GopherAgentTokenStore,
    non_blocking,
)


def answer(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    assert_type(request.url, str | None)
    assert_type(request.mode, str)
    return GopherAgentElicitationResponse("accept")


def answer_with_a_word(request: GopherAgentElicitationRequest) -> gopher.GopherAgentElicitationAction:
    return "decline" if request.url is None else "accept"


@non_blocking
def policy(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    return GopherAgentElicitationResponse("cancel")


class Asker:
    def __call__(self, request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
        return GopherAgentElicitationResponse("accept", {"reason": "because"})


async def asynchronous(request: GopherAgentElicitationRequest) -> GopherAgentElicitationResponse:
    return GopherAgentElicitationResponse("accept")


handlers: list[GopherAgentElicitationHandler] = [answer, answer_with_a_word, policy, Asker()]

GopherAgentElicitationOptions(handler=answer, timeout_ms=1500, open_browser="ask")
GopherAgentElicitationOptions(handler="cancel")
GopherAgentElicitationOptions(handler="accept")  # type: ignore[arg-type]
GopherAgentElicitationOptions(handler=asynchronous)  # type: ignore[arg-type]
GopherAgentElicitationOptions(open_browser="sometimes")  # type: ignore[arg-type]


class Store:
    async def get(self, key: str) -> GopherAgentTokenRecord | None:
        return None

    async def set(self, key: str, token: GopherAgentTokenRecord) -> None: ...

    async def delete(self, key: str) -> None: ...


store: GopherAgentTokenStore = Store()


def on_event(event: GopherAgentEvent) -> None:
    assert_type(event.kind, str)


options = GopherAgentCreateOptions(
    access_token="t",
    headers={"X-Team": "mail"},
    oauth=GopherAgentOAuthOptions(mode="disabled", token_store=store),
    elicitation={"handler": answer, "timeoutMs": 1500},
    engine="embedded",
    on_event=on_event,
)
GopherAgentCreateOptions(elicitation=False)
GopherAgentCreateOptions(None, None, None, None, "embedded")  # type: ignore[call-arg]


def run() -> str:
    with GopherAgent.create_with_url("DirectProvider", "direct", "http://127.0.0.1/mcp", options) as agent:
        assert_type(agent, GopherAgent)
        result = agent.run_detailed("query", timeout_ms=1000)
        assert_type(result, AgentResult)
        assert_type(result.status, AgentResultStatus)
        assert_type(agent.is_disposed(), bool)
        with agent.run_stream("query", timeout_ms=1000) as stream:
            for event in stream:
                assert_type(event.call_id, str | None)
        assert_type(stream.result, AgentResult)
        return agent.run("query")


def factories() -> list[GopherAgent]:
    runtime = GopherAgentRuntimeOptions(access_token="t")
    return [
        GopherAgent.create_with_api_key("OpenAIProvider", "m", "key"),
        GopherAgent.create_with_server_config("OpenAIProvider", "m", "{}", runtime),
        GopherAgent.create_with_server_id("OpenAIProvider", "m", "key", "id", {"accessToken": "t"}),
        GopherAgent.create_with_server_name("OpenAIProvider", "m", "key", "name"),
        GopherAgent.create_with_gateway_id("OpenAIProvider", "m", "key", "id"),
        GopherAgent.create_with_gateway_name("OpenAIProvider", "m", "key", "name"),
        GopherAgent.create_with_url("OpenAIProvider", "m"),  # type: ignore[call-arg]
    ]


def configured() -> GopherAgent:
    config = GopherAgentConfig.builder().provider("OpenAIProvider").model("m").api_key("key").build()
    assert_type(config, GopherAgentConfig)
    return GopherAgent.create(config)


def failing() -> None:
    try:
        run()
    except (gopher.TimeoutError, gopher.ConnectionError, gopher.ApiKeyError) as error:
        assert_type(error.message, str)
    except AgentError as error:
        assert_type(error.elicitation_cause, BaseException | None)


async def awaited() -> str:
    async with await GopherAgent.create_with_url_async("DirectProvider", "direct", "http://a/mcp", options) as agent:
        assert_type(agent, GopherAgent)
        assert_type(await agent.run_detailed_async("query", timeout_ms=1000), AgentResult)
        async with agent.run_stream_async("query") as stream:
            async for event in stream:
                assert_type(event, GopherAgentEvent)
        assert_type(stream.text, str)
        return await agent.run_async("query")


async def factories_awaited() -> list[GopherAgent]:
    config = GopherAgentConfig.builder().provider("OpenAIProvider").model("m").api_key("key").build()
    assert_type(await gopher.ServerConfig.fetch_async("key", gopher.ServerConfigRoute("serverId", "a")), str)
    await gopher.ServerConfig.fetch_async(5)  # type: ignore[arg-type]
    GopherAgent.create_async(config).run_async("q")  # type: ignore[attr-defined]
    return [
        await GopherAgent.create_async(config),
        await GopherAgent.create_with_api_key_async("OpenAIProvider", "m", "key"),
        await GopherAgent.create_with_server_config_async("OpenAIProvider", "m", "{}", runtime_options=options),
        await GopherAgent.create_with_server_id_async("OpenAIProvider", "m", "key", "id", {"accessToken": "t"}),
        await GopherAgent.create_with_server_name_async("OpenAIProvider", "m", "key", server_name="name"),
        await GopherAgent.create_with_gateway_id_async("OpenAIProvider", "m", "key", "id"),
        await GopherAgent.create_with_gateway_name_async("OpenAIProvider", "m", "key", "name"),
        await GopherAgent.create_with_url_async("OpenAIProvider", "m"),  # type: ignore[call-arg]
        await GopherAgent.create_with_url_async("OpenAIProvider", "m", link="https://a/"),  # type: ignore[call-arg]
    ]
