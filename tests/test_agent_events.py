"""Events: one vocabulary on both engines, by callback and by iterator, and what leaving an iterator means."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trio

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentAsyncStream,
    GopherAgentEvent,
    GopherAgentStream,
    TimeoutError,
    non_blocking,
)
from gopher_mcp_python.engines.base import RunOutcome
from gopher_mcp_python.run_events import RunEvents
from tests.support import children
from tests.support.recording_engine import RecordingEngine
from tests.support.servers import McpServer
from tests.support.variants import ALL, Variant, on_both, with_model

Environment = Callable[[Variant], dict[str, str]]
SIGN_IN = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"
STREAM_THREAD = "gopher agent stream"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    from gopher_mcp_python.engines import embedded

    recording = RecordingEngine()
    monkeypatch.setenv("GOPHER_MCP_ENGINE", "embedded")
    monkeypatch.setattr(embedded, "create", recording.create)
    return recording


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Opened at the end, so that no thread of a failed test stays."""
    event = threading.Event()
    yield event
    event.set()


def recorded(**options: Any) -> GopherAgent:
    return GopherAgent.create_with_url("P", "m", "https://mcp.test/mcp", options or None)


def direct(server: McpServer, handler: Any = "cancel", **options: Any) -> GopherAgent:
    given = {"engine": "embedded", "elicitation": {"handler": handler}, **options}
    return GopherAgent.create_with_url("DirectProvider", "none", server.url, given)


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def gone() -> bool:
    """Whether no thread of a stream is left."""
    return STREAM_THREAD not in [thread.name for thread in threading.enumerate()]


def fill(events: list[GopherAgentEvent], stream: GopherAgentStream, then: Callable[[Any], object] = id) -> None:
    for event in stream:
        events.append(event)
        then(event)


def is_asked(event: GopherAgentEvent) -> bool:
    return event.kind == "elicitation_asked"


def kinds(events: list[GopherAgentEvent]) -> list[str]:
    return [event.kind for event in events]


# ---- the numbers and names of events ---------------------------------------------------------------------------------


def heard() -> tuple[RunEvents, list[GopherAgentEvent]]:
    events: list[GopherAgentEvent] = []
    return RunEvents(None, events.append), events


def test_events_are_numbered_and_hide_their_data() -> None:
    run, events = heard()
    run.tell("iteration_start", 7, 1, {"secret": "s3cr3t"})
    run.tell("iteration_end", 7, 1, {})
    assert [(event.sequence, event.run_id, event.iteration) for event in events] == [(1, 7, 1), (2, 7, 1)]
    assert 0 <= events[0].seconds <= events[1].seconds
    assert "s3cr3t" not in repr(events[0])


def test_a_call_id_joins_a_call_and_its_result() -> None:
    """The engine's own where it gives one; else made up, and a result belongs to the oldest call of its tool."""
    run, events = heard()
    for data in ({"tool": "a"}, {"tool": "a", "tool_call_id": "own"}, {"tool": "b"}, {"tool": "a"}):
        run.tell("tool_dispatched", 1, 1, data)
    for data in ({"tool": "a", "tool_call_id": "own"}, {"tool": "b"}, {"tool": "a"}, {"tool": "a"}):
        run.tell("tool_result", 1, 1, data)
    run.tell("tool_result", 1, 1, {"tool": "nobody called it"})
    dispatched = ["call_1", "own", "call_2", "call_3"]
    assert [event.call_id for event in events] == [*dispatched, "own", "call_2", "call_1", "call_3", None]


def test_nothing_is_told_after_the_end_and_the_end_is_told_once() -> None:
    run, events = heard()
    run.tell("run_completed", 1, 1, {"status": "completed"})
    run.end("completed")
    run.end("error", error="late")
    run.tell("tool_result", 1, 1, {})
    assert kinds(events) == ["run_completed"]
    run, events = heard()
    run.tell("iteration_start", 3, 1, {})
    run.end("timeout", error="too late")
    assert (events[-1].kind, events[-1].run_id, events[-1].data["status"]) == ("run_completed", 3, "timeout")


# ---- both engines: the same kinds, the same order, the same keys -----------------------------------------------------

