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
from dataclasses import replace
from typing import Any

import anyio
import pytest
import trio

from gopher_mcp_python import (
    AgentError,
    GopherAgent,
    GopherAgentAsyncStream,
    GopherAgentElicitationRequest,
    GopherAgentElicitationResponse,
    GopherAgentEvent,
    GopherAgentStream,
    TimeoutError,
    non_blocking,
)
from gopher_mcp_python.copying import copied
from gopher_mcp_python.engines.base import RunOutcome
from gopher_mcp_python.forms import FormContentError
from gopher_mcp_python.run_events import RunEvents
from gopher_mcp_python.toolset.handling import asker_for
from tests.support import children
from tests.support.recording_engine import RecordingEngine
from tests.support.servers import McpServer
from tests.support.variants import Variant, on_both, with_model

Environment = Callable[[Variant], dict[str, str]]
SIGN_IN = "https://provider.test/authorize?response_type=code&client_id=app&scope=mail"
STREAM_THREAD = "gopher agent stream"


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> RecordingEngine:
    return RecordingEngine.instead_of_ours(monkeypatch)


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


def test_events_can_be_members_of_a_set() -> None:
    run, events = heard()
    run.tell("iteration_start", 7, 1, {"a": [1]})
    run.tell("iteration_end", 7, 1, {"a": [1]})
    again = replace(events[0])
    assert set(events) == {again, events[1]} and len({*events, again, replace(again, data={})}) == 3


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
engine, url, jobs = sys.argv[1:4]
fields = ("kind", "run_id", "iteration", "sequence", "call_id", "data")
def show(provider, query, model, handler):
    called, seen = [], []
    answer = handler if handler in ("cancel", "decline") else (lambda request: handler)
    options = {"engine": engine, "elicitation": {"handler": answer}, "on_event": called.append}
    facts = {"error": None}
    with GopherAgent.create_with_url(provider, model, url, options) as agent:
        stream = agent.run_stream(query, 20000)
        try:
            for event in stream:
                seen.append(event)
        except AgentError as error:
            facts["error"] = str(error)
        facts["text"], facts["status"] = stream.text, stream.result.status.value
        facts["iterations"] = stream.result.iteration_count
    facts["events"] = [{name: getattr(event, name) for name in fields} for event in seen]
    for event in facts["events"]:
        if "url" in event["data"]:
            event["data"] = {**event["data"], "url": event["data"]["url"].partition("?")[0]}
    facts["heard"] = sorted(called, key=lambda event: event.sequence) == seen
    return facts
print(json.dumps([show(*job) for job in json.loads(jobs)]))
"""
SEVERAL = ('plain {"text": "a"} then decline_aware then plain {"text": "b"}', "scripted", "accept")
PARALLEL = ('plain {"text": "a"} and plain {"text": "b"}', "parallel", "cancel")
FAILING = ("plain", "status-400", "cancel")
DECLINING = ("decline_aware", "scripted", "decline")
JOBS = [SEVERAL, PARALLEL, FAILING, DECLINING]  # query, model, handler
MODELS = ("OpenAIProvider", "AnthropicProvider")
_shown: dict[str, dict[tuple[str, ...], dict[str, Any]]] = {}


def shown(variant: Variant, url: str, environment: Environment, job: tuple[str, ...]) -> dict[str, Any]:
    """What one job told. An engine does all jobs in one process: the vendors' SDKs take seconds to import."""
    if variant.engine not in _shown:
        jobs = [(provider, *one) for provider in MODELS for one in JOBS]
        argv = [sys.executable, "-W", "error", "-c", SHOW, variant.engine, url, json.dumps(jobs)]
        ended = children.run(argv, env=environment(variant), timeout=120).check()
        _shown[variant.engine] = dict(zip(jobs, json.loads(ended.out), strict=True))
    facts = _shown[variant.engine][(variant.provider, *job)]
    assert facts["heard"], "the callback heard the same"
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
    events = shown(variant, server.url, environment_for, SEVERAL)["events"]
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
    events = shown(variant, server.url, environment_for, PARALLEL)["events"]
    calls = {event["call_id"]: event["data"]["args"]["text"] for event in events if event["kind"] == "tool_dispatched"}
    results = {event["call_id"]: event["data"]["result"] for event in events if event["kind"] == "tool_result"}
    assert sorted(calls.values()) == ["a", "b"] and calls.keys() == results.keys()
    assert all(f"plain: {text}" in str(results[call_id]) for call_id, text in calls.items())


