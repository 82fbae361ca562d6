"""`gopher-mcp serve` as a program: what it prints, what it refuses, how it ends."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import sqlite3
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
from tests.support import children, limited_keyring
from tests.support.serving import BASE, Feed

SECONDS = 60.0


class Program:
    def __init__(self, folder: Path, *arguments: str, variables: dict[str, str] | None = None) -> None:
        home = {"HOME": str(folder), "XDG_DATA_HOME": str(folder / "data"), "PYTHONUNBUFFERED": "1"}
        source = str(Path(sys.modules["gopher_mcp_python"].__file__ or "").parents[1])
        environment = children.environment(home | (variables or {}))
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

    def get(self, path: str, token: str | None = None, answer: object = None) -> tuple[int, bytes]:
        """With `answer`: that is sent, by POST."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            if answer is None:
                connection.request("GET", path, headers=headers)
            else:
                body = json.dumps({"response": answer})
                connection.request("POST", path, body, headers | {"Content-Type": "application/json"})
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

    def begin(*arguments: str, **options: Any) -> Program:
        started.append(Program(tmp_path, *arguments, **options))
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


@pytest.mark.parametrize("by", ["option", "variable"])
def test_the_end_of_the_audit_is_remembered(program: Any, tmp_path: Path, capsys: Any, by: str) -> None:
    tokens, keys, anchor = tmp_path / "tokens.json", tmp_path / "keys", tmp_path / "elsewhere"
    store = f"sqlite:{tmp_path / 'el.db'}"
    token = TokenFile(tokens).add("ada", ["answer"])
    given = ["--store", store, "--keys", str(keys), "--tokens", str(tokens), "--port", "0"]
    variables = {"GOPHER_MCP_STORE_ANCHOR": str(anchor)} if by == "variable" else {}
    running = program(*given, *(["--anchor", str(anchor)] if by == "option" else []), variables=variables)
    with open_store(store, keys) as mine:
        asked = mine.create("ada", model.string_input("Which branch?"))
        assert running.get(f"{BASE}/{asked.id}/respond", token, {"value": "main"})[0] == 200
    code, _, err = running.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    connection = sqlite3.connect(tmp_path / "el.db", isolation_level=None)
    last = connection.execute("SELECT max(seq) FROM audit").fetchone()[0]
    assert last == 2 and json.loads(anchor.read_text().splitlines()[-1])["seq"] == last
    assert main(["audit", "--store", store, "--anchor", str(anchor)]) == 0
    assert f"anchored up to record {last}" in capsys.readouterr().out
    connection.execute("DROP TRIGGER audit_stays")
    connection.execute("DELETE FROM audit WHERE seq = ?", (last,))
    connection.close()
    assert main(["audit", "--store", store, "--anchor", str(anchor)]) == 1
    assert "and they are gone" in capsys.readouterr().out
    assert main(["serve", *given, "--anchor", str(anchor)]) == 1, "it is not served as if nothing were amiss"
    told = capsys.readouterr().err
    assert "not the one that its anchor knows" in told and told.count("\n") == 1


def test_keys_of_the_keyring(program: Any, tmp_path: Path) -> None:
    entries = tmp_path / "keyring.json"
    variables = limited_keyring.environment(entries)
    running = program("--store", f"sqlite:{tmp_path / 'el.db'}", "--keys-from-keyring", "--port", "0",
                      variables=variables)  # fmt: skip
    code, _, err = running.end(signal.SIGTERM)
    assert (code, err) == (0, "")
    assert len(limited_keyring.LimitedKeyring(entries).entries()) >= 1
    assert not [path for path in (tmp_path / "data").rglob("store-keys") if path.stat().st_size]


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["gateway", "--upstream", "a=http://127.0.0.1:1/mcp"]])
def test_stores_that_cannot_be_opened_as_told(
    command: list[str], tmp_path: Path, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setitem(sys.modules, "keyring", None)
    store = ["--store", f"sqlite:{tmp_path / 'el.db'}"]
    cases: list[tuple[list[str], int, str]] = [
        ([*store, "--anchor", str(tmp_path)], 1, f"anchor {tmp_path} can't be written"),
        ([*store, "--anchor", str(tmp_path / "no" / "anchor")], 1, "can't be written (No such file"),
        ([*store, "--anchor", "http://anchor.example/"], 2, "--anchor: the anchor's URL must be https"),
        (["--store", "sqlit:x.db"], 2, "--store: the store must be memory, sqlite:PATH or"),
        (["--store", "sqlite:"], 2, "--store: the store must be memory, sqlite:PATH or"),
        (["--store", "sqlite:~nobody-of-that-name/x.db"], 2, "--store: there is no home folder of '~nobody"),
        (["--store", "postgresql://[/x"], 2, "--store: the DSN of the Postgres store can't be read"),
        ([*store, "--anchor", "http://127.0.0.1:1/"], 1, "anchor at 127.0.0.1 can't be used"),
        (["--store", "memory", "--anchor", "x"], 2, "--anchor needs a store that stays"),
        ([*store, "--keys-from-keyring"], 1, "pip install"),
    ]
    for arguments, code, words in cases:
        assert main([*command, *arguments]) == code, arguments
        told = capsys.readouterr().err
        assert words in told and "Traceback" not in told, told
        assert len([line for line in told.splitlines() if line.startswith("gopher-mcp")]) == 1, told
    gone = tmp_path / "no"
    assert main([*command, "--store", f"sqlite:{gone / 'el.db'}"]) == 1
    advice = f"there is no folder {gone}: make it, or name another file\n"
    assert capsys.readouterr().err.endswith(advice), "it says itself what to do"
    with pytest.raises(SystemExit):
        main([*command, *store, "--keys", "x", "--keys-from-keyring"])
    assert "not allowed with" in capsys.readouterr().err


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
        (["--store", "postgres"], 2, "memory, sqlite:PATH or postgresql://"),
        (["--store", "memory", "--port", "0", "--allowed-host", "http://x"], 2, "--allowed-host: allowed host"),
        (
            ["--store", "memory", "--host", "192.0.2.1", "--public", "--allowed-host", "x"],
            1,
            "can't listen on 192.0.2.1",
        ),
    ]
    for arguments, code, words in cases:
        assert main(["serve", *arguments]) == code, arguments
        assert words in capsys.readouterr().err
