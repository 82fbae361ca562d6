"""Runs one scenario in this process and prints what happened as one JSON line.

    python -m tests.scenarios.driver '{"scenario": "answer", "engine": "embedded", "provider": "DirectProvider",
                                       "url": "http://127.0.0.1:1234/mcp", ...}'

A scenario is a function that takes `Given` and returns facts; the test asserts on the facts and on the server's log.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import urllib.request
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import gopher_mcp_python as gopher
from tests.support.servers import click_allow

PROFILE = "get mail profile, using get_gmail_users_get_profile"
Facts = dict[str, Any]
SCENARIOS: dict[str, Callable[[Given], Facts]] = {}


def scenario(function: Callable[[Given], Facts]) -> Callable[[Given], Facts]:
    SCENARIOS[function.__name__] = function
    return function


@dataclass
class Given:
    """What a test asks for."""

    scenario: str
    engine: str
    provider: str
    url: str
    model: str = "scripted"
    query: str = PROFILE
    answer: str = "accept"
    timeout_ms: int = 30000
    options: Facts = field(default_factory=dict)
    more: Facts = field(default_factory=dict)

    def agent(self, elicitation: Any = None, **options: Any) -> gopher.GopherAgent:
        given = {"engine": self.engine, "elicitation": elicitation, **self.options, **options}
        return gopher.GopherAgent.create_with_url(self.provider, self.model, self.url, given)


class Handler:
    """Answers as told and remembers what it was asked, and where."""

    def __init__(self, answer: str = "accept", seconds: float = 0, then: Callable[[Any], Any] | None = None) -> None:
        self.answer, self.seconds, self.then = answer, seconds, then
        self.requests: list[Facts] = []
        self.active = self.most = 0
        self.called = threading.Event()

    def __call__(self, request: Any) -> str:
        self.active += 1
        self.most = max(self.most, self.active)
        self.called.set()
        names = ("mode", "elicitation_id", "message", "request_id_json")
        facts = {name: getattr(request, name) for name in names}
        facts["path"] = (request.url or "").partition("?")[0]
        facts["main_thread"] = threading.current_thread() is threading.main_thread()
        raw = (request.raw_json or "{}", request.raw_params_json or "{}")  # none for a URL that came as text
        facts["raw"] = [sorted(json.loads(text)) for text in raw]
        self.requests.append(facts)
        try:
            time.sleep(self.seconds)
            if self.then:
                self.then(request)
        finally:
            self.active -= 1
        return self.answer


def failure(call: Callable[[], Any]) -> Facts:
    """How a call failed, and after how long."""
    begin = time.monotonic()
    try:
        value = call()
    except BaseException as error:
        kinds = [cls.__name__ for cls in type(error).__mro__ if cls.__module__.startswith("gopher_mcp_python")]
        facts = {"error": type(error).__name__, "kinds": kinds, "message": str(error)}
    else:
        facts = {"error": None, "text": value if isinstance(value, str) else repr(value)}
    return {**facts, "seconds": time.monotonic() - begin}


# ---- Answers --------------------------------------------------------------------------------------------------------


@scenario
def answer(given: Given) -> Facts:
    """One run with a handler that answers at once."""
    handler = Handler(given.answer)
    with given.agent({"handler": handler}) as agent:
        begin = time.monotonic()
        result = agent.run_detailed(given.query, given.timeout_ms)
        seconds = time.monotonic() - begin
        return {"engine": agent.engine, "text": result.response, "success": result.is_success(),
                "iterations": result.iteration_count, "requests": handler.requests, "seconds": seconds}  # fmt: skip


@scenario
def authorization(given: Given) -> Facts:
    """The main job: the person visits the page, presses Allow and says "finished"; default options otherwise."""
    handler = Handler("accept", then=lambda request: click_allow(request.url))
    with given.agent({"handler": handler}) as agent:
        first = agent.run(given.query, given.timeout_ms)
        return {"text": first, "asked": len(handler.requests)}


@scenario
def fixed_answer(given: Given) -> Facts:
    """A policy instead of a handler: "cancel", "decline", or elicitation switched off."""
    with given.agent(given.more["elicitation"]) as agent:
        return failure(lambda: agent.run(given.query, given.timeout_ms))


@scenario
def handler_error(given: Given) -> Facts:
    """A handler that raises, with a secret in its text; and one that answers nonsense."""
    raised = []

    def broken(request: Any) -> str:
        raised.append(ValueError(f"cannot open {request.url}"))
        raise raised[-1]

    with given.agent({"handler": broken}) as agent:
        result = agent.run_detailed(given.query, given.timeout_ms)
    cause = getattr(result, "elicitation_cause", None)
    with given.agent({"handler": lambda request: "perhaps"}) as agent:
        nonsense = agent.run_detailed(given.query, given.timeout_ms)
    same = cause is raised[0]
    return {"text": result.response, "same_cause": same, "nonsense": type(nonsense.elicitation_cause).__name__}


@scenario
def keyboard_interrupt(given: Given) -> Facts:
    """Ctrl-C (or sys.exit) inside a handler: answered cancel, raised again from run()."""

    def interrupt(request: Any) -> str:
        raise KeyboardInterrupt if given.more["kind"] == "KeyboardInterrupt" else SystemExit(3)

    with given.agent({"handler": interrupt}) as agent:
        return failure(lambda: agent.run(given.query, given.timeout_ms))


@scenario
def nested(given: Given) -> Facts:
    """A handler that runs its own agent, which would wait for itself, and one that disposes it."""
    inner: list[Facts] = []
    handler = Handler("accept", then=lambda request: inner.append(failure(lambda: agent.run("plain", 5000))))
    with given.agent({"handler": handler}) as agent:
        outer = failure(lambda: agent.run(given.query, given.timeout_ms))
    agent = given.agent({"handler": Handler("accept", then=lambda request: agent.dispose())})
    disposed = failure(lambda: agent.run(given.query, given.timeout_ms))
    return {"inner": inner, "outer": outer, "disposed": disposed, "is_disposed": agent.is_disposed()}


# ---- Time -----------------------------------------------------------------------------------------------------------


@scenario
def handler_timeout(given: Given) -> Facts:
    """A handler that takes longer than its limit, three times."""
    handler = Handler("accept", seconds=given.more["handler_seconds"])
    with given.agent({"handler": handler, "timeout_ms": given.more["limit_ms"]}) as agent:
        runs = [failure(lambda: agent.run(given.query, given.timeout_ms)) for _ in range(3)]
    return {"runs": runs, "asked": len(handler.requests)}


@scenario
def slow_tool(given: Given) -> Facts:
    """A tool that outlasts the run's timeout; then a good run on the same agent."""
    with given.agent(given.more.get("elicitation")) as agent:
        late = failure(lambda: agent.run('slow {"seconds": 4}', 1000))
        good = failure(lambda: agent.run('plain {"text": "fresh"}', given.timeout_ms))
        time.sleep(max(0.0, 4.5 - good["seconds"] - late["seconds"]))  # the late result has come by now
        again = failure(lambda: agent.run('plain {"text": "again"}', given.timeout_ms))
    return {"late": late, "good": good, "again": again}


