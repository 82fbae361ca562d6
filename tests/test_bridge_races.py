"""Dispose, run and callback against each other, ten thousand times, and the same work three times with equal counts."""

from __future__ import annotations

import gc
import random
import threading
import time
from collections import Counter

import pytest

from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

RACES = 10_000


def settled(seconds: float = 20) -> None:
    """Until the bridge and the library have let everything go."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        counts, inside = _bridge.counts(), testkit.counts()
        if not any(counts[key] for key in ("live_agents", "live_calls", "live_requests", "threads")):
            if not any(inside[key] for key in ("agents", "runs", "threads", "callbacks", "strings")):
                return
        time.sleep(0.01)
    pytest.fail(f"not settled: {_bridge.counts()} {testkit.counts()}")


def race(pick: random.Random, closer: threading.Semaphore, victims: list[_bridge.AgentHandle]) -> str:
    """One agent, one run, a dispose at any moment from this thread, another one or the handler itself."""
    mode = pick.choice(["inline", "handed_over", "fixed"])
    who = pick.choice(["self", "other", "handler", "nobody"])
    handles: list[_bridge.AgentHandle] = []

    def answer(request: object) -> int:
        if who == "handler":
            for mine in tuple(handles):  # gone already where the callback outlasts its agent
                mine.close()
        return 1

    handle = testkit.handle(testkit.Host(answer), answer=mode, limit_ms=pick.choice([0, 1, 50]), wants_events=True)
    handles.append(handle)
    query = pick.choice(["elicit 2", "foreign", "parallel", "many 3 2", "late 1", "say x", "sleep 1; elicit"])
    if who == "other":
        victims.append(handle)
        closer.release()
    try:
        call = handle.run(query)
    except RuntimeError:  # closed already
        return "refused"
    for _ in range(pick.randrange(4)):
        if call.wait(pick.choice([0, 1])) == _bridge.WAKE_REQUEST and (pending := call.take()):
            pending.answer(pick.choice(["accept", "decline", "cancel"]))
    if who == "self":
        handle.close()
    end = call.wait(0)
    call.leave()
    handle.close()
    handles.clear()
    return {_bridge.WAKE_DONE: "done", _bridge.WAKE_CLOSED: "closed"}.get(end, "left")


@pytest.mark.timeout(600)
def test_ten_thousand_races() -> None:
    pick, ends = random.Random(20261130), Counter[str]()
    closer, victims, over = threading.Semaphore(0), list[_bridge.AgentHandle](), threading.Event()

    def close_victims() -> None:
        while closer.acquire() and not over.is_set():
            victims.pop().close()

    thread = threading.Thread(target=close_victims)
    thread.start()
    before = testkit.counts()["misuses"]
    for _ in range(RACES):
        ends[race(pick, closer, victims)] += 1
    over.set()
    closer.release()
    thread.join()
    settled()
    assert testkit.counts()["misuses"] == before
    assert set(ends) == {"refused", "done", "closed", "left"} and sum(ends.values()) == RACES, ends


def work() -> None:
    """Something of everything."""
    for mode in ("inline", "handed_over", "fixed"):
        handle = testkit.handle(answer=mode, wants_events=True)
        for query in ("elicit 2; foreign; parallel; odd", "many 4 5", "null -3 no", "error failed", "big 100000"):
            testkit.finish(handle.run(query))
        left = handle.run("sleep 20; elicit")
        left.wait(1)
        left.leave()
        handle.close()
    failed = _bridge.AgentHandle(testkit.library(), testkit.Host(), answer="fixed")
    outcome = testkit.finish(failed.create("url", "P", "script:null -20 down", None, "x", _bridge.NativeOptions()))
    assert not outcome.ok and outcome.error_code == -20
    with pytest.raises(ValueError, match="NUL"):
        failed.create("url", "P", "m", None, "a\0b")
    failed.close()


def census() -> tuple[int, int, int]:
    settled()
    gc.collect()
    return len(gc.get_objects()), threading.active_count(), _bridge.counts()["thread_states"]


def test_the_same_work_three_times_leaves_equal_counts() -> None:
    for _ in range(3):  # caches and first-use objects
        work()
    counts = []
    for _ in range(3):
        work()
        counts.append(census())
    objects = [objects for objects, _, _ in counts]
    # census() itself keeps a tuple a round, and counting makes a list. Fewer is no leak: a cache was emptied.
    assert objects[2] - min(objects) <= 6, counts
    assert len({threads for _, threads, _ in counts}) == 1, counts
    assert max(states for _, _, states in counts) <= 2, counts


def test_every_host_is_dropped_once() -> None:
    before = _bridge.counts()
    freed: list[int] = []

    class Freed(testkit.Host):
        def __del__(self) -> None:
            freed.append(1)

    for index in range(300):
        handle = testkit.handle(Freed(), answer="inline")
        if index % 3 == 0:
            testkit.finish(handle.run("foreign"))
        if index % 2:
            handle.close()  # the others are let go by their finaliser
        del handle
    settled()
    gc.collect()
    after = _bridge.counts()
    assert after["dropped_hosts"] - before["dropped_hosts"] == 300
    assert after["released_handles"] - before["released_handles"] == 300
    assert len(freed) == 300