SHOW = """
import json, sys
from gopher_mcp_python import AgentError, GopherAgent
engine, provider, url, query, model, handler = sys.argv[1:7]
called = []
answer = handler if handler in ("cancel", "decline") else (lambda request: handler)
options = {"engine": engine, "elicitation": {"handler": answer}, "on_event": called.append}
facts = {"error": None}
with GopherAgent.create_with_url(provider, model, url, options) as agent:
    stream, seen = agent.run_stream(query, 20000), []
    try:
        for event in stream:
            seen.append(event)
    except AgentError as error:
        facts["error"] = str(error)
    facts["text"], facts["status"] = stream.text, stream.result.status.value
    facts["iterations"] = stream.result.iteration_count
fields = ("kind", "run_id", "iteration", "sequence", "call_id", "data")
facts["events"] = [{name: getattr(event, name) for name in fields} for event in seen]
for event in facts["events"]:
    if "url" in event["data"]:
        event["data"] = {**event["data"], "url": event["data"]["url"].partition("?")[0]}
facts["same"] = sorted(called, key=lambda event: event.sequence) == seen
print(json.dumps(facts))
"""


def shown(variant: Variant, url: str, environment: Environment, *arguments: str) -> dict[str, Any]:
    argv = [sys.executable, "-W", "error", "-c", SHOW, variant.engine, variant.provider, url, *arguments]
    ended = children.run(argv, env=environment(variant), timeout=90).check()
    facts: dict[str, Any] = json.loads(ended.out)
    assert facts["same"], "the callback heard the same"
    assert [event["sequence"] for event in facts["events"]] == list(range(1, len(facts["events"]) + 1))
    return facts


TURN = ["iteration_start", "llm_request", "llm_response", "iteration_end"]
ASKED = ["elicitation_asked", "elicitation_answered"]
# What the vendor's library tells with each kind, hashes and the like left out (docs/events.md).
KEYS = {
    "iteration_start": {"iteration_about_to_start", "remaining_steps"},
    "llm_request": {"iteration", "provider", "model", "max_tokens"},
    "llm_response": {"iteration", "assistant_message", "duration_ms", "finish_reason", "usage"},
    "iteration_end": {"iteration", "transition"},
    "tool_dispatched": {"iteration", "tool", "args", "tool_call_id", "source_server"},
    "tool_result": {"iteration", "tool", "tool_call_id", "source_server", "is_error", "result"},
    "run_completed": {"status", "error", "final_answer", "iteration_count", "tokens_used", "elapsed_ms"},
    "elicitation_asked": {"server", "tool", "mode", "elicitation_id", "message", "url"},
    "elicitation_answered": {"server", "tool", "mode", "elicitation_id", "action", "how"},
}


