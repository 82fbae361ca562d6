"""How a process ends that still has agents, runs or open prompts: at once, with exit code 0 and nothing on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable

from tests.support import children
from tests.support.servers import McpServer
from tests.support.variants import Variant, on_both

Environment = Callable[[Variant], dict[str, str]]

START = """
import sys, threading, time
from gopher_mcp_python import GopherAgent
engine, provider, url = sys.argv[1:]
def create(handler="cancel"):
    options = {"engine": engine, "elicitation": {"handler": handler}}
    return GopherAgent.create_with_url(provider, "scripted", url, options)
"""
BLOCKED = """
called = threading.Event()
def handler(request):
    called.set()
    threading.Event().wait()
agent = create(handler)
threading.Thread(target=agent.run, args=("decline_aware",), daemon=True).start()
assert called.wait(30)
print("leaving", flush=True)
"""
# The same with a helper thread of the package's own, which is there because the handler has a limit.
BLOCKED_HELPER = BLOCKED.replace('{"handler": handler}', '{"handler": handler, "timeout_ms": 60000}')
BUSY_TOOL = """
agent = create()
threading.Thread(target=agent.run, args=('slow {"seconds": 20}',), daemon=True).start()
time.sleep(1)
print("leaving", flush=True)
"""
UNDISPOSED = """
agent = create()
print(agent.run("plain"), flush=True)
"""
DROPPED = """
import gc
agent = create()
print(agent.run("plain"), flush=True)
del agent
gc.collect()
"""
IN_HANDLER = """
def handler(request):
    sys.exit(7)
create(handler).run("decline_aware")
"""
RAISING = """
agent = create()
raise RuntimeError("the program's own error")
"""


def program(
    body: str, variant: Variant, server: McpServer, environment_for: Environment, *flags: str
) -> children.Ended:
    argv = [sys.executable, *flags, "-c", START + body, variant.engine, variant.provider, server.url]
    return children.run(argv, env=environment_for(variant), timeout=60)


@on_both
def test_exit_with_a_blocked_callback(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    for body in (BLOCKED, BLOCKED_HELPER):
        ended = program(body, variant, server, environment_for)
        assert (ended.code, ended.err, ended.out) == (0, "", "leaving\n")
        assert ended.seconds < 15


@on_both
def test_exit_while_a_tool_is_busy(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(BUSY_TOOL, variant, server, environment_for)
    assert (ended.code, ended.err, ended.out) == (0, "", "leaving\n")
    assert ended.seconds < 15, "the process does not wait for the tool"


@on_both
def test_exit_without_dispose_is_silent(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    ended = program(UNDISPOSED, variant, server, environment_for)
    assert (ended.code, ended.err) == (0, "") and "plain: ok" in ended.out


@on_both
def test_exit_without_dispose_warns_when_warnings_are_on(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(UNDISPOSED, variant, server, environment_for, "-W", "always::ResourceWarning")
    assert ended.code == 0
    own = [line for line in ended.err.splitlines() if line and not line.startswith(" ")]
    assert all("ResourceWarning" in line for line in own), ended.err


@on_both
def test_a_dropped_agent_is_released_with_a_resource_warning(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(DROPPED, variant, server, environment_for, "-W", "always::ResourceWarning")
    assert ended.code == 0
    assert ended.err.count("ResourceWarning") == 1 and "dispose" in ended.err, ended.err
    assert "Traceback" not in ended.err and "Exception ignored" not in ended.err


@on_both
def test_sys_exit_in_a_handler_ends_the_process_with_its_code(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(IN_HANDLER, variant, server, environment_for)
    assert (ended.code, ended.err) == (7, "")
    assert [entry["action"] for entry in server.wait_for("answer")] == ["cancel"]


@on_both
def test_an_error_of_the_program_is_all_that_is_shown(
    server: McpServer, environment_for: Environment, variant: Variant
) -> None:
    ended = program(RAISING, variant, server, environment_for)
    assert ended.code == 1
    assert ended.err.splitlines()[-1] == "RuntimeError: the program's own error" and ended.err.count("Traceback") == 1


# Between two runs as well as in one: a run that begins when the agent is gone has nobody to tell so.
EXIT_ANYWHERE = """
agent = create()
def run():
    while True:
        agent.run("plain")
        time.sleep(0.002)
threading.Thread(target=run, daemon=True).start()
time.sleep(float(moment))
"""


@on_both
def test_exit_at_any_moment_of_a_run(server: McpServer, environment_for: Environment, variant: Variant) -> None:
    """What a native call stands on (OpenSSL, curl) is taken down by the process's exit handlers under its feet."""
    for moment in (0.0, 0.03, 0.06, 0.1, 0.15, 0.2, 0.3, 0.5):
        ended = program(EXIT_ANYWHERE.replace("moment", repr(str(moment))), variant, server, environment_for)
        assert (ended.code, ended.err) == (0, ""), f"after {moment} s"
