"""What passes through the gateway unchanged, in both directions and both generations of the protocol."""

from __future__ import annotations

import asyncio
import warnings
from typing import Any

import mcp_types as types
import pytest
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError

from gopher_mcp_python import GopherAgentElicitationResponse, McpToolset
from gopher_mcp_python.gateway import Gateway, Upstream
from gopher_mcp_python.gateway.channel import Client as Asking
from gopher_mcp_python.gateway.front import Pool
from gopher_mcp_python.gateway.held import META_KEY
from gopher_mcp_python.gateway.session import UpstreamSession
from gopher_mcp_python.gateway.upstream import Upstreams
from gopher_mcp_python.toolset.connection import MemoryConnection
from tests.support.gateways import FORM, House, Person, Vault, memory_store, run, soon, text_of
from tests.support.toolset_servers import BOTH as BOTH_ERAS
from tests.support.toolset_servers import HANDSHAKE, MODERN, Scenario

BOTH = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])


@BOTH
def test_meta_goes_both_ways(modern: bool) -> None:
    house = House()

    async def body() -> None:
        meta: Any = {"test/a": {"deep": [1, 2.5, None]}, "test/b": "é"}
        async with house.client(modern=modern) as client:
            result = await client.call_tool("meta", {}, meta=meta)
        assert result.meta["test/echo"] == meta
        assert result.meta["test/answer"] == [1, 1.5, None, "x"]

    run(body())


