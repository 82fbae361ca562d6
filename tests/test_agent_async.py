"""The coroutines: the same factories and runs, on a thread of their own, ended when the task that awaits them is."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import inspect
import json
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import anyio
import pytest
import trio

from gopher_mcp_python import (
    AgentError,
    ApiKeyError,
    GopherAgent,
    GopherAgentConfig,
    ServerConfig,
    ServerConfigRoute,
    stopping,
)
from gopher_mcp_python.engines.base import RunOutcome
from tests.support import children
from tests.support.canary import Canary
from tests.support.recording_engine import RecordingEngine
from tests.support.servers import McpServer
from tests.support.terminal import Terminal
from tests.support.variants import Variant, on_both

Environment = Callable[[Variant], dict[str, str]]

COLOUR: contextvars.ContextVar[str] = contextvars.ContextVar("async_colour", default="none")
SIGN_IN = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"
KEY, JSON = "key", '{"servers": [{"name": "a", "url": "https://mcp.test/mcp"}]}'
FACTORIES: dict[str, tuple[Any, ...]] = {
    "create": (GopherAgentConfig("P", "m", server_config=JSON),),
    "create_with_api_key": ("P", "m", KEY),
    "create_with_server_config": ("P", "m", JSON, {"headers": {"X-A": "b"}}),
    "create_with_server_id": ("P", "m", KEY, "id"),
    "create_with_server_name": ("P", "m", KEY, "name"),
    "create_with_gateway_id": ("P", "m", KEY, "id"),
    "create_with_gateway_name": ("P", "m", KEY, "name"),
    "create_with_url": ("P", "m", "https://mcp.test/mcp", {"access_token": "t"}),
}


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    recording = RecordingEngine.instead_of_ours(monkeypatch)
    monkeypatch.setattr(ServerConfig, "fetch", staticmethod(lambda key, route=None: JSON))
    return recording


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end, so that no thread of a failed test stays."""
    event = threading.Event()
    yield event
    event.set()


async def recorded(**options: Any) -> GopherAgent:
    return await GopherAgent.create_with_url_async("P", "m", "https://mcp.test/mcp", options or None)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await anyio.sleep(0.005)


# ---- the same as without await ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*FACTORIES, "run", "run_detailed"])
def test_each_has_a_coroutine_with_its_parameters_and_words(name: str) -> None:
    plain, awaited = getattr(GopherAgent, name), getattr(GopherAgent, f"{name}_async")
    assert inspect.iscoroutinefunction(awaited)
    assert inspect.signature(awaited) == inspect.signature(plain)
    assert (awaited.__name__, awaited.__qualname__) == (f"{name}_async", f"GopherAgent.{name}_async")
    assert awaited.__module__ == "gopher_mcp_python.agent"
    assert name.removesuffix("_detailed") in awaited.__doc__
    if name in FACTORIES:
        assert awaited.__doc__.startswith(plain.__doc__.rstrip())


def test_every_coroutine_belongs_to_a_function_and_the_other_way_round() -> None:
    names = {name for name in vars(GopherAgent) if not name.startswith("_")}
    assert {name for name in names if name.endswith("_async")} == {
        f"{name}_async" for name in names if name.startswith(("create", "run")) and not name.endswith("_async")
    }
    assert inspect.signature(ServerConfig.fetch_async) == inspect.signature(ServerConfig.fetch)
    assert inspect.iscoroutinefunction(ServerConfig.fetch_async)


@pytest.mark.parametrize("name", FACTORIES)
def test_the_engine_gets_the_same(name: str, engine: RecordingEngine) -> None:
    async def awaited() -> None:
        async with await getattr(GopherAgent, f"{name}_async")(*FACTORIES[name]) as agent:
            assert await agent.run_async("q", 5) == "done"
            assert (await agent.run_detailed_async("q")).response == "done"
        assert agent.is_disposed()

    with getattr(GopherAgent, name)(*FACTORIES[name]) as agent:
        agent.run("q", 5)
        agent.run_detailed("q")
    asyncio.run(awaited())
    one, other = (made.spec for made in engine.agents)
    for field in ("factory", "provider", "model", "target", "api_key", "server"):
        assert getattr(one, field) == getattr(other, field)
    assert one.options.headers == other.options.headers
    assert engine.runs == [("q", 5), ("q", 60000)] * 2
    assert [made.released for made in engine.agents] == [1, 1]


