"""Servers that misbehave: what the caller is told, what is not run twice, what heals by itself, what is left behind."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import AgentError, ConnectionError, GopherAgent, TimeoutError
from gopher_mcp_python.toolset import ServerError, SessionLostError, ToolsetError, connection
from tests.support import children

EMBEDDED = {"engine": "embedded"}
Reply = tuple[int, str, bytes] | None  # status, content type, body; None: never


class Faulty(ThreadingHTTPServer):
    """A server in the raw: right answers, except where `faults` has another for a method or a tool's name."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.faults: dict[str, Callable[[Any], Reply]] = {}
        self.calls: list[str] = []
        self.over = threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}/mcp"

    def answer(self, message: Any) -> Reply:
        method = message.get("method", "answer")
        name = message["params"]["name"] if method == "tools/call" else method
        if method == "tools/call":
            self.calls.append(name)
        if fault := self.faults.get(name):
            return fault(message)
        results = {
            "initialize": {
                "protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "faulty", "version": "1"},
            },
            "tools/list": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("good", "bad")]},
            "tools/call": {"content": [{"type": "text", "text": "done"}]},
        }  # fmt: skip
        if "id" not in message or method not in results:
            return 202, "text/plain", b""
        return result(results[method])(message)


class _Handler(BaseHTTPRequestHandler):
    server: Faulty
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        reply = self.server.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        if reply is None:
            self.server.over.wait(30)
            self.close_connection = True
            return
        self._send(*reply)

    def do_GET(self) -> None:
        self._send(405, "text/plain", b"")

    do_DELETE = do_GET

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        pass


def result(value: Any) -> Callable[[Any], Reply]:
    return lambda message: (
        200, "application/json", json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": value}).encode()
    )  # fmt: skip


def http(status: int, content_type: str = "text/html", body: bytes = b"<html></html>") -> Callable[[Any], Reply]:
    return lambda message: (status, content_type, body)


def never(message: Any) -> Reply:
    return None


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    server = Faulty()
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server
    server.over.set()
    server.shutdown()
    thread.join()
    server.server_close()


def agent_of(server: Faulty) -> GopherAgent:
    return GopherAgent.create_with_url("DirectProvider", "direct", server.url, EMBEDDED)


@pytest.mark.parametrize("step", ["initialize", "tools/list"])
@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (http(404), ConnectionError, "HTTP status 404. Is this the address"),
        (http(429), ConnectionError, "HTTP status 429. It gets too many requests"),
        (http(503), ConnectionError, "HTTP status 503. It, or a proxy before it"),
        (http(200), ConnectionError, "no MCP message .*text/html.*Is this the address"),
        (http(200, "application/json", b'{"jsonrpc": "2.0", "private'), ToolsetError, "not valid JSON-RPC"),
    ],
)
def test_connecting_to_what_is_no_server(
    faulty: Faulty, step: str, fault: Callable[[Any], Reply], kind: type[AgentError], text: str
) -> None:
    faulty.faults[step] = fault
    with pytest.raises(kind, match=text) as told:
        agent_of(faulty)
    assert "private" not in str(told.value)


@pytest.mark.parametrize(
    ("fault", "kind", "text"),
    [
        (http(429), ServerError, "HTTP status 429. It gets too many requests"),
        (http(502), ServerError, "HTTP status 502. It, or a proxy before it"),
        (http(200), ToolsetError, "no MCP message"),
        (http(200, "application/json", b'{"private": 1}'), ToolsetError, "not valid JSON-RPC"),
    ],
)
def test_calls_that_are_answered_with_something_else(
    faulty: Faulty, fault: Callable[[Any], Reply], kind: type[AgentError], text: str
) -> None:
    faulty.faults["bad"] = fault
    with agent_of(faulty) as agent:
        with pytest.raises(kind, match=text) as told:
            agent.run("bad")
        assert agent.run("good") == "done"
    assert "private" not in str(told.value)
    assert faulty.calls == ["bad", "good"]


def test_receipt_that_never_comes_does_not_stop_the_agent_for_good(
    faulty: Faulty, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "RECEIPT_SECONDS", 0.3)
    faulty.faults.update({"bad": never, "notifications/cancelled": never})
    with agent_of(faulty) as agent:
        with pytest.raises(TimeoutError):
            agent.run("bad", timeout_ms=200)
        time.sleep(0.5)
        with suppress_lost():
            agent.run("good")
        assert agent.run("good", timeout_ms=5000) == "done"
    assert faulty.calls.count("bad") == 1