@with_model
def test_a_run_that_fails_ends_with_run_completed_and_raises(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    facts = shown(variant, server.url, environment_for, FAILING)
    assert [event["kind"] for event in facts["events"]] == ["iteration_start", "llm_request", "run_completed"]
    end = facts["events"][-1]["data"]
    assert end["status"] != "completed" and end["error"]
    assert "failure 400" in facts["error"] and (facts["status"], facts["text"]) == ("error", "")


@with_model
def test_a_policy_is_told_like_a_person(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    facts = shown(variant, server.url, environment_for, DECLINING)
    asked, answered = (event for event in facts["events"] if event["kind"] in ASKED)
    assert (answered["data"]["action"], answered["data"]["how"]) == ("decline", "policy")
    assert asked["call_id"] == answered["call_id"]


# ---- what observers can't change -------------------------------------------------------------------------------------

NOT_ALLOWED = GopherAgentElicitationResponse("accept", {"anything": "x"})


def loosen(schema: dict[str, Any]) -> None:
    schema["required"] = []
    schema["properties"].clear()


def loosen_told(event: GopherAgentEvent) -> None:
    if is_asked(event):
        loosen(event.data["requested_schema"])


def test_a_callback_cannot_change_the_form_that_is_asked(server: McpServer) -> None:
    shown_fields: list[str] = []

    def handler(request: Any) -> GopherAgentElicitationResponse:
        shown_fields.extend(request.requested_schema["properties"])
        return NOT_ALLOWED

    with direct(server, handler, on_event=loosen_told) as agent:
        (asked,) = filter(is_asked, list(agent.run_stream("form_tool")))
    assert shown_fields == list(asked.data["requested_schema"]["properties"]) != []
    assert "accept" not in server.actions()


def test_who_iterates_cannot_change_the_form_that_is_asked(server: McpServer) -> None:
    loosened = threading.Event()

    def handler(request: Any) -> GopherAgentElicitationResponse:
        assert loosened.wait(20)
        return NOT_ALLOWED

    with direct(server, handler) as agent:
        events = []
        for event in agent.run_stream("form_tool"):
            events.append(event)
            loosen_told(event)
            if is_asked(event):
                loosened.set()
    assert answered(events) == [("cancel", "error")] and "accept" not in server.actions()


def test_a_handler_cannot_change_what_its_answer_is_checked_by(server: McpServer) -> None:
    def handler(request: Any) -> GopherAgentElicitationResponse:
        loosen(request.requested_schema)
        return NOT_ALLOWED

    with direct(server, handler) as agent:
        assert answered(list(agent.run_stream("form_tool"))) == [("cancel", "error")]
    assert "accept" not in server.actions()


def test_nor_can_the_handler_of_a_toolset() -> None:
    def handler(request: Any) -> GopherAgentElicitationResponse:
        loosen(request.requested_schema)
        return NOT_ALLOWED

    schema = {"type": "object", "properties": {"reason": {"type": "string"}}, "required": ["reason"]}
    asker = asker_for(handler)
    assert asker is not None
    with pytest.raises(FormContentError, match="reason"):
        asyncio.run(asker.ask(GopherAgentElicitationRequest("form", message="why", requested_schema=schema)))


def test_what_is_told_is_a_copy_at_any_depth_for_each_who_hears_it() -> None:
    def spoil(event: GopherAgentEvent) -> None:
        event.data["args"]["list"][0].clear()
        del event.data["tool"]

    events: list[GopherAgentEvent] = []
    data: dict[str, Any] = {"tool": "a", "args": {"list": [{"deep": 1}]}}
    RunEvents(spoil, events.append).tell("tool_dispatched", 1, 1, data)
    assert data == events[0].data == {"tool": "a", "args": {"list": [{"deep": 1}]}}
    RunEvents(None, spoil).tell("tool_dispatched", 1, 1, data)
    RunEvents(spoil).tell("tool_dispatched", 1, 1, data)
    assert data == {"tool": "a", "args": {"list": [{"deep": 1}]}}


def test_copies_of_what_is_deep_and_of_what_holds_itself() -> None:
    data: dict[str, Any] = {"itself": None}
    data["itself"] = [data]
    mine = copied(data)
    assert mine["itself"][0] is mine is not data
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"in": [deep]}
    mine = copied(deep)
    for _ in range(5000):
        assert mine is not deep
        mine, deep = mine["in"][0], deep["in"][0]
    assert mine == deep == {}


# ---- how questions end -----------------------------------------------------------------------------------------------


def answered(events: list[GopherAgentEvent]) -> list[tuple[str, str]]:
    assert kinds(events).count("elicitation_asked") == kinds(events).count("elicitation_answered")
    return [(one.data["action"], one.data["how"]) for one in events if one.kind == "elicitation_answered"]


@pytest.mark.parametrize("handler", ["decline", non_blocking(lambda request: "decline")])
def test_what_answers_without_a_person_is_a_policy(handler: Any, server: McpServer) -> None:
    with direct(server, handler) as agent:
        assert answered(list(agent.run_stream("decline_aware"))) == [("decline", "policy")]


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


@pytest.mark.parametrize("way", ["another thread", "on_event", "the handler"])
def test_a_stream_that_is_closed_elsewhere_just_ends(way: str, server: McpServer, gate: threading.Event) -> None:
    """For the thread that waits for an event, too: what the run ends with is nobody's any more."""
    streams: list[GopherAgentStream] = []
    opened = threading.Event()

    def close() -> None:
        assert opened.wait(20)
        streams[0].close()

    def handler(request: Any) -> str:
        if way == "the handler":
            close()
        return "accept" if gate.wait(20) else "cancel"

    def on_event(event: GopherAgentEvent) -> None:
        if way == "on_event" and is_asked(event):
            close()

    with direct(server, handler, on_event=on_event) as agent:
        streams.append(agent.run_stream("decline_aware"))
        opened.set()
        events = []
        for event in streams[0]:
            events.append(event)
            if way == "another thread" and is_asked(event):
                threading.Timer(0.1, close).start()
        assert "run_completed" not in kinds(events) and "closed" in repr(streams[0])
        with pytest.raises(AgentError, match="not iterated"):
            _ = streams[0].result
        assert server.wait_for("answer")[0]["action"] == "cancel"
        until(gone)
        assert agent.run("plain") == "plain: ok"


def test_two_threads_share_a_stream(server: McpServer) -> None:
    taken: list[list[GopherAgentEvent]] = [[], []]
    with direct(server, lambda request: "accept") as agent:
        stream = agent.run_stream("decline_aware")
        threads = [threading.Thread(target=fill, args=(events, stream)) for events in taken]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
            assert not thread.is_alive()
    assert sorted(event.sequence for event in taken[0] + taken[1]) == list(range(1, 8))


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


def test_a_handler_that_is_left_behind_streams_no_more(server: McpServer) -> None:
    """Where its own run was called off, so is the stream of another agent that it iterates, or opens then."""
    ends: list[str] = []
    inside, left = threading.Event(), threading.Event()

    def handler(request: Any) -> str:
        for query in ('slow {"seconds": 20}', "plain"):
            try:
                for _ in other.run_stream(query):
                    inside.set()
            except AgentError as error:
                ends.append(str(error))
            left.wait(20)
        return "accept"

    with direct(server) as other, direct(server, handler) as agent:
        with agent.run_stream("decline_aware"):
            assert inside.wait(20)
        left.set()
        until(lambda: len(ends) == 2)
        assert all("was called off" in end for end in ends)
    until(gone)


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


def at_once_on_asyncio(*functions: Callable[[], Any]) -> list[Any]:
    async def main() -> list[Any]:
        return list(await asyncio.wait_for(asyncio.gather(*(function() for function in functions)), 20))

    return asyncio.run(main())


def at_once_on_trio(*functions: Callable[[], Any]) -> list[Any]:
    results: dict[int, Any] = {}

    async def keep(number: int) -> None:
        results[number] = await functions[number]()

    async def main() -> None:
        with trio.fail_after(20):
            async with trio.open_nursery() as nursery:
                for number in range(len(functions)):
                    nursery.start_soon(keep, number)

    trio.run(main)
    return [results[number] for number in range(len(functions))]


at_once = pytest.mark.parametrize("at_once", [at_once_on_asyncio, at_once_on_trio], ids=["asyncio", "trio"])


@at_once
@pytest.mark.parametrize("way", ["aclose", "aclose on another loop", "cancelled"])
def test_a_stream_that_is_closed_by_one_task_ends_for_the_others(
    way: str, at_once: Callable[..., list[Any]], server: McpServer, gate: threading.Event
) -> None:
    streams: list[GopherAgentAsyncStream] = []
    asked = threading.Event()

    async def iterate() -> list[GopherAgentEvent]:
        streams.append(agent.run_stream_async("decline_aware"))
        events = []
        async for event in streams[0]:
            events.append(event)
            if is_asked(event):
                asked.set()
        return events

    async def close() -> None:
        while not asked.is_set():
            await anyio.sleep(0.01)
        await anyio.sleep(0.05)  # it waits for the next event now
        if way == "aclose":
            await streams[0].aclose()
        elif way == "cancelled":
            with anyio.move_on_after(0.05):
                await anext_of(streams[0])
        else:
            threading.Thread(target=asyncio.run, args=(streams[0].aclose(),)).start()

    with direct(server, lambda request: "accept" if gate.wait(20) else "cancel") as agent:
        events, _ = at_once(iterate, close)
        assert kinds(events)[-1] == "elicitation_asked" and "closed" in repr(streams[0])
        assert server.wait_for("answer")[0]["action"] == "cancel"
        until(gone)


@at_once
def test_two_tasks_share_a_stream(at_once: Callable[..., list[Any]], server: McpServer) -> None:
    streams: list[GopherAgentAsyncStream] = []

    async def iterate() -> list[GopherAgentEvent]:
        if not streams:
            streams.append(agent.run_stream_async("decline_aware"))
        return await as_list(streams[0])

    with direct(server, lambda request: "accept") as agent:
        first, second = at_once(iterate, iterate)
    assert sorted(event.sequence for event in first + second) == list(range(1, 8))
    assert streams[0].text == "action: accept"


@at_once
def test_a_failure_is_raised_in_one_task_and_ends_the_other(
    at_once: Callable[..., list[Any]], engine: RecordingEngine, gate: threading.Event
) -> None:
    def answer(query: str, timeout_ms: int) -> RunOutcome:
        raise AgentError(f"broken {gate.wait(20)}")

    async def iterate() -> str:
        if not streams:
            streams.append(agent.run_stream_async("q"))
            threading.Timer(0.1, gate.set).start()  # both wait then
        try:
            return str(len(await as_list(streams[0])))
        except AgentError as error:
            return str(error)

    streams: list[GopherAgentAsyncStream] = []
    engine.answer = answer
    with recorded() as agent:
        outcomes = at_once(iterate, iterate)
    assert sum("broken" in outcome for outcome in outcomes) == 1


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
from gopher_mcp_python import GopherAgent
engine, provider, url = sys.argv[1:]
forever = threading.Event()
def handler(request):
    forever.wait()
agent = GopherAgent.create_with_url(provider, "scripted", url, {"engine": engine, "elicitation": {"handler": handler}})
def asked():
    stream = agent.run_stream("decline_aware")
    for event in stream:
        if event.kind == "elicitation_asked":
            return stream
def left():
    return "gopher agent stream" not in [one.name for one in threading.enumerate()]
stream = asked()
threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    for event in stream:
        pass
except KeyboardInterrupt:
    print("interrupted", left())
stream = asked()
stream.close()
print("closed", left())
stream = agent.run_stream('plain {"text": "again"}')
assert [event.kind for event in stream][-1] == "run_completed"
print("plain: again" in stream.text)
stream = asked()
print("open", flush=True)
"""


@on_both
def test_ctrl_c_closing_and_an_exit_with_an_open_stream(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    """What is asked is answered with cancel, the agent stays usable, and the exit waits for nothing."""
    argv = [sys.executable, "-W", "error", "-c", PROGRAM, variant.engine, variant.provider, server.url]
    ended = children.run(argv, env=environment_for(variant), timeout=60)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.splitlines() == ["interrupted True", "closed True", "True", "open"]
    until(lambda: len(server.actions()) >= 2)
    assert server.actions()[:2] == ["cancel", "cancel"]
