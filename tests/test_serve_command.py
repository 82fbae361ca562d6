"""`gopher-mcp serve` as a program: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.cli import main
from gopher_mcp_python.serve import TokenFile
from gopher_mcp_python.serve.opening import open_store
from gopher_mcp_python.store import model
from tests.support import children
from tests.support.serving import BASE, Feed

SECONDS = 60.0


class Program:
    def __init__(self, folder: Path, *arguments: str) -> None:
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "PYTHONUNBUFFERED": "1"}
        source = str(Path(sys.modules["gopher_mcp_python"].__file__ or "").parents[1])
        environment = children.environment(home)
        environment["PYTHONPATH"] = os.pathsep.join([source, environment["PYTHONPATH"]])
        self._out = folder / "out"
        with self._out.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gopher_mcp_python", "serve", *arguments],
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        end = time.monotonic() + SECONDS
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/.*stops", self._out.read_text())):
            assert self.process.poll() is None and time.monotonic() < end, "it says nothing"
            time.sleep(0.05)
        self.port = int(found[1])

    def get(self, path: str, token: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", path, headers={"Authorization": f"Bearer {token}"} if token else {})
            reply = connection.getresponse()
            return reply.status, reply.read()
        finally:
            connection.close()

    @contextmanager
    def feed(self, token: str) -> Iterator[Feed]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request("GET", f"{BASE}/events", headers={"Authorization": f"Bearer {token}"})
            yield Feed(connection.getresponse())
        finally:
            connection.close()

    def end(self, by: int) -> tuple[int, str, str]:
        self.process.send_signal(by)
        _, err = self.process.communicate(timeout=SECONDS)
        return self.process.returncode, self._out.read_text(), err


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Any]:
    started: list[Program] = []

    def begin(*arguments: str) -> Program:
        started.append(Program(tmp_path, *arguments))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def test_served_until_ctrl_c(program: Any, tmp_path: Path) -> None:
    tokens, store, keys = tmp_path / "tokens.json", tmp_path / "el.db", tmp_path / "keys"
    running = program("--store", f"sqlite:{store}", "--keys", str(keys), "--tokens", str(tokens), "--port", "0")
    token = TokenFile(tokens).add("ada", ["answer"])
    with open_store(f"sqlite:{store}", keys) as mine, running.feed(token) as feed:  # another process asks
        assert feed.next()["event"] == "ready"
        asked = mine.create("ada", model.string_input("Which branch?"))
        assert asked.id in feed.next()["data"]
        status, body = running.get("/v1/mcp/elicitations", token)
    assert status == 200 and asked.id.encode() in body and b"Which branch?" in body
    assert running.get("/")[0] == 200
    code, out, err = running.end(signal.SIGINT)
    assert (code, err) == (0, ""), err
    assert "nobody can answer yet" in out and f"gopher-mcp token --tokens {tokens} add YOUR-NAME --scope answer" in out
    assert out.rstrip().endswith("gopher-mcp serve: ended")
    for private in (tokens, store, keys):
        assert private.stat().st_mode & 0o077 == 0, private


def test_ended_by_the_system(program: Any) -> None:
    running = program("--store", "memory", "--port", "0")
    assert running.get("/health")[0] == 200
    code, out, err = running.end(signal.SIGTERM)
    assert (code, err) == (0, "") and "this process's memory" in out


def test_what_is_refused(tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    cases = [
        (["--store", "memory", "--host", "0.0.0.0"], 2, "say --public"),
        (["--store", "memory", "--host", "0.0.0.0", "--public"], 2, "--allowed-host"),
        (["--store", "memory", "--tls-cert", "x"], 2, "go together"),
        (["--store", "memory", "--tls-cert", "nowhere.pem", "--tls-key", "x"], 2, "nowhere.pem"),
        (["--store", "memory", "--tls-cert", __file__, "--tls-key", __file__], 2, "as PEM"),
        (["--store", "postgres"], 1, "memory, sqlite:PATH or postgresql://"),
        (["--store", "memory", "--port", "0", "--allowed-host", "http://x"], 1, "allowed host"),
        (
            ["--store", "memory", "--host", "192.0.2.1", "--public", "--allowed-host", "x"],
            1,
            "can't listen on 192.0.2.1",
        ),
    ]
    for arguments, code, words in cases:
        assert main(["serve", *arguments]) == code, arguments
        assert words in capsys.readouterr().err