@scenario
def persons_time(given: Given) -> Facts:
    """A person who takes longer than the whole run's timeout."""
    handler = Handler("accept", seconds=2.5)
    with given.agent({"handler": handler}) as agent:
        return failure(lambda: agent.run(given.query, 2000))


# ---- Several at once ------------------------------------------------------------------------------------------------


@scenario
def concurrent(given: Given) -> Facts:
    """Four runs at the same time on two agents, each with its own answer."""
    handlers = [Handler("accept"), Handler("decline")]
    agents = [given.agent({"handler": handler}) for handler in handlers]
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(agents[at % 2].run, f'plain {{"text": "run-{at}"}}', given.timeout_ms) for at in range(4)]
        texts = [run.result(60) for run in runs]
        runs = [pool.submit(agents[at % 2].run, "decline_aware", given.timeout_ms) for at in range(4)]
        asked = [run.result(60) for run in runs]
    for agent in agents:
        agent.dispose()
    return {"texts": texts, "asked": asked, "requests": [len(handler.requests) for handler in handlers]}


@scenario
def in_order(given: Given) -> Facts:
    """Requests that come at the same time are answered one after the other."""
    handler = Handler("accept", seconds=0.2)
    with given.agent({"handler": handler}) as agent:
        text = agent.run(given.query, given.timeout_ms)
    return {"text": text, "requests": handler.requests, "most_at_once": handler.most}


# ---- Life and death -------------------------------------------------------------------------------------------------


@scenario
def dispose_during_run(given: Given) -> Facts:
    """Agents that are disposed while a tool or a handler is busy, from another thread or from the handler."""

    def one(number: int) -> str:
        asked = number % 5 == 0
        handler = Handler("accept", seconds=0.3)
        agent = given.agent({"handler": handler} if asked else False)
        ended: list[Facts] = []
        query = "decline_aware" if asked else 'slow {"seconds": 0.5}'
        runner = threading.Thread(target=lambda: ended.append(failure(lambda: agent.run(query, 20000))))
        runner.start()
        if asked and number % 2:
            handler.called.wait(10)
        else:
            time.sleep(0.002 * (number % 40))
        begin = time.monotonic()
        agent.dispose()
        blocked = time.monotonic() - begin
        runner.join(20)
        if runner.is_alive() or blocked > 0.5:
            return f"run alive: {runner.is_alive()}, dispose took {blocked:.2f} s"
        return str(ended[0]["error"])

    with ThreadPoolExecutor(8) as pool:
        outcomes = list(pool.map(one, range(given.more["times"])))
    return {"outcomes": {outcome: outcomes.count(outcome) for outcome in outcomes}}