class suppress_lost:
    """The call that meets the dying session may be lost with it; it is not made again by itself."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> bool:
        return isinstance(error, SessionLostError)


@pytest.mark.parametrize("streamed", [False, True])
def test_large_results_arrive(faulty: Faulty, streamed: bool) -> None:
    text = "x" * (3 * 1024 * 1024)
    plain = result({"content": [{"type": "text", "text": text}]})

    def event(message: Any) -> Reply:
        status, _, body = plain(message) or (0, "", b"")
        return status, "text/event-stream", b"event: message\ndata: " + body + b"\n\n"

    faulty.faults["bad"] = event if streamed else plain
    with agent_of(faulty) as agent:
        assert agent.run("bad") == text


# ---- commands --------------------------------------------------------------------------------------------------------

COMMAND = """
import json, os, signal, sys, time
mode, place = sys.argv[1:3]
open(place, "a").write(f"{os.getpid()}\\n")
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
sys.stdout.buffer.write(b"\\xff\\xfe not text \\n" if mode == "bytes" else b"")
def say(number, result):
    print(json.dumps({"jsonrpc": "2.0", "id": number, "result": result}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method = message.get("method")
    if method == "initialize":
        if mode == "silent":
            continue
        say(message["id"], {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "c", "version": "1"}})
    elif method == "tools/list":
        say(message["id"], {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("good", "crash")]})
    elif method == "tools/call":
        if message["params"]["name"] == "crash":
            os._exit(3)
        say(message["id"], {"content": [{"type": "text", "text": "done"}]})
if mode in ("stubborn", "silent"):
    time.sleep(300)
"""


def config_of(mode: str, place: Path) -> str:
    return json.dumps({"mcpServers": {"c": {"command": sys.executable, "args": ["-c", COMMAND, mode, str(place)]}}})


def pids(place: Path) -> list[int]:
    return [int(line) for line in place.read_text().splitlines()]


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = Path(f"/proc/{pid}/stat")
    return not (state.exists() and state.read_text().rpartition(")")[2].split()[0] == "Z")


def ends_within(pid: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while is_running(pid) and time.monotonic() < deadline:
        time.sleep(0.05)
    return not is_running(pid)


def test_bytes_that_are_no_text_on_a_commands_output_are_skipped(tmp_path: Path) -> None:
    config = config_of("bytes", tmp_path / "pids")
    with GopherAgent.create_with_server_config("DirectProvider", "direct", config, EMBEDDED) as agent:
        assert agent.run("good", timeout_ms=10_000) == "done"


def test_command_that_crashed_is_started_again_for_the_next_call(tmp_path: Path) -> None:
    config = config_of("plain", tmp_path / "pids")
    with GopherAgent.create_with_server_config("DirectProvider", "direct", config, EMBEDDED) as agent:
        with pytest.raises(SessionLostError, match="not known whether the tool ran"):
            agent.run("crash")
        assert agent.run("good") == "done"
    assert len(pids(tmp_path / "pids")) == 2  # one crash, one new start; the lost call was not made again


def test_command_that_does_not_end_by_itself_is_ended_after_dispose(tmp_path: Path) -> None:
    config = config_of("stubborn", tmp_path / "pids")
    agent = GopherAgent.create_with_server_config("DirectProvider", "direct", config, EMBEDDED)
    agent.dispose()
    (pid,) = pids(tmp_path / "pids")
    assert ends_within(pid, 8)
    _wait_for_loops()


def test_command_that_never_answers_is_ended_with_the_agent_that_could_not_be_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gopher_mcp_python.engines.embedded.CREATE_TIMEOUT_MS", 500)
    with pytest.raises(TimeoutError, match="connecting to c"):
        GopherAgent.create_with_server_config("DirectProvider", "direct", config_of("silent", tmp_path / "p"), EMBEDDED)
    (pid,) = pids(tmp_path / "p")
    assert ends_within(pid, 8)
    _wait_for_loops()


@pytest.mark.parametrize("dispose", ["agent.dispose()", "pass"])
def test_no_command_outlives_the_program(tmp_path: Path, dispose: str) -> None:
    code = (
        "import sys\nfrom gopher_mcp_python import GopherAgent\n"
        "agent = GopherAgent.create_with_server_config('DirectProvider', 'd', sys.argv[1], {'engine': 'embedded'})\n"
        f"print(agent.run('good'))\n{dispose}\n"
    )
    ended = children.python(code, config_of("stubborn", tmp_path / "pids")).check()
    assert ended.out.split() == ["done"]
    (pid,) = pids(tmp_path / "pids")
    assert ends_within(pid, 0.5)


def _wait_for_loops() -> None:
    deadline = time.monotonic() + 8
    while any(thread.name == "gopher agent loop" for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