@with_model
def test_the_same_kinds_order_and_keys_with_every_model(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    query = 'plain {"text": "a"} then decline_aware then plain {"text": "b"}'
    events = shown(variant, server.url, environment_for, query, "scripted", "accept")["events"]
    tool = ["tool_dispatched", "tool_result"]
    asking = ["tool_dispatched", *ASKED, "tool_result"]
    expected = [*TURN, *tool, *TURN, *asking, *TURN, *tool, *TURN, "run_completed"]
    assert [event["kind"] for event in events] == expected
    assert {event["run_id"] for event in events} == {events[0]["run_id"]} != {0}
    assert [event["iteration"] for event in events if event["kind"] == "iteration_start"] == [1, 2, 3, 4]
    for event in events:
        assert KEYS[event["kind"]] <= event["data"].keys(), event
    reply = events[2]["data"]
    (call,) = reply["assistant_message"]["tool_calls"]
    assert (call["name"], call["arguments"], reply["finish_reason"]) == ("plain", {"text": "a"}, "tool_calls")
    assert reply["usage"] == {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    assert [event["data"]["transition"] for event in events if event["kind"] == "iteration_end"] == [
        *["tool_call"] * 3, "final",
    ]  # fmt: skip
    assert events[4]["call_id"] == events[5]["call_id"] == call["id"] == events[4]["data"]["tool_call_id"]
    asked, answered = (event for event in events if event["kind"] in ASKED)
    assert asked["call_id"] == answered["call_id"] and asked["iteration"] == 2
    assert (asked["data"]["tool"], asked["data"]["mode"]) == ("decline_aware", "url")
    assert asked["data"]["url"].startswith("http")
    assert (answered["data"]["action"], answered["data"]["how"]) == ("accept", "person")
    assert events[-1]["data"]["status"] == "completed" and events[-1]["data"]["error"] is None
    assert events[-1]["data"]["tokens_used"] == {"prompt": 4, "completion": 4, "total": 8}


@with_model
def test_two_calls_of_one_tool_in_one_turn_are_told_apart(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    query = 'plain {"text": "a"} and plain {"text": "b"}'
    events = shown(variant, server.url, environment_for, query, "parallel", "cancel")["events"]
    calls = {event["call_id"]: event["data"]["args"]["text"] for event in events if event["kind"] == "tool_dispatched"}
    results = {event["call_id"]: event["data"]["result"] for event in events if event["kind"] == "tool_result"}
    assert sorted(calls.values()) == ["a", "b"] and calls.keys() == results.keys()
    assert all(f"plain: {text}" in str(results[call_id]) for call_id, text in calls.items())


@with_model
def test_a_run_that_fails_ends_with_run_completed_and_raises(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    facts = shown(variant, server.url, environment_for, "plain", "status-400", "cancel")
    assert [event["kind"] for event in facts["events"]] == ["iteration_start", "llm_request", "run_completed"]
    end = facts["events"][-1]["data"]
    assert end["status"] != "completed" and end["error"]
    assert "failure 400" in facts["error"] and (facts["status"], facts["text"]) == ("error", "")


@pytest.mark.parametrize("variant", ALL[:2], ids=str)
def test_a_policy_is_told_like_a_person(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    facts = shown(variant, server.url, environment_for, "decline_aware", "scripted", "decline")
    asked, answered = (event for event in facts["events"] if event["kind"] in ASKED)
    assert (answered["data"]["action"], answered["data"]["how"]) == ("decline", "policy")
    assert asked["call_id"] == answered["call_id"]


# ---- how questions end -----------------------------------------------------------------------------------------------


def answered(events: list[GopherAgentEvent]) -> list[tuple[str, str]]:
    assert kinds(events).count("elicitation_asked") == kinds(events).count("elicitation_answered")
    return [(one.data["action"], one.data["how"]) for one in events if one.kind == "elicitation_answered"]


def test_a_handler_that_marks_itself_non_blocking_is_a_policy(server: McpServer) -> None:
    with direct(server, non_blocking(lambda request: "accept")) as agent:
        assert answered(list(agent.run_stream("decline_aware"))) == [("accept", "policy")]


def test_a_handler_that_fails(server: McpServer) -> None:
    def broken(request: Any) -> str:
        raise LookupError("mine")

    with direct(server, broken) as agent:
        stream = agent.run_stream("decline_aware")
        assert answered(list(stream)) == [("cancel", "error")]
        assert isinstance(stream.result.elicitation_cause, LookupError)


def test_time_that_is_up_is_told_while_the_handler_goes_on(server: McpServer, gate: threading.Event) -> None:
    with direct(
        server, None, elicitation={"handler": lambda r: gate.wait(20) and "accept", "timeout_ms": 200}
    ) as agent:
        events = list(agent.run_stream("decline_aware"))
    assert answered(events) == [("cancel", "timeout")]
    assert kinds(events).index("elicitation_answered") < kinds(events).index("tool_result")


def test_several_questions_of_one_call(server: McpServer) -> None:
    with direct(server, lambda request: "accept") as agent:
        events = list(agent.run_stream('elicit_parallel {"count": 3}'))
    assert answered(events) == [("accept", "person")] * 3
    pairs = [event.call_id for event in events if event.kind.startswith("elicitation")]
    assert sorted(pairs) == [f"elicitation_{number}" for number in (1, 1, 2, 2, 3, 3)]


def test_a_form_is_told_with_its_schema(server: McpServer) -> None:
    with direct(server, lambda request: "decline") as agent:
        asked = next(event for event in agent.run_stream("form_tool") if event.kind == "elicitation_asked")
    assert asked.data["mode"] == "form" and "url" not in asked.data
    assert asked.data["requested_schema"]["type"] == "object"


def test_a_question_of_the_sessions_own_stream_is_told_without_a_run(
    server_with: Callable[..., McpServer],
) -> None:
    events: list[GopherAgentEvent] = []
    with direct(server_with("--elicit-at-start"), lambda request: "accept", on_event=events.append):
        until(lambda: len(events) == 2)
    assert kinds(events) == ASKED and {event.run_id for event in events} == {0}


def test_a_sign_in_page_that_came_as_text_is_asked_between_two_runs(engine: RecordingEngine) -> None:
    answers = [RunOutcome("page", tools_called=("mail",), last_tool_text=SIGN_IN), RunOutcome("mails")]
    engine.answer = lambda query, timeout_ms: answers.pop(0)
    with recorded(elicitation={"handler": lambda request: "accept"}) as agent:
        stream = agent.run_stream("q")
        events = list(stream)
    assert kinds(events)[-1] == "run_completed" and answered(events) == [("accept", "person")]
    assert events[0].data["tool"] == "mail" and stream.text == "mails"


# ---- the iterator ----------------------------------------------------------------------------------------------------


def test_a_handler_may_wait_for_the_consumer(server: McpServer) -> None:
    seen = threading.Event()
    threads: list[str] = []

    def handler(request: Any) -> str:
        threads.append(threading.current_thread().name)
        return "accept" if seen.wait(20) else "decline"

    with direct(server, handler) as agent, agent.run_stream("decline_aware") as stream:
        for event in stream:
            if event.kind == "elicitation_asked":
                seen.set()
    assert stream.text == "action: accept"
    assert threads == ["gopher-mcp-elicitation"], "beside, so that it can be left behind"


def test_the_result_is_there_at_the_end_and_not_before(engine: RecordingEngine) -> None:
    with recorded() as agent:
        stream = agent.run_stream("q", 5)
        with pytest.raises(AgentError, match="not iterated to its end"):
            _ = stream.text
        assert isinstance(stream, GopherAgentStream) and "under way" in repr(stream)
        (event,) = stream
        assert (event.kind, event.data["final_answer"]) == ("run_completed", "done")
        assert (stream.text, stream.result.response) == ("done", "done") and "success" in repr(stream)
        assert list(stream) == [] and engine.runs == [("q", 5)]
        stream.close()
        assert stream.text == "done"
    until(gone)


def test_time_that_is_up_is_raised_after_the_last_event(server: McpServer) -> None:
    with direct(server) as agent:
        stream = agent.run_stream('slow {"seconds": 20}', 300)
        events: list[GopherAgentEvent] = []
        with pytest.raises(TimeoutError):
            fill(events, stream)
        assert events[-1].kind == "run_completed" and events[-1].data["status"] == "timeout"
        assert stream.result.is_timeout()
        assert agent.run("plain") == "plain: ok"


@pytest.mark.parametrize("query", [3, "a\0b"])
def test_what_cannot_be_run_is_raised_where_it_is_iterated(query: Any, engine: RecordingEngine) -> None:
    with recorded() as agent:
        with pytest.raises(AgentError, match="Query execution failed"):
            list(agent.run_stream(query))
        assert engine.runs == []
    with pytest.raises(AgentError, match="disposed"):
        list(agent.run_stream("q"))


@pytest.mark.parametrize("way", ["with", "close", "dropped"])
def test_leaving_early_withdraws_what_is_asked(way: str, server: McpServer, gate: threading.Event) -> None:
    """The handler blocks and is left behind: nothing else of the run is."""
    heard: list[GopherAgentEvent] = []
    with direct(server, lambda request: "accept" if gate.wait(20) else "cancel", on_event=heard.append) as agent:
        stream = agent.run_stream("decline_aware")
        if way == "with":
            with stream:
                assert any(map(is_asked, stream))
        else:
            assert any(map(is_asked, stream))
        if way == "close":
            stream.close()
        if way != "dropped":
            assert list(stream) == []
            with pytest.raises(AgentError, match="not iterated"):
                _ = stream.result
        del stream
        until(gone)
        assert server.wait_for("answer")[0]["action"] == "cancel"
        assert answered(heard) == [("cancel", "withdrawn")]
        assert heard[-1].kind == "run_completed" and heard[-1].data["status"] == "cancelled"
        assert agent.run("plain") == "plain: ok"


def test_two_streams_of_one_agent_are_done_in_their_order(engine: RecordingEngine, gate: threading.Event) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(f"{query} {gate.wait(20)}")
    with recorded() as agent:
        streams = [agent.run_stream(str(number)) for number in range(5)]
        streams[1].close()
        gate.set()
        for stream in (streams[4], streams[3], streams[2], streams[0]):  # whoever is iterated first
            assert kinds(list(stream)) == ["run_completed"]
    assert [query for query, _ in engine.runs] == ["0", "2", "3", "4"]


def test_a_slow_consumer_holds_up_nothing_and_loses_nothing(server: McpServer) -> None:
    ended = threading.Event()

    def on_event(event: GopherAgentEvent) -> None:
        if event.kind == "run_completed":
            ended.set()

    with direct(server, on_event=on_event) as agent:
        stream = agent.run_stream("plain")
        assert ended.wait(20), "the run waits for nobody"
        assert kinds(list(stream)) == [
            "iteration_start", "tool_dispatched", "tool_result", "iteration_end", "run_completed",
        ]  # fmt: skip


def test_a_callback_that_raises_harms_neither_run_nor_stream(
    server: McpServer, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(event: GopherAgentEvent) -> None:
        raise ValueError("mine")

    with direct(server, lambda request: "accept", on_event=broken) as agent:
        assert answered(list(agent.run_stream("decline_aware"))) == [("accept", "person")]
    assert caplog.text.count("on_event failed") == 7


def test_a_stream_inside_of_a_run_of_its_own_agent_is_refused(engine: RecordingEngine) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(str(list(agent.run_stream("inner"))))
    with recorded() as agent:
        with pytest.raises(AgentError, match="can't run its own agent"):
            agent.run("outer")


def test_another_agents_events_in_a_handler_stay_out_of_the_stream(server: McpServer) -> None:
    with direct(server) as other:
        with direct(server, lambda request: "accept" if other.run("plain") else "cancel") as agent:
            events = list(agent.run_stream("decline_aware"))
    assert [event.data["tool"] for event in events if event.kind == "tool_dispatched"] == ["decline_aware"]


def test_dispose_ends_a_stream(server: McpServer, gate: threading.Event) -> None:
    agent = direct(server, lambda request: "accept" if gate.wait(20) else "cancel")
    events: list[GopherAgentEvent] = []
    with pytest.raises(AgentError, match="disposed"):
        fill(events, agent.run_stream("decline_aware"), lambda event: is_asked(event) and agent.dispose())
    assert answered(events) == [("cancel", "withdrawn")] and events[-1].kind == "run_completed"
    until(gone)


def test_without_a_thread_it_fails_and_the_next_one_works(
    engine: RecordingEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with recorded() as agent:
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(AgentError, match="No thread could be started for the run"):
                agent.run_stream("q")
        assert len(list(agent.run_stream("q"))) == 1


def test_interrupts_of_the_run_reach_who_iterates(engine: RecordingEngine) -> None:
    def answer(query: str, timeout_ms: int) -> RunOutcome:
        raise KeyboardInterrupt

    engine.answer = answer
    with recorded() as agent, pytest.raises(KeyboardInterrupt):
        list(agent.run_stream("q"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_refuses_its_parents_stream(engine: RecordingEngine, gate: threading.Event) -> None:
    engine.answer = lambda query, timeout_ms: RunOutcome(str(gate.wait(20)))
    with recorded() as agent:
        stream = agent.run_stream("q")
        until(lambda: engine.runs)
        child = os.fork()
        if child == 0:
            try:
                next(stream)
            except AgentError as error:
                stream.close()
                os._exit(0 if "before a fork" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        gate.set()
        assert len(list(stream)) == 1


# ---- tasks -----------------------------------------------------------------------------------------------------------


async def as_list(stream: GopherAgentAsyncStream) -> list[GopherAgentEvent]:
    return [event async for event in stream]


def on_asyncio(main: Callable[[], Any]) -> None:
    asyncio.run(asyncio.wait_for(main(), 30))


@pytest.mark.parametrize("run", [on_asyncio, trio.run], ids=["asyncio", "trio"])
def test_a_task_iterates_and_has_the_result(run: Callable[..., Any], server: McpServer) -> None:
    async def main() -> None:
        with direct(server, lambda request: "accept") as agent:
            async with agent.run_stream_async("decline_aware") as stream:
                events = await as_list(stream)
            assert answered(events) == [("accept", "person")] and stream.text == "action: accept"
            with pytest.raises(AgentError, match="names none"):
                await as_list(agent.run_stream_async("there is no such thing"))
            assert await as_list(stream) == []

    run(main)
    until(gone)


def test_a_handler_may_wait_for_the_task(server: McpServer) -> None:
    seen = threading.Event()

    async def main() -> None:
        with direct(server, lambda request: "accept" if seen.wait(20) else "decline") as agent:
            stream = agent.run_stream_async("decline_aware")
            async for event in stream:
                if event.kind == "elicitation_asked":
                    seen.set()
            assert stream.text == "action: accept"

    on_asyncio(main)


@pytest.mark.parametrize("way", ["cancelled", "aclose", "dropped"])
def test_leaving_a_task_early_withdraws_what_is_asked(way: str, server: McpServer, gate: threading.Event) -> None:
    async def main() -> None:
        with direct(server, lambda request: "accept" if gate.wait(20) else "cancel") as agent:
            asked = asyncio.Event()

            async def consume() -> None:
                stream = agent.run_stream_async("decline_aware")
                async for event in stream:
                    if event.kind == "elicitation_asked":
                        asked.set()
                        if way != "cancelled":
                            break
                if way == "aclose":
                    await stream.aclose()

            task = asyncio.create_task(consume())
            await asked.wait()
            if way == "cancelled":
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                await task
            del task, consume
            gc.collect()
            while not gone():
                await asyncio.sleep(0.01)
            assert await agent.run_async("plain") == "plain: ok"
            assert server.actions() == ["cancel"]

    on_asyncio(main)


def test_outside_of_an_event_loop_it_says_what_is_needed(engine: RecordingEngine) -> None:
    with recorded() as agent, pytest.raises(AgentError, match="event loop"):
        agent.run_stream_async("q")


def test_a_loop_that_ends_ends_the_run(engine: RecordingEngine, gate: threading.Event) -> None:
    kept: list[Any] = []
    engine.answer = lambda query, timeout_ms: RunOutcome(str(gate.wait(20)))
    with recorded() as agent:

        async def main() -> None:
            kept.append(agent.run_stream_async("q"))
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(anext_of(kept[0]), 0.05)

        asyncio.run(main())
        gate.set()
        until(gone)


async def anext_of(stream: GopherAgentAsyncStream) -> GopherAgentEvent:
    return await stream.__anext__()


# ---- the process around, on both engines -----------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, threading
from gopher_mcp_python import AgentError, GopherAgent
engine, provider, url, way = sys.argv[1:]
forever = threading.Event()
def handler(request):
    forever.wait()
agent = GopherAgent.create_with_url(provider, "scripted", url, {"engine": engine, "elicitation": {"handler": handler}})
stream = agent.run_stream("decline_aware")
for event in stream:
    if event.kind == "elicitation_asked":
        break
def names():
    return [one.name for one in threading.enumerate()]
if way == "close":
    stream.close()
    assert "gopher agent stream" not in names(), names()
    stream = agent.run_stream('plain {"text": "again"}')
    assert [event.kind for event in stream][-1] == "run_completed"
    print(stream.text, flush=True)
    agent.dispose()
elif way == "ctrl-c":
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        for event in stream:
            pass
    except KeyboardInterrupt:
        print("interrupted", "gopher agent stream" not in names(), flush=True)
    agent.dispose()
else:
    print("open", flush=True)
"""


def program(variant: Variant, server: McpServer, environment: Environment, way: str) -> children.Ended:
    argv = [sys.executable, "-W", "error", "-c", PROGRAM, variant.engine, variant.provider, server.url, way]
    return children.run(argv, env=environment(variant), timeout=60)


@on_both
def test_closing_leaves_the_agent_usable(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(variant, server, environment_for, "close").check()
    assert "plain: again" in ended.out and ended.err == ""
    assert server.wait_for("answer") and server.actions() == ["cancel"]


@on_both
def test_ctrl_c_in_the_consumer(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(variant, server, environment_for, "ctrl-c")
    assert (ended.code, ended.out, ended.err) == (0, "interrupted True\n", "")
    assert server.wait_for("answer") and server.actions() == ["cancel"]


@on_both
def test_exit_with_an_open_stream(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(variant, server, environment_for, "exit")
    assert (ended.code, ended.out, ended.err) == (0, "open\n", "")