@scenario
def create_time(given: Given) -> Facts:
    """A server that asks as soon as the session starts, before any run."""
    handler = Handler("accept")
    with given.agent({"handler": handler}) as agent:
        end = time.monotonic() + 5
        while not handler.requests and time.monotonic() < end:
            time.sleep(0.02)
        text = agent.run("plain", given.timeout_ms)
    return {"text": text, "requests": handler.requests}


@scenario
def gateway(given: Given) -> Facts:
    """A gateway with a pending sign-in: an agent, then runs, and how often was asked by the end of each."""
    more = given.more

    def allow(request: Any) -> None:
        if given.answer == "accept" and more.get("allow", True):
            click_allow(request.url)

    handler = Handler(given.answer, seconds=more.get("seconds", 0), then=allow)
    with given.agent({"handler": handler}) as agent:
        time.sleep(more.get("pause", 0))  # the question may come after the agent has been created
        asked, runs = [len(handler.requests)], []
        for number in range(more.get("runs", 1)):
            if number and more.get("forget"):
                urllib.request.urlopen(given.url.replace("/mcp", "/_forget"), b"", timeout=10).close()
            runs.append(failure(lambda: agent.run(given.query, given.timeout_ms)))
            asked.append(len(handler.requests))
    return {"runs": runs, "asked": asked, "requests": handler.requests, "most_at_once": handler.most}


@scenario
def leak(given: Given) -> Facts:
    """The same work again and again: what is open after each round, and the memory in use."""

    def one_round() -> Facts:
        for _ in range(2):
            with given.agent({"handler": Handler("accept")}) as agent:
                agent.run("decline_aware", given.timeout_ms)
        end = time.monotonic() + 10
        bridge = sys.modules["gopher_mcp_python.ffi._bridge"]
        while any(n for name, n in bridge.counts().items() if name.startswith("live_")) and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.3)
        return {"counts": {key: n for key, n in bridge.counts().items() if key.startswith("live_")},
                "threads": threading.active_count(), "descriptors": len(os.listdir("/proc/self/fd")),
                "tasks": len(os.listdir("/proc/self/task"))}  # fmt: skip

    one_round()
    return {"rounds": [one_round() for _ in range(3)]}


# ---- Errors, settings, the process around ---------------------------------------------------------------------------


@scenario
def create_failure(given: Given) -> Facts:
    return failure(lambda: given.agent({"handler": "cancel"}))


@scenario
def run_failure(given: Given) -> Facts:
    """A run that fails, and what run_detailed makes of it."""
    with given.agent({"handler": "cancel"}) as agent:
        facts = failure(lambda: agent.run(given.query, given.timeout_ms))
        detailed = agent.run_detailed(given.query, given.timeout_ms)
    return {**facts, "status": detailed.status.value, "error_message": detailed.error_message}


@scenario
def events(given: Given) -> Facts:
    seen: list[Any] = []
    with given.agent({"handler": Handler("accept")}, on_event=seen.append) as agent:
        agent.run(given.query, given.timeout_ms)
    return {"kinds": [event.kind for event in seen], "runs": sorted({event.run_id for event in seen})}


@scenario
def libraries_after(given: Given) -> Facts:
    """`import sqlite3` and libpq after the engine has been loaded and used."""
    assert "sqlite3" not in sys.modules
    with given.agent({"handler": Handler("accept")}) as agent:
        agent.run("plain", given.timeout_ms)
        import sqlite3

        with sqlite3.connect(":memory:") as database:
            number = database.execute("select 6 * 7").fetchone()[0]
            database.execute("create table t (n)")
            dump = bool(database.serialize()) if sys.version_info >= (3, 11) else True
        database.close()
        os.environ["PSYCOPG_IMPL"] = given.more["implementation"]
        import psycopg

        with psycopg.connect(given.more["dsn"]) as connection:
            row = connection.execute("select 6 * 7").fetchone()
        text = agent.run("plain", given.timeout_ms)
    found = {"sqlite": number, "serialize": dump, "libpq": row and row[0], "text": text}
    return {**found, "implementation": psycopg.pq.__impl__}


@scenario
def quiet_default(given: Given) -> Facts:
    """Nobody to ask: the default handler without a terminal, under whatever debugging the environment sets."""
    with given.agent({"open_browser": False}) as agent:
        return failure(lambda: agent.run(given.query, given.timeout_ms))


@scenario
def old_library(given: Given) -> Facts:
    """A vendor library without elicitation."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = []

        def create() -> str:
            made.append(given.agent(given.more.get("elicitation")))
            return str(made[0].engine)

        facts = failure(create)
        for agent in made:
            with agent:
                facts["plain"] = failure(lambda agent=agent: agent.run("plain", given.timeout_ms))  # type: ignore[misc]
    facts["warnings"] = [[warning.category.__name__, str(warning.message)] for warning in caught]
    return facts


def main(argument: str) -> None:
    given = Given(**json.loads(argument))
    facts = SCENARIOS[given.scenario](given)
    print(json.dumps(facts, default=repr), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
