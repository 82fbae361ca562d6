"""Agents and toolsets at a real MCP server, whose questions are answered over HTTP in another process."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import GopherAgent, McpToolset
from gopher_mcp_python.serve.opening import open_store
from gopher_mcp_python.store import Store, StoreElicitationHandler
from gopher_mcp_python.store.creation_rate import CreationRate
from tests.support import store_postgres
from tests.support.answering import CALLER, SECONDS, Agent, Answering, answering
from tests.support.postgres import PASSWORD
from tests.support.servers import McpServer, click_allow
from tests.support.variants import NATIVE, Variant

REASON = {"action": "accept", "content": {"reason": "audit"}}
FILLED = 'form: accept {"reason": "audit"}'
PROFILE = "get_gmail_users_get_profile"
SEED = 20_261_130


@pytest.fixture(scope="module")
def _shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answering]:
    with answering(tmp_path_factory.mktemp("answering")) as running:
        yield running


@pytest.fixture
def elsewhere(_shared: Answering) -> Answering:
    for one in _shared.pending():
        _shared.request("POST", f"/{one['id']}/cancel", {})
    return _shared


@pytest.fixture
def store(elsewhere: Answering) -> Iterator[Store]:
    with open_store(elsewhere.store, elsewhere.keys) as store:
        store._rate = CreationRate(None)
        yield store


@contextmanager
def running(work: Callable[[], Any]) -> Iterator[list[Any]]:
    """`work` on a thread of its own; its result, or what it raised, is there after the block."""
    results: list[Any] = []

    def run() -> None:
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        yield results
    finally:
        thread.join(SECONDS)
        assert not thread.is_alive(), "it still waits"


def run(server: McpServer, handler: StoreElicitationHandler, query: str, **options: Any) -> str:
    given = {"engine": "embedded", "elicitation": {"handler": handler, **options}}
    with GopherAgent.create_with_url("DirectProvider", "none", server.url, given) as agent:
        return agent.run(query)


async def call(server: McpServer, handler: Any, tool: str, **options: Any) -> Any:
    async with McpToolset(server.url, elicitation_handler=handler, **options) as toolset:
        return (await toolset.call_tool(tool))["output"]


# ---- both engines, and the toolset -----------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_page_on_the_embedded_engine(elsewhere: Answering, server: McpServer, store: Store, action: str) -> None:
    handler = StoreElicitationHandler(store, caller=CALLER)
    with running(lambda: run(server, handler, f"get mail profile, using {PROFILE}")) as results:
        (one,) = elsewhere.wait_for_pending()
        assert elsewhere.show(one["id"])["question"]["href"].startswith(server.provider)
        assert elsewhere.respond(one["id"], {"action": action}) == 200
    assert server.actions() == [action] and ("ada@example.com" in results[0]) == (action == "accept")


@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_page_on_the_native_engine(
    elsewhere: Answering,
    server: McpServer,
    environment_for: Callable[[Variant], dict[str, str]],
    action: str,
) -> None:
    given = {"url": server.url, "engine": "native", "provider": NATIVE.provider}
    agent = Agent(elsewhere, environment_for(NATIVE), query=f"get mail profile, using {PROFILE}", **given)
    try:
        shown = elsewhere.show(agent.created())
        assert shown["mode"] == "url" and shown["question"]["href"].startswith(server.provider)
        begin, end = (datetime.fromisoformat(shown[name].rstrip("Z")) for name in ("created_at", "expires_at"))
        assert 30 < (end - begin).total_seconds() < 115, "the engine gives up after 115 s"
        assert elsewhere.respond(shown["id"], {"action": action}) == 200
        told = agent.end()
    finally:
        agent.kill()
    assert server.actions() == [action]
    assert ("ada@example.com" in told["text"]) == (action == "accept") and told["engine"] == "native"


def test_a_form_of_an_agent(elsewhere: Answering, server: McpServer, store: Store) -> None:
    with running(lambda: run(server, StoreElicitationHandler(store, caller=CALLER), "form_tool")) as results:
        (one,) = elsewhere.wait_for_pending()
        assert elsewhere.respond(one["id"], {"action": "accept", "content": {"urgent": "very"}}) == 422
        assert elsewhere.respond(one["id"], REASON) == 200
        assert elsewhere.respond(one["id"], REASON) == 200  # the same again
        assert elsewhere.respond(one["id"], {"action": "decline"}) == 409
    assert results == [FILLED]


@pytest.mark.parametrize("kind", ["sync", "async"])
@pytest.mark.parametrize("protocol", ["handshake", "2026-07-28"])
def test_a_form_of_a_toolset(
    elsewhere: Answering, server: McpServer, store: Store, kind: str, protocol: Any
) -> None:
    mine = StoreElicitationHandler(store, caller=CALLER)
    handler = mine if kind == "sync" else mine.handle_async
    tool = "form_tool" if protocol == "handshake" else "input_required_form"
    with running(lambda: asyncio.run(call(server, handler, tool, protocol=protocol))) as results:
        (one,) = elsewhere.wait_for_pending()
        assert (one["server"], one["tool"]) == ("127.0.0.1", tool)
        assert elsewhere.respond(one["id"], REASON) == 200
    assert results == [FILLED]


def test_a_page_that_the_server_calls_complete(elsewhere: Answering, server: McpServer, store: Store) -> None:
    """Nobody says on the page that they are done: the server does."""
    handler = StoreElicitationHandler(store, caller=CALLER)
    with running(lambda: run(server, handler, PROFILE)) as results:
        (one,) = elsewhere.wait_for_pending()
        click_allow(elsewhere.show(one["id"])["question"]["href"])
        assert elsewhere.wait_for_status(one["id"], "responded", "cancelled") == "responded"
    assert "ada@example.com" in results[0] and server.actions() == ["accept"]


# ---- who goes away in between ----------------------------------------------------------------------------------------


def test_the_answering_side_is_started_anew(tmp_path: Path, server: McpServer) -> None:
    with answering(tmp_path) as elsewhere, open_store(elsewhere.store, elsewhere.keys) as store:
        with running(lambda: run(server, StoreElicitationHandler(store, caller=CALLER), "form_tool")) as results:
            (one,) = elsewhere.wait_for_pending()
            elsewhere.kill()
            elsewhere.start()
            assert [other["id"] for other in elsewhere.pending()] == [one["id"]]
            assert elsewhere.respond(one["id"], REASON) == 200
    assert results == [FILLED]


def test_the_question_of_a_killed_agent_expires_by_itself(elsewhere: Answering, server: McpServer) -> None:
    agent = Agent(elsewhere, {}, url=server.url, query="form_tool", timeout_s=3)
    try:
        id = agent.created()
    finally:
        agent.kill()
    assert elsewhere.wait_for_status(id, "expired", "cancelled", "responded") == "expired"
    assert elsewhere.respond(id, REASON) == 409


def test_a_limit_of_the_options_ends_both(elsewhere: Answering, server: McpServer, store: Store) -> None:
    created: list[Any] = []
    handler = StoreElicitationHandler(store, caller=CALLER, on_created=created.append)
    assert run(server, handler, "form_tool", timeout_ms=1500) == "form: cancel null"
    assert elsewhere.wait_for_status(created[0].id, "expired", "cancelled") in ("expired", "cancelled")
    assert not elsewhere.pending()


def test_a_cancelled_call_takes_its_question_back(elsewhere: Answering, server: McpServer, store: Store) -> None:
    async def work() -> None:
        created: list[Any] = []
        handler = StoreElicitationHandler(store, caller=CALLER, on_created=created.append)
        async with McpToolset(server.url, elicitation_handler=handler) as toolset:
            task = asyncio.ensure_future(toolset.call_tool("form_tool"))
            while not created:
                await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            ended = await asyncio.to_thread(store.wait, CALLER, created[0].id, timeout_s=SECONDS)
            assert ended.status == "cancelled"
        assert elsewhere.respond(created[0].id, REASON) == 409

    asyncio.run(asyncio.wait_for(work(), SECONDS))


def test_postgres_ends_and_comes_back_in_between(tmp_path: Path, server: McpServer) -> None:
    with store_postgres.running() as postgres:
        name = store_postgres.database(postgres).name
        dsn = f"postgresql://{store_postgres.APP}:{PASSWORD}@127.0.0.1:{postgres.port}/{name}"
        with answering(tmp_path, dsn) as elsewhere, open_store(dsn, elsewhere.keys) as store:
            with running(lambda: run(server, StoreElicitationHandler(store, caller=CALLER), "form_tool")) as results:
                (one,) = elsewhere.wait_for_pending()
                postgres.kill()
                postgres.start()
                assert elsewhere.respond_when_it_can(one["id"], REASON) == 200
    assert results == [FILLED]


# ---- many ------------------------------------------------------------------------------------------------------------


def test_each_of_a_hundred_answers_reaches_its_own_question(
    elsewhere: Answering, server: McpServer, store: Store
) -> None:
    """Ten threads ask ten each at once; they are answered in any order."""
    handler = StoreElicitationHandler(store, caller=CALLER)

    def schema(text: str) -> dict[str, Any]:
        return {"type": "object", "properties": {"reason": {"type": "string", "title": text}}, "required": ["reason"]}

    async def ask(thread: int) -> list[str]:
        async with McpToolset(server.url, elicitation_handler=handler) as toolset:
            calls = [
                toolset.call_tool("form_tool", {"schema": schema(f"{thread}-{number}")}, person=(thread, number))
                for number in range(10)
            ]
            return [result["output"] for result in await asyncio.gather(*calls)]

    results: dict[int, list[str]] = {}
    threads = [
        threading.Thread(target=lambda number=number: results.update({number: asyncio.run(ask(number))}), daemon=True)
        for number in range(10)
    ]
    for thread in threads:
        thread.start()
    asked = elsewhere.wait_for_pending(100)
    random.Random(SEED).shuffle(asked)
    for one in asked:
        (entry,) = elsewhere.show(one["id"])["question"]["fields"]
        content = {"reason": f"for {entry['label']}"}
        assert elsewhere.respond(one["id"], {"action": "accept", "content": content}) == 200
    for thread in threads:
        thread.join(SECONDS)
    wanted = {n: [f'form: accept {{"reason": "for {n}-{number}"}}' for number in range(10)] for n in range(10)}
    assert results == wanted
