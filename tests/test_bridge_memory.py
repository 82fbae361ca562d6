"""The bridge without memory: Python's n-th allocation fails, for every n. Nothing crashes, hangs or is left behind.

Each in a child, since CPython's own test module makes them fail. Those of csrc: tests/c/test_memory.c.
"""

from __future__ import annotations

import sys

import pytest

from tests.support import children, testkit

pytest.importorskip("_testcapi")

PRELUDE = """
import _testcapi, ctypes, gc, sys, time
from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

sys.unraisablehook = lambda _: None  # callbacks tell it of each MemoryError

class Host(testkit.Host):
    def unattended(self, pending):
        pending.request
        pending.answer("decline")

class Request(ctypes.Structure):
    _fields_ = [(name, ctypes.c_char_p) for name in "abcdefg"]

request = Request(b"7", b"e-1", b"url", b"Sign in", b"https://provider.example.test/", b"{}", b"{}")
where = ctypes.c_void_p(ctypes.addressof(request))
trampoline = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(_bridge.trampoline_address())

def failing(n, act):
    "What act() gives while allocation n fails; None for a MemoryError."
    gc.collect()
    _testcapi.set_nomemory(n, n + 1)
    try:
        return act()
    except (MemoryError, ctypes.ArgumentError):  # the second: ctypes had none, before the call
        return None
    finally:
        _testcapi.remove_mem_hooks()

def until_done(call):
    try:
        while call.wait(1000) != _bridge.WAKE_DONE: pass
        return call.outcome()
    finally:
        call.leave()

def each(act, well, failures):
    "For every n until an act() is past its last allocation: then all is well ten times over."
    good = n = 0
    while good < 10:
        result = act(n)
        good = good + 1 if result == well else 0
        n += 1
        assert n < 1000
    assert n - 10 >= failures, n
    gc.collect()
    give_up = time.monotonic() + 20
    names = ("live_agents", "live_calls", "live_requests", "threads")
    while any(_bridge.counts()[name] for name in names):
        assert time.monotonic() < give_up, _bridge.counts()
        time.sleep(0.01)
    assert testkit.counts()["misuses"] == 0
"""
CASES = {
    "an inline answer": """
def act(n):
    handle = testkit.handle(answer="inline")
    token = ctypes.c_void_p(handle.token)
    answer = failing(n, lambda: trampoline(where, token))
    assert answer in (1, 3, None)
    handle.close()
    return answer
each(act, 1, 2)
""",
    "a request that nobody waits for": """
def act(n):
    handle = testkit.handle(Host())
    token = ctypes.c_void_p(handle.token)
    answer = failing(n, lambda: trampoline(where, token))
    assert answer in (2, 3, None)
    handle.close()
    return answer
each(act, 2, 2)
""",
    "a request that is taken": """
def act(n):
    handle = testkit.handle()
    call = handle.run("elicit")
    while call.wait(1000) != _bridge.WAKE_REQUEST: pass
    pending = failing(n, call.take)
    if not pending: assert call.take().answer(1)  # it was not lost
    else: assert pending.answer(1)
    assert until_done(call).text == "1"
    handle.close()
    return pending is not None
each(act, True, 1)
""",
    "a run": """
def act(n):
    handle = testkit.handle()
    outcome = failing(n, lambda: until_done(handle.run("say x")))
    handle.close()
    return outcome and outcome.text
each(act, "x", 3)
""",
    "a create": """
host, library = Host(), testkit.library()
options = _bridge.NativeOptions(access_token="t", headers={"A": "b"}, servers=[_bridge.ServerOptions(url="u")])
def create():
    handle = _bridge.AgentHandle(library, host, answer="inline")
    try:
        return until_done(handle.create("json", "Provider", "m", None, "{}", options)).ok
    finally:
        handle.close()
each(lambda n: failing(n, create), True, 10)
""",
}


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    testkit.folder()


@pytest.mark.parametrize("case", CASES)
def test_no_memory_for(case: str) -> None:
    ended = children.run([sys.executable, "-c", PRELUDE + CASES[case]])
    assert (ended.code, ended.err) == (0, ""), (ended.code, ended.err)