@BOTH
def test_errors_come_as_they_are(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            for code, data in ((-32050, {"a": [1, None]}), (-32042, {"elicitations": []}), (-32000, None), (17, "x")):
                with pytest.raises(MCPError) as raised:
                    await client.call_tool("fail", {"code": code, "data": data})
                error = raised.value.error
                assert (error.code, error.message, error.data) == (code, "it failed so", data)

    run(body())


@BOTH
def test_structured_content_and_is_error(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            result = await client.call_tool("structured", {})
        assert result.structured_content == {"n": 1, "list": [{"a": None}]} and result.is_error

    run(body())


@BOTH
def test_progress_arrives_whole_and_in_order(modern: bool) -> None:
    house, seen = House(), []

    async def body() -> None:
        async def on_progress(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        async with house.client(modern=modern) as client:
            assert text_of(await client.call_tool("progress", {}, progress_callback=on_progress)) == "done"
            await soon(lambda: len(seen) == 3)

    run(body())
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


@BOTH
def test_cancellation_reaches_the_server(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            calling = asyncio.ensure_future(client.call_tool("slow", {}))
            await house.vault.gates["slow"].wait()
            calling.cancel()
            await house.vault.gates["cancelled"].wait()
            await asyncio.wait((calling,))
            assert text_of(await client.call_tool("peek", {})) == "peek done"

    run(body())
    assert house.vault.cancelled == ["slow"]


@BOTH
def test_prompts_resources_completion(modern: bool) -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=modern) as client:
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["greet"]
            prompt = await client.get_prompt("greet", {"who": "Ada"})
            assert prompt.messages[0].content.text == "greet Ada"  # type: ignore[union-attr]
            assert [str(found.uri) for found in (await client.list_resources()).resources] == ["vault://a"]
            templates = (await client.list_resource_templates()).resource_templates
            assert [template.uri_template for template in templates] == ["vault://t/{id}"]
            read = await client.read_resource("vault://t/7")
            assert read.contents[0].text == "vault://t/7 of vault"  # type: ignore[union-attr]
            reference = types.PromptReference(type="ref/prompt", name="greet")
            completed = await client.complete(reference, {"name": "who", "value": "A"})
            assert completed.completion.values == ["greet:A"]

    run(body())


def test_the_handshake_says_what_the_server_offers() -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            offered = client.server_capabilities
            assert client.instructions == "This is vault."
            assert client.server_info is not None and client.server_info.name == "gopher-mcp"
        assert offered is not None and offered.tools is not None and offered.tools.list_changed
        assert offered.resources is not None and offered.resources.subscribe
        assert offered.completions is not None and offered.logging is not None

        bare = Gateway([Upstream("bare", MemoryConnection(_only_tools()))], memory_store())
        async with Client(bare.server, mode="legacy") as client:
            offered = client.server_capabilities
            assert offered is not None and offered.prompts is None and offered.logging is None
            assert (await client.list_prompts()).prompts == []

    run(body())


def _only_tools() -> Any:
    from mcp.server.lowlevel import Server

    async def on_list_tools(ctx: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=[])

    return Server("bare", on_list_tools=on_list_tools)


def test_several_servers_are_one() -> None:
    house = House(Vault("one"), Vault("two"))

    async def body() -> None:
        async with house.client() as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert len(names) == len(set(names)) == len(house.vault.hints) * 2
            assert {"one_peek", "two_peek"} <= set(names)
            assert text_of(await client.call_tool("two_peek", {})) == "peek done"
            assert [prompt.name for prompt in (await client.list_prompts()).prompts] == ["one_greet", "two_greet"]
            prompt = await client.get_prompt("two_greet", {"who": "x"})
            assert prompt.messages[0].content.text == "greet x"  # type: ignore[union-attr]
            for uri in ("two://a", "two://t/9", "one://a"):
                read = await client.read_resource(uri)
                assert read.contents[0].text == f"{uri} of {uri[:3]}"  # type: ignore[union-attr]
            reference = types.PromptReference(type="ref/prompt", name="two_greet")
            completed = await client.complete(reference, {"name": "who", "value": "A"})
            assert completed.completion.values == ["greet:A"]
            assert client.instructions == "one:\nThis is one.\n\ntwo:\nThis is two."
            for unknown in ("peek", "three_peek", "one_", "_peek"):
                with pytest.raises(MCPError):
                    await client.call_tool(unknown, {})

    run(body())
    assert [len(vault.runs) for vault in house.vaults] == [0, 1]


def test_a_server_that_is_down_is_left_out_of_the_lists() -> None:
    vault = Vault("up")
    down = Upstream("down", _command_that_ends())
    gateway = Gateway([Upstream("up", MemoryConnection(vault.sdk)), down], memory_store())

    async def body() -> None:
        async with Client(gateway.server, mode="legacy") as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            assert names and all(name.startswith("up_") for name in names)
            assert text_of(await client.call_tool("up_peek", {})) == "peek done"
            with pytest.raises(MCPError, match="can't reach down"):
                await client.call_tool("down_x", {})

    run(body())


def _command_that_ends() -> Any:
    import sys

    from gopher_mcp_python.toolset.connection import StdioConnection

    return StdioConnection(sys.executable, ("-c", "raise SystemExit(3)"))


# ---- notices -------------------------------------------------------------------------------------------------------


def test_notices_of_change_and_log_levels() -> None:
    house, seen = House(), []

    async def on_message(message: Any) -> None:
        seen.append(type(getattr(message, "root", message)).__name__)

    async def body() -> None:
        async with house.client(message_handler=on_message) as client:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                await client.session.subscribe_resource("vault://a")
            await house.vault.tools_changed()
            await house.vault.sessions[-1].send_resource_updated("vault://a")
            await soon(lambda: len(seen) >= 2)

    run(body())
    assert seen == ["ToolListChangedNotification", "ResourceUpdatedNotification"]
    assert house.vault.subscribed == ["vault://a"]


def test_notices_on_a_stream_of_their_own() -> None:
    house = House()

    async def body() -> None:
        async with house.client(modern=True) as client, client.listen(tools_list_changed=True) as events:
            await client.call_tool("peek", {})
            await house.vault.bus.publish(_tools_changed())
            async for event in events:
                assert type(event).__name__ == "ToolsListChanged"
                break

    run(body())


def test_an_older_client_hears_of_changes_of_a_server_of_2026_07_28() -> None:
    house, seen = House(), []

    async def refuse(ctx: Any, call_next: Any) -> Any:
        if ctx.method == "initialize":
            raise MCPError(-32022, "Unsupported protocol version", {"supported": [MODERN], "requested": "?"})
        return await call_next(ctx)

    async def on_message(message: Any) -> None:
        seen.append(type(getattr(message, "root", message)).__name__)

    async def body() -> None:
        house.vault.sdk.middleware.append(refuse)
        async with house.client(message_handler=on_message) as client:
            assert client.protocol_version in HANDSHAKE
            assert text_of(await client.call_tool("peek", {})) == "peek done"
            while not seen:  # until its subscription has reached the server
                await house.vault.bus.publish(_tools_changed())
                await asyncio.sleep(0.01)

    run(body())
    assert seen[0] == "ToolListChangedNotification"


def _tools_changed() -> Any:
    from mcp.server.subscriptions import ToolsListChanged

    return ToolsListChanged()


def test_log_messages_and_their_level() -> None:
    house, seen = House(), []

    async def on_log(params: Any) -> None:
        seen.append((params.level, params.data, params.logger))

    async def body() -> None:
        async with house.client(logging_callback=on_log) as client:
            await client.session.send_request(
                types.SetLevelRequest(params=types.SetLevelRequestParams(level="info")), types.EmptyResult
            )
            await client.call_tool("say", {})
            await soon(lambda: seen)

    run(body())
    assert seen == [("info", "said", "vault")] and house.vault.levels == ["info"]


# ---- questions -----------------------------------------------------------------------------------------------------


def test_forms_pages_and_their_completion() -> None:
    house, person, completed = House(), Person(), []

    async def on_message(message: Any) -> None:
        message = getattr(message, "root", message)
        if isinstance(message, types.ElicitCompleteNotification):
            completed.append(message.params.elicitation_id)

    async def body() -> None:
        async with house.client(person, message_handler=on_message) as client:
            assert text_of(await client.call_tool("ask", {"of": "x"})) == "accept Bob"
            assert text_of(await client.call_tool("page", {})) == "accept"
            await soon(lambda: completed)

    run(body())
    form, page = person.asked
    assert form.message == "Name of x?" and form.requested_schema == FORM
    assert (page.url, page.elicitation_id, completed) == ("https://login.example/x", "page-1", ["page-1"])


def test_a_client_that_declares_nothing_is_asked_nothing() -> None:
    house = House()

    async def body() -> None:
        async with house.client() as client:
            with pytest.raises(MCPError):
                await client.call_tool("ask", {"of": "x"})

    run(body())


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "roots/list"])
def test_a_server_that_asks_all_the_same_is_refused(method: str) -> None:
    """The SDK's servers look at what was declared; others may not."""

    class Channel:
        async def request(self, method: str, params: Any) -> dict[str, Any]:
            return {"asked": method}

    async def told(method: str, params: Any) -> None:
        return None

    async def body(capabilities: dict[str, Any]) -> Any:
        channel: Any = Channel()
        client, behind = Asking("ada", "2025-11-25", capabilities, {}), MemoryConnection(Vault().sdk)
        context: Any = None
        return await UpstreamSession(behind, "handshake", client, channel, told)._asked(context, method, {})

    with pytest.raises(MCPError, match="the client does not support"):
        run(body({}))
    assert run(body({"elicitation": {}, "sampling": {}, "roots": {}})) == {"asked": method}


def test_each_answer_goes_to_its_own_call_and_its_own_client() -> None:
    house = House()

    class Named(Person):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def __call__(self, context: Any, params: Any) -> types.ElicitResult:
            self.asked.append(params.message)
            await asyncio.sleep(0)
            return types.ElicitResult(action="accept", content={"name": f"{self.name} for {params.message}"})

    async def body() -> None:
        ada, bob = Named("ada"), Named("bob")
        async with house.client(ada) as of_ada, house.client(bob) as of_bob:
            calls = {
                f"{name} for Name of {n}?": client.call_tool("ask", {"of": n})
                for n in range(8)
                for name, client in (("ada", of_ada), ("bob", of_bob))
            }
            results = await asyncio.gather(*calls.values())
        assert [text_of(result) for result in results] == [f"accept {name}" for name in calls]
        assert len(ada.asked) == len(bob.asked) == 8

    run(body())


@pytest.mark.parametrize("server", [*HANDSHAKE, MODERN, BOTH_ERAS])
@BOTH
def test_both_sides_may_speak_different_versions(server: str, modern: bool) -> None:
    scenario, person = Scenario(server), Person()
    gateway = Gateway([Upstream("s", MemoryConnection(scenario.server))], memory_store(), rules=_all())

    async def body() -> None:
        mode = "auto" if modern else "legacy"
        async with Client(gateway.server, mode=mode, elicitation_callback=person) as client:
            result = await client.call_tool("kind", {"kind": "structured", "meta": {"test/x": 1}})
            assert result.structured_content == {"temperature": 22.5} and result.meta["test/x"] == 1
            assert (await client.list_tools()).tools and (await client.list_prompts()).prompts
            asks_back = server in HANDSHAKE or (server == BOTH_ERAS and not modern)
            tool = "form_tool" if asks_back else "input_required"
            assert "accept" in text_of(await client.call_tool(tool, {"entries": 1} if not asks_back else {}))

    run(body())
    assert len(person.asked) >= 1


def _all() -> Any:
    from gopher_mcp_python.gateway import Rules

    return Rules(allow=("*:*",))


def test_a_call_that_is_held_open_is_taken_back_with_its_client() -> None:
    """The server asks on its way back, the client (2026-07-28) never comes with the answer."""
    scenario = Scenario(HANDSHAKE[1])
    gateway = Gateway([Upstream("s", MemoryConnection(scenario.server))], memory_store(), rules=_all())

    async def body() -> None:
        async with Client(gateway.server, elicitation_callback=Person()) as client:
            asked = await client.session.call_tool("form_tool", {}, allow_input_required=True)
            key = next(iter(asked.input_requests))
            for answers, state in (({}, asked.request_state), ({key: {"action": "accept"}}, asked.request_state + "x")):
                with pytest.raises(MCPError):
                    await client.session.call_tool(
                        "form_tool", {}, input_responses=answers, request_state=state, allow_input_required=True
                    )

    run(body())


# ---- this package's own client ---------------------------------------------------------------------------------------


def test_our_toolset_as_the_client() -> None:
    house, asked = House(), []

    async def handler(request: Any) -> GopherAgentElicitationResponse:
        asked.append(request)
        content = {"name": "Ada"} if "name" in (request.requested_schema or {}).get("properties", {}) else {}
        return GopherAgentElicitationResponse("accept", content)

    async def body() -> None:
        async with McpToolset(house.gateway.server, elicitation_handler=handler) as toolset:
            assert "erase" in [tool.name for tool in await toolset.list_tools()]
            assert (await toolset.call_tool("erase", {"path": "/a"}))["output"] == "erase done"
            assert (await toolset.call_tool("ask", {"of": "y"}))["output"] == "accept Ada"
            assert (await toolset.call_tool("asks_in_rounds", {}))["output"] == "vault's own: accept Ada"

    run(body())
    assert [("/a" in request.message, request.mode) for request in asked[:1]] == [(True, "form")]
    assert [tool for tool, _ in house.vault.runs] == ["erase", "asks_in_rounds"]


def test_answers_and_rules_given_beforehand_approve_nothing() -> None:
    """They would say yes to such a form of any other server; whether a call may be made is left to a person."""
    from gopher_mcp_python.policy import ElicitationPolicy, PolicyRule

    house, asked = House(), []

    def person(request: Any) -> str:
        asked.append(request)
        return "decline"

    async def body() -> None:
        rule = PolicyRule("allow", mode="form", answers={"confirmed": True}, confirm=True)
        policy = ElicitationPolicy([rule], answers={"name": "x", "confirmed": True}, default="decline")
        async with McpToolset(house.gateway.server, elicitation_handler=policy.around(person)) as toolset:
            result = await toolset.call_tool("erase", {})
            assert result["isError"] and result["_meta"][META_KEY]["status"] == "declined"

    run(body())
    assert len(asked) == 1 and house.vault.runs == []


def test_an_older_client_is_asked_only_what_it_declared() -> None:
    """Also by a server that asks through its results."""
    gateway = Gateway([Upstream("s", MemoryConnection(Scenario(MODERN).server))], memory_store(), rules=_all())

    async def body() -> None:
        async with Client(gateway.server, mode="legacy") as client:
            with pytest.raises(MCPError, match="the client does not support elicitation"):
                await client.call_tool("input_required", {})

    run(body())


# ---- how many there may be -------------------------------------------------------------------------------------------


def test_one_caller_can_not_call_any_number_of_times_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.gateway.front.MAX_OF_CALLER", 1)
    house = House()

    async def body() -> None:
        async with house.client(modern=True) as client:
            for _ in range(3):  # a request that is refused gives its place back
                with pytest.raises(MCPError, match="requestState"):
                    await client.session.call_tool("peek", {}, request_state="gopher-mcp.x.y", input_responses={})
            slow = asyncio.ensure_future(client.call_tool("slow", {}))
            await house.vault.gates["slow"].wait()
            with pytest.raises(MCPError, match="open already"):
                await client.call_tool("peek", {})
            house.vault.gates["never"].set()
            assert text_of(await slow) == "done"
            assert text_of(await client.call_tool("peek", {})) == "peek done"

    run(body())


def test_connections_that_wait_are_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.gateway.front.MAX_ALL_IDLE", 3)

    async def body() -> None:
        pool = Pool(Upstreams([Upstream("s", MemoryConnection(Vault().sdk))]))
        clients = [Asking("ada", "2026-07-28", {}, {"name": f"client {number}"}) for number in range(10)]
        for client in clients:
            pool.give_back(pool.take(client))
        assert [front.client for front in pool._since] == clients[-3:] and len(pool._idle) == 3
        last = pool.take(clients[-1])
        assert last.client is clients[-1] and len(pool._since) == 2
        late = pool.take(clients[0])
        pool.give_back(last)
        await pool.close()
        pool.give_back(late)  # of a call that ends after everything else: nothing waits for another one
        assert not pool._since and not pool._idle

    run(body())