@pytest.mark.parametrize(
    "arguments",
    [
        ("P", "m", ""),
        ("", "m", "https://a.test/"),
        ("P", "m", "https://a.test/", "x"),
        ("P", "m"),
        ("P", "m", "u", {}, 1),
    ],
)
def test_errors_are_the_same(arguments: Any, engine: RecordingEngine) -> None:
    with pytest.raises(Exception) as plain:
        GopherAgent.create_with_url(*arguments)
    with pytest.raises(type(plain.value)) as awaited:
        asyncio.run(GopherAgent.create_with_url_async(*arguments))
    assert str(awaited.value) == str(plain.value)


def test_a_failed_run_raises_or_comes_back_as_a_result(engine: RecordingEngine) -> None:
    def fail(query: str, timeout_ms: int) -> RunOutcome:
        raise ApiKeyError("refused")

    async def main() -> None:
        async with await recorded() as agent:
            with pytest.raises(ApiKeyError, match="refused"):
                await agent.run_async("q")
            assert (await agent.run_detailed_async("q")).error_message == "refused"
        with pytest.raises(AgentError, match="Agent has been disposed"):
            await agent.run_async("q")
        assert (await agent.run_detailed_async("q")).is_error()

    engine.answer = fail
    asyncio.run(main())


def test_an_error_dies_with_the_task_that_got_it(engine: RecordingEngine) -> None:
    died = threading.Event()

    def watched() -> AgentError:
        error = AgentError("mine")
        weakref.finalize(error, died.set)
        return error

    def fail(query: str, timeout_ms: int) -> RunOutcome:
        raise watched()

    async def main() -> None:
        async with await recorded() as agent:
            with pytest.raises(AgentError, match="mine"):
                await agent.run_async("q")
            await until(died.is_set)

    engine.answer = fail
    gc.disable()
    try:
        asyncio.run(asyncio.wait_for(main(), 20))
    finally:
        gc.enable()


def test_the_servers_configuration_is_fetched_beside(monkeypatch: pytest.MonkeyPatch) -> None:
    from gopher_mcp_python import server_config

    threads: list[Any] = []

    def request(address: str, api_key: str) -> bytes:
        threads.append(threading.current_thread())
        return address.encode().join((b'{"address": "', b'"}'))

    monkeypatch.setattr(server_config, "_request", request)
    monkeypatch.setenv("GOPHER_API_ROOT", "https://api.test")
    text = asyncio.run(ServerConfig.fetch_async("key", ServerConfigRoute("serverId", "a")))
    assert text == '{"address": "https://api.test/v1/mcp-servers?serverId=a"}'
    assert threads[0] is not threading.current_thread()
    with pytest.raises(ApiKeyError, match="API key is required"):
        asyncio.run(ServerConfig.fetch_async(""))


# ---- threads and contexts --------------------------------------------------------------------------------------------


def test_the_loop_goes_on_meanwhile(engine: RecordingEngine, gate: threading.Event) -> None:
    threads: list[threading.Thread] = []

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        threads.append(threading.current_thread())
        return RunOutcome("opened" if gate.wait(20) else "the loop stood still")

    async def main() -> None:
        async with await recorded() as agent:
            asyncio.get_running_loop().call_later(0.05, gate.set)
            assert await agent.run_async("q") == "opened"

    engine.answer = answer
    asyncio.run(main())
    assert threads[0] is not threading.main_thread()
    assert threads[0].daemon


def test_the_work_is_done_in_a_copy_of_the_context(engine: RecordingEngine) -> None:
    seen: list[str] = []

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        seen.append(COLOUR.get())
        COLOUR.set("changed")
        return RunOutcome("done")

    async def main() -> None:
        async with await recorded() as agent:
            COLOUR.set("green")
            await agent.run_async("q")
            assert COLOUR.get() == "green"

    engine.answer = answer
    asyncio.run(main())
    assert seen == ["green"]
    assert stopping.CURRENT.get() is None


def test_fifty_runs_of_one_agent_in_their_order(engine: RecordingEngine) -> None:
    active: list[int] = []

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        active.append(1)
        assert len(active) == 1
        active.pop()
        return RunOutcome(query)

    async def main() -> list[str]:
        async with await recorded() as agent:
            return await asyncio.gather(*(agent.run_async(str(at)) for at in range(50)))

    engine.answer = answer
    assert asyncio.run(main()) == [str(at) for at in range(50)]
    assert [query for query, _ in engine.runs] == [str(at) for at in range(50)]


