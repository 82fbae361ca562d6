"""The bridge at the edges of a process: import, exit, fork, subinterpreters. Each in a child with an empty stderr."""

from __future__ import annotations

import sys

import pytest

from tests.support import children, testkit

PRELUDE = """
import os, sys, threading, time
from gopher_mcp_python.ffi import _bridge
from tests.support import testkit
"""


def child(code: str, *, seconds: float = 60) -> children.Ended:
    # 3.12 and later warn of any fork with threads, which is what these tests are about.
    argv = [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", PRELUDE + code]
    ended = children.run(argv, timeout=seconds)
    assert (ended.code, ended.err) == (0, ""), (ended.code, ended.out, ended.err)
    return ended


@pytest.fixture(autouse=True, scope="module")
def _built() -> None:
    testkit.folder()  # once, here, rather than in a child


def test_importing_opens_no_library_and_starts_no_thread() -> None:
    code = """
import os, sys
from gopher_mcp_python.ffi import _bridge
assert len(os.listdir("/proc/self/task")) == 1
maps = open("/proc/self/maps").read()
assert "gopher-orch" not in maps and "testkit" not in maps
assert "ctypes" not in sys.modules
"""
    ended = children.run([sys.executable, "-c", code])
    assert (ended.code, ended.err) == (0, "")


@pytest.mark.parametrize("query", ["elicit", "foreign"])
def test_exit_while_a_callback_waits_for_an_answer(query: str) -> None:
    ended = child(f"""
handle = testkit.handle()
call = handle.run({query!r})
while call.wait(1000) != _bridge.WAKE_REQUEST: pass
pending = call.take()
print("waiting", flush=True)
""")
    assert ended.out == "waiting\n" and ended.seconds < 20


def test_exit_while_a_handler_blocks_against_its_promise() -> None:
    """The drain is bounded: exit does not wait for it for ever."""
    ended = child("""
inside = threading.Event()
def block(request):
    inside.set()
    time.sleep(60)
    return 1
handle = testkit.handle(testkit.Host(block), answer="inline")
call = handle.run("foreign")
inside.wait()
print("blocked", flush=True)
""")
    assert ended.out == "blocked\n" and ended.seconds < 30


@pytest.mark.parametrize("query", ["elicit", "foreign"])
def test_a_handler_that_wakes_up_during_finalisation(query: str) -> None:
    """Python before 3.14 ends such a thread, and unwinding the vendor's C++ would abort the process."""
    ended = child(f"""
inside, (reader, writer) = threading.Event(), os.pipe()
def block(request):
    inside.set()
    os.read(reader, 1)
    return 1
class Last:
    def __del__(self, write=os.write, writer=writer, sleep=time.sleep):
        write(writer, b"x")
        sleep(0.5)
handle = testkit.handle(testkit.Host(block), answer="inline")
call = handle.run({query!r})
inside.wait()
sys.modules["last"] = Last()  # goes when Python clears its modules
print("blocked", flush=True)
""")
    assert ended.out == "blocked\n"


def test_exit_while_callbacks_come_at_full_rate() -> None:
    child("""
handles = [testkit.handle(answer="inline") for _ in range(3)]
calls = [handle.run("many 4 1000000") for handle in handles]
time.sleep(0.2)
""")


def test_exit_while_a_native_call_can_not_be_cancelled() -> None:
    ended = child("""
handle = testkit.handle()
call = handle.run("block")
print(call.wait(50), flush=True)
""")
    assert ended.seconds < 20


def test_late_callbacks_during_and_after_finalisation() -> None:
    child("""
for mode in ("inline", "handed_over"):
    handle = testkit.handle(answer=mode)
    testkit.finish(handle.run("late 1; late 2; late 3"))
    globals()[mode] = handle
time.sleep(0.05)
""")


def test_close_gate_cancels_everything() -> None:
    child("""
handle = testkit.handle()
call = handle.run("elicit; elicit; say after")
while call.wait(1000) != _bridge.WAKE_REQUEST: pass
pending = call.take()
_bridge.close_gate()
assert not _bridge.gate_is_open() and not pending.is_open()
assert call.wait(5000) in (_bridge.WAKE_CLOSED, _bridge.WAKE_DONE)
try:
    handle.run("say x")
except RuntimeError:
    print("refused")
""")


def test_a_forked_child_refuses_what_it_inherited_and_makes_its_own() -> None:
    ended = child("""
handle = testkit.handle(answer="inline")
testkit.finish(handle.run("foreign"))
call = handle.run("sleep 300; elicit")
pid = os.fork()
if pid == 0:
    assert handle.inherited
    try:
        handle.run("say x")
    except RuntimeError:
        pass
    else:
        os._exit(1)
    assert call.wait(1000) == _bridge.WAKE_CLOSED
    call.leave()
    handle.close()
    del handle, call
    own = testkit.handle(answer="inline")
    assert not own.inherited and testkit.finish(own.run("foreign; elicit")).text == "1 1"
    own.close()
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert not handle.inherited
assert testkit.finish(call).text == "1"
assert testkit.finish(handle.run("foreign; elicit")).text == "1 1"
handle.close()
print(testkit.counts()["misuses"])
""")
    assert ended.out == "0\n"


def test_a_fork_while_requests_wait_and_callbacks_run() -> None:
    child("""
busy = testkit.handle(answer="inline")
running = busy.run("many 4 3000")
waiting = testkit.handle()
call = waiting.run("elicit")
while call.wait(1000) != _bridge.WAKE_REQUEST: pass
pending = call.take()
for _ in range(20):
    pid = os.fork()
    if pid == 0:
        assert not pending.is_open() and not pending.answer("accept")
        own = testkit.handle(answer="inline")
        ok = testkit.finish(own.run("foreign; elicit")).text == "1 1"
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert pending.answer("accept")
assert testkit.finish(call).text == "1" and testkit.finish(running).text == "1"
""")


def test_a_handler_that_forks() -> None:
    child("""
def answer(request):
    pid = os.fork()
    if pid == 0:
        os._exit(7)
    return 1 if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7 else 3
handle = testkit.handle(testkit.Host(answer), answer="inline")
assert testkit.finish(handle.run("foreign; elicit")).text == "1 1"
""")


def test_subinterpreters_are_refused_with_the_reason() -> None:
    code = """
import sys
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
from gopher_mcp_python.ffi import _bridge
try:
    one = interpreters.create("legacy")
except (TypeError, ValueError):
    one = interpreters.create(isolated=False)
script = '''
try:
    from gopher_mcp_python.ffi import _bridge
except ImportError as error:
    print("refused:", error, flush=True)
'''
problem = interpreters.run_string(one, script)
print(problem or "", flush=True)
"""
    ended = children.run([sys.executable, "-W", "ignore", "-c", code])
    assert ended.code == 0, ended
    assert "refused:" in ended.out and "interpreter" in ended.out, ended