def test_fifty_agents_run_at_the_same_time(engine: RecordingEngine) -> None:
    together = threading.Barrier(50)

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        together.wait(30)
        return RunOutcome("done")

    async def main() -> None:
        agents = await asyncio.gather(*(recorded() for _ in range(50)))
        assert await asyncio.gather(*(agent.run_async("q") for agent in agents)) == ["done"] * 50
        for agent in agents:
            agent.dispose()

    engine.answer = answer
    asyncio.run(main())


def test_a_run_inside_of_a_run_is_refused_and_does_not_wait(engine: RecordingEngine) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()

        def answer(query: str, timeout_ms: int) -> RunOutcome:
            inner = asyncio.run_coroutine_threadsafe(agent.run_detailed_async("inner"), loop).result(20)
            return RunOutcome(inner.error_message or "")

        engine.answer = answer
        async with await recorded() as agent:
            assert "can't run its own agent" in await agent.run_async("outer")

    asyncio.run(main())


def test_without_a_thread_the_call_fails_and_the_next_one_works(
    engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        async with await recorded() as agent:
            with monkeypatch.context() as patched:
                patched.setattr(threading.Thread, "start", refuse)
                with pytest.raises(AgentError, match="No thread could be started for the call: can't start"):
                    await agent.run_async("q")
            assert await agent.run_async("q") == "done"

    asyncio.run(main())


def test_without_an_event_loop_it_says_what_is_needed(engine: RecordingEngine) -> None:
    coroutine = recorded()
    with pytest.raises(AgentError, match="an event loop of asyncio or trio"):
        coroutine.send(None)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
def test_interrupts_reach_the_awaiting_task(kind: type[BaseException], engine: RecordingEngine) -> None:
    interrupt = kind(3)

    def answer(query: str, timeout_ms: int) -> RunOutcome:
        if query == "interrupt":
            raise interrupt
        return RunOutcome("done")

    async def main() -> None:
        async with await recorded() as agent:
            with pytest.raises(kind) as caught:
                await agent.run_async("interrupt")
            assert caught.value is interrupt
            assert await agent.run_async("and the loop goes on") == "done"
            await agent.run_async("interrupt")

    engine.answer = answer
    with pytest.raises(kind) as passed:
        asyncio.run(main())
    assert passed.value is interrupt
    assert engine.agents[0].released == 1


# ---- cancellation ----------------------------------------------------------------------------------------------------


def blocking(engine: RecordingEngine, gate: threading.Event) -> threading.Event:
    """Makes the engine's create wait for the gate; says when it is there."""
    reached, create = threading.Event(), engine.create

    def slowly(spec: Any) -> Any:
        reached.set()
        gate.wait(20)
        return create(spec)

    from gopher_mcp_python.engines import embedded

    embedded.create = slowly  # type: ignore[assignment]  # undone by the fixture `engine`
    return reached


def test_an_agent_that_is_made_for_nobody_is_disposed_of(engine: RecordingEngine, gate: threading.Event) -> None:
    reached = blocking(engine, gate)

    async def main() -> None:
        task = asyncio.create_task(recorded())
        await until(reached.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert engine.agents == []  # it was not waited for
        gate.set()
        await until(lambda: engine.agents and engine.agents[0].released)

    asyncio.run(asyncio.wait_for(main(), 20))
    assert engine.agents[0].released == 1


def test_nothing_is_begun_for_nobody(
    engine: RecordingEngine, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The task was cancelled while the servers of its key were fetched, which can't be ended."""
    reached = threading.Event()

    def fetch(key: str, route: object = None) -> str:
        reached.set()
        gate.wait(20)
        return JSON

    monkeypatch.setattr(ServerConfig, "fetch", staticmethod(fetch))

    async def main() -> None:
        task = asyncio.create_task(GopherAgent.create_with_api_key_async("P", "m", KEY))
        await until(reached.is_set)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        gate.set()
        await until(lambda: not [one for one in threading.enumerate() if one.name == "gopher agent call"])

    asyncio.run(asyncio.wait_for(main(), 20))
    assert engine.agents == []


def test_a_cancellation_that_comes_with_the_agent_disposes_of_it(
    engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread has told that it is done, the task has not yet gone on."""
    from gopher_mcp_python import telling

    told = threading.Event()
    tell = telling._AsyncioOver.tell
    monkeypatch.setattr(telling._AsyncioOver, "tell", lambda over: (tell(over), told.set())[0])

    async def main() -> None:
        task = asyncio.create_task(recorded())
        await asyncio.sleep(0)
        assert told.wait(20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert engine.agents[0].released == 1


def test_runs_that_wait_for_their_turn_are_cancelled_in_the_line(
    engine: RecordingEngine, gate: threading.Event
) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(f"{query} {gate.wait(20)}")

    async def main() -> None:
        async with await recorded() as agent:
            first, second, third = (asyncio.create_task(agent.run_async(name)) for name in ("a", "b", "c"))
            await until(lambda: engine.runs)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(second, 0.05)
            gate.set()
            assert (await first, await third) == ("a True", "c True")

    asyncio.run(asyncio.wait_for(main(), 20))
    assert [query for query, _ in engine.runs] == ["a", "c"]


def test_dispose_ends_all_that_wait_for_their_turn(engine: RecordingEngine, gate: threading.Event) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(str(gate.wait(20)))

    async def main() -> list[Any]:
        async with await recorded() as agent:
            tasks = [asyncio.create_task(agent.run_detailed_async("q")) for _ in range(3)]
            await until(lambda: engine.runs)
        gate.set()
        return await asyncio.gather(*tasks)

    results = asyncio.run(asyncio.wait_for(main(), 20))
    assert all("disposed" in result.error_message for result in results)
    assert len(engine.runs) == 1


def test_what_is_asked_for_an_authorization_url_is_withdrawn(engine: RecordingEngine, gate: threading.Event) -> None:
    """A handler that blocks is left behind: the thread of the run is not held up by it."""
    asked = threading.Event()

    def handler(request: Any) -> str:
        asked.set()
        gate.wait(20)
        return "accept"

    engine.answer = lambda query, timeout_ms: RunOutcome(SIGN_IN, tools_called=("a",), last_tool_text=SIGN_IN)

    async def main() -> None:
        async with await recorded(elicitation={"handler": handler}) as agent:
            task = asyncio.create_task(agent.run_async("first"))
            await until(lambda: asked.is_set() or task.done())
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            engine.answer = lambda query, timeout_ms: RunOutcome("done")
            assert await agent.run_async("second") == "done"

    asyncio.run(asyncio.wait_for(main(), 20))
    assert [query for query, _ in engine.runs] == ["first", "second"]


def test_a_handler_that_fails_after_the_end_is_not_told_of(
    engine: RecordingEngine, gate: threading.Event, caplog: pytest.LogCaptureFixture
) -> None:
    """Its loop has ended, what it waited for was cancelled: that is no news, and not the next run's either."""
    asked = threading.Event()

    def handler(request: Any) -> str:
        asked.set()
        gate.wait(20)
        raise LookupError("mine")

    engine.answer = lambda query, timeout_ms: RunOutcome(SIGN_IN, tools_called=("a",), last_tool_text=SIGN_IN)

    async def main() -> None:
        async with await recorded(elicitation={"handler": handler}) as agent:
            for end in (True, False):
                task = asyncio.create_task(agent.run_detailed_async("q"))
                await until(asked.is_set)
                if end:
                    task.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await task
                gate.set()
                await until(lambda: not [one for one in threading.enumerate() if one.name == "gopher-mcp-elicitation"])
                if end:
                    assert "WARNING" not in caplog.text
                    asked.clear()
            assert isinstance((await task).elicitation_cause, LookupError)
        assert caplog.text.count("WARNING") == 1

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_nested_run_ends_with_the_one_around_it(gate: threading.Event) -> None:
    """A sync run of another agent, in a handler that is left behind, is called off too."""
    stop = stopping.Stop()
    context = contextvars.copy_context()
    context.run(stopping.CURRENT.set, stop)
    context.run(stopping.check, "the run")
    stop.set()
    stop.set()
    for inside in (context, context.copy()):
        with pytest.raises(AgentError, match="the run was called off"):
            inside.run(stopping.check, "the run")
    woken: list[int] = []
    with stop.waking(lambda: woken.append(1)):
        assert woken == [1]


# ---- loops that end --------------------------------------------------------------------------------------------------


def test_a_loop_that_is_closed_early_is_told_nothing(
    engine: RecordingEngine, gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    reached = blocking(engine, gate)
    complaints: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", complaints.append)
    loop = asyncio.new_event_loop()
    task = loop.create_task(recorded())
    loop.run_until_complete(until(reached.is_set))
    loop.close()
    gate.set()
    asyncio.run(asyncio.wait_for(until(lambda: engine.agents and engine.agents[0].released), 20))
    assert complaints == []
    assert not task.done()
    _forget(task)


def test_a_loop_that_is_closed_early_holds_no_place_in_the_line(engine: RecordingEngine, gate: threading.Event) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(str(gate.wait(20)))
    agent = asyncio.run(recorded())
    loop = asyncio.new_event_loop()
    tasks = [loop.create_task(agent.run_async(name)) for name in ("a", "b")]
    loop.run_until_complete(until(lambda: engine.runs))
    loop.close()
    gate.set()
    assert asyncio.run(asyncio.wait_for(agent.run_async("c"), 20)) == "True"
    agent.dispose()
    for task in tasks:
        _forget(task)


def _forget(task: asyncio.Task[Any]) -> None:
    """Ends a task of a closed loop without asyncio's complaint about it."""
    task._log_destroy_pending = False  # type: ignore[attr-defined]
    task.get_coro().close()  # type: ignore[union-attr]


def test_a_coroutine_that_is_closed_calls_its_work_off(engine: RecordingEngine, gate: threading.Event) -> None:
    reached = blocking(engine, gate)

    async def main() -> None:
        coroutine = recorded()
        coroutine.send(None)
        await until(reached.is_set)
        coroutine.close()
        gate.set()
        await until(lambda: engine.agents and engine.agents[0].released)

    asyncio.run(asyncio.wait_for(main(), 20))


# ---- trio and anyio --------------------------------------------------------------------------------------------------

Main = Callable[[Callable[[], Coroutine[Any, Any, None]]], Any]
LOOPS: dict[str, Main] = {
    "trio": trio.run,
    "anyio-trio": lambda main: anyio.run(main, backend="trio"),
    "anyio-asyncio": lambda main: anyio.run(main, backend="asyncio"),
}
on_each_loop = pytest.mark.parametrize("run", LOOPS.values(), ids=list(LOOPS))


@on_each_loop
def test_it_works_on_other_loops(run: Main, engine: RecordingEngine, gate: threading.Event) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(str(gate.wait(20)))

    async def main() -> None:
        async with await recorded() as agent:
            async with anyio.create_task_group() as group:
                group.start_soon(_opened, gate)
                assert await agent.run_async("q") == "True"

    async def _opened(gate: threading.Event) -> None:
        await until(lambda: engine.runs)
        gate.set()

    run(main)
    assert engine.agents[0].released == 1


@on_each_loop
def test_it_is_cancelled_on_other_loops(run: Main, engine: RecordingEngine, gate: threading.Event) -> None:
    reached = blocking(engine, gate)

    async def main() -> None:
        with anyio.fail_after(20):
            with anyio.CancelScope() as scope:
                async with anyio.create_task_group() as group:
                    group.start_soon(_cancelling, scope)
                    await recorded()
            assert scope.cancelled_caught
            gate.set()
            await until(lambda: engine.agents and engine.agents[0].released)

    async def _cancelling(scope: anyio.CancelScope) -> None:
        await until(reached.is_set)
        scope.cancel()

    run(main)


def test_a_trio_that_ended_is_told_nothing(engine: RecordingEngine, gate: threading.Event) -> None:
    reached = blocking(engine, gate)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(recorded)
            await until(reached.is_set)
            nursery.cancel_scope.cancel()

    trio.run(main)
    gate.set()
    asyncio.run(asyncio.wait_for(until(lambda: engine.agents and engine.agents[0].released), 20))


# ---- on real engines -------------------------------------------------------------------------------------------------

START = """
import asyncio, json, os, signal, sys, threading, time
from gopher_mcp_python import AgentError, GopherAgent
engine, provider, url = sys.argv[1:]
def options(handler="cancel", **more):
    return {"engine": engine, "elicitation": {"handler": handler, **more}}
async def create(handler="cancel", **more):
    return await GopherAgent.create_with_url_async(provider, "scripted", url, options(handler, **more))
async def until(condition):
    while not condition():
        await asyncio.sleep(0.01)
async def cancelled(task):
    begin = time.monotonic()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return time.monotonic() - begin < 3
facts = {}
"""
FINISH = """
asyncio.run(asyncio.wait_for(main(), 60))
print(json.dumps(facts))
"""
# Both blocking factories and runs, inside of a running loop, one agent's run in the handler of the other's.
NESTED = """
async def main():
    threads = []
    def handler(request):
        threads.append(threading.current_thread() is threading.main_thread())
        facts["inner"] = other.run('plain {"text": "inner"}')
        return "accept"
    with GopherAgent.create_with_url(provider, "scripted", url, options(handler)) as agent:
        with GopherAgent.create_with_url(provider, "scripted", url, options()) as other:
            facts["outer"] = agent.run("decline_aware")
    facts["threads"] = threads
"""
# The handler waits for the loop of the caller, which must not be the one that waits for the handler.
ON_THE_LOOP = """
async def ask_somebody():
    await asyncio.sleep(0.05)
    return "accept"
async def main():
    loop = asyncio.get_running_loop()
    seen = []
    def handler(request):
        seen.append([threading.current_thread() is threading.main_thread(), threading.current_thread().daemon])
        return asyncio.run_coroutine_threadsafe(ask_somebody(), loop).result(30)
    async with await create(handler) as agent:
        facts["texts"] = [await agent.run_async("decline_aware"), (await agent.run_detailed_async("plain")).response]
        facts["engine"] = agent.engine
        facts["many"] = await asyncio.gather(*(agent.run_async('plain {"text": "run-%d"}' % at) for at in range(20)))
    facts["seen"] = seen
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name == "gopher agent call"])
"""
CANCELLED = """
async def main():
    asked, release = threading.Event(), threading.Event()
    def handler(request):
        asked.set()
        release.wait(60)
        return "accept"
    async with await create(handler) as agent:
        task = asyncio.create_task(agent.run_async("decline_aware"))
        await until(lambda: asked.is_set() or task.done())
        facts["prompt"] = await cancelled(task)
        facts["again"] = await agent.run_async("plain")
        task = asyncio.create_task(agent.run_async('slow {"seconds": 30}'))
        await asyncio.sleep(1)
        facts["tool"] = await cancelled(task)
        facts["and again"] = await agent.run_async("plain")
        asked.clear()
        try:
            await asyncio.wait_for(agent.run_async("decline_aware"), 2)
        except asyncio.TimeoutError:
            facts["timeout"] = asked.is_set()
    release.set()
"""
CANCELLED_CREATE = """
from gopher_mcp_python.ffi import _bridge
async def main():
    asked, release = threading.Event(), threading.Event()
    def handler(request):
        asked.set()
        release.wait(60)
        return "accept"
    async def create_and_stay():
        async with await create(handler) as agent:
            await agent.run_async('slow {"seconds": 30}')
    task = asyncio.create_task(create_and_stay())
    await until(lambda: asked.is_set() or task.done())
    facts["prompt"] = await cancelled(task)
    await until(lambda: not _bridge.counts()["live_agents"])
    await until(lambda: not [thread for thread in threading.enumerate() if thread.name.startswith("gopher agent")])
    release.set()  # the handler that is left behind is all that was left
    await until(lambda: not any(n for name, n in _bridge.counts().items() if name.startswith("live_")))
    await until(lambda: threading.active_count() == 1)
"""
CTRL_C = """
asked = threading.Event()
def handler(request):
    asked.set()
    threading.Event().wait()
def press():
    asked.wait(30)
    os.kill(os.getpid(), signal.SIGINT)
async def main():
    threading.Thread(target=press, daemon=True).start()
    async with await create(handler) as agent:
        await agent.run_async("decline_aware")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
EXIT_IN_HANDLER = """
def handler(request):
    sys.exit(7)
async def main():
    async with await create(handler) as agent:
        await agent.run_async("decline_aware")
asyncio.run(main())
"""
# The loop ends while the thread works, and the process after it.
LOOP_GONE = """
asked = threading.Event()
def handler(request):
    asked.set()
    release.wait(30)
    return "accept"
release = threading.Event()
loop = asyncio.new_event_loop()
agent = loop.run_until_complete(create(handler))
task = loop.create_task(agent.run_async("decline_aware"))
loop.run_until_complete(until(asked.is_set))
loop.close()
release.set()
while any(thread.name == "gopher agent call" for thread in threading.enumerate()):
    time.sleep(0.01)
print("leaving", flush=True)
task._log_destroy_pending = False
"""


def program(body: str, variant: Variant, url: str, environment_for: Environment) -> children.Ended:
    argv = [sys.executable, "-W", "error", "-c", START + body, variant.engine, variant.provider, url]
    return children.run(argv, env=environment_for(variant), timeout=90)


def facts_of(body: str, variant: Variant, url: str, environment_for: Environment) -> dict[str, Any]:
    ended = program(body + FINISH, variant, url, environment_for).check()
    assert ended.err == ""
    facts: dict[str, Any] = json.loads(ended.out)
    return facts


@on_both
def test_the_blocking_ones_work_in_a_running_loop(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    facts = facts_of(NESTED, variant, server.url, environment_for)
    assert "accept" in facts["outer"]
    assert "inner" in facts["inner"]
    assert facts["threads"] == [True]


@on_both
def test_a_handler_may_wait_for_the_callers_loop(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    facts = facts_of(ON_THE_LOOP, variant, server.url, environment_for)
    assert facts["engine"] == variant.engine
    assert "accept" in facts["texts"][0] and "plain: ok" in facts["texts"][1]
    assert facts["seen"] == [[False, True]]
    assert all(f"run-{at}" in text for at, text in enumerate(facts["many"]))
    assert [entry["arguments"]["text"] for entry in server.log("run")[2:]] == [f"run-{at}" for at in range(20)]


@on_both
def test_a_cancelled_task_withdraws_what_is_asked(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    facts = facts_of(CANCELLED, variant, server.url, environment_for)
    assert [facts[name] for name in ("prompt", "tool", "timeout")] == [True] * 3
    assert "plain: ok" in facts["again"] and "plain: ok" in facts["and again"]
    assert server.wait_for("answer", 2) and server.actions() == ["cancel", "cancel"]


@on_both
def test_a_cancelled_creation_leaves_nothing(
    server_with: Callable[..., McpServer], environment_for: Environment, variant: Variant
) -> None:
    server = server_with("--elicit-at-start")
    facts = facts_of(CANCELLED_CREATE, variant, server.url, environment_for)
    assert facts["prompt"] is True
    assert server.wait_for("answer") and server.actions() == ["cancel"]


@on_both
def test_ctrl_c_comes_out_of_asyncio_run(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(CTRL_C, variant, server.url, environment_for)
    assert (ended.code, ended.out, ended.err) == (0, "interrupted\n", "")
    assert server.wait_for("answer") and server.actions() == ["cancel"]


@on_both
def test_an_exit_in_a_handler_ends_the_program(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(EXIT_IN_HANDLER, variant, server.url, environment_for)
    assert (ended.code, ended.out, ended.err) == (7, "", "")
    assert server.wait_for("answer") and server.actions() == ["cancel"]


@on_both
def test_a_loop_that_ends_meanwhile_is_no_trouble(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(LOOP_GONE, variant, server.url, environment_for)
    assert (ended.code, ended.out) == (0, "leaving\n")
    assert "Traceback" not in ended.err and "Event loop is closed" not in ended.err


PROMPTED = """
import asyncio, sys
from gopher_mcp_python import GopherAgent
engine, provider, url = sys.argv[1:]
async def main():
    options = {"engine": engine, "elicitation": {"open_browser": False}}
    async with await GopherAgent.create_with_url_async(provider, "scripted", url, options) as agent:
        print("RESULT", await agent.run_async("decline_aware"), flush=True)
        await agent.run_async("decline_aware")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("INTERRUPTED")
"""


@on_both
def test_the_prompt_at_a_real_terminal(
    server: McpServer, environment_for: Environment, variant: Variant, canary: Canary
) -> None:
    """It is on a thread that is not the main one, and ends with the task."""
    canary.allow_shown(server.provider, exact=False)
    arguments = ["-c", PROMPTED, variant.engine, variant.provider, server.url]
    with Terminal.python(*arguments, env=environment_for(variant)) as shown:
        shown.expect("then press Enter to continue")
        shown.line()
        shown.expect("RESULT .*action: accept")
        shown.expect("then press Enter to continue")
        shown.interrupt()
        shown.expect("INTERRUPTED")
        code, rest = shown.end()
    assert (code, "Traceback" in rest) == (0, False)
    assert server.wait_for("answer", 2) and server.actions() == ["accept", "cancel"]
