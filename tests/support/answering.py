"""People who answer from elsewhere: `gopher-mcp serve` as a process of its own, and agents in theirs that ask there.

    python -m tests.support.answering '{"store": "sqlite:el.db", "keys": "keys", "url": "http://...", "query": "..."}'

is such an agent: it prints {"created": id} for each question and {"text": ..., "cause": ...} at its end.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import children

SECONDS = 60.0  # the longest that anything here may take
PATH = "/v1/mcp/elicitations"
CALLER = "ada"


class Answering:
    """The REST server over a store that others use, too; it can be ended and started anew on its port.

    Attributes:
        store, keys: as `open_store` takes them.
    """

    def __init__(self, folder: Path, store: str | None = None) -> None:
        from gopher_mcp_python.serve import TokenFile

        self._folder = folder
        self.store, self.keys = store or f"sqlite:{folder / 'el.db'}", folder / "keys"
        self._tokens = folder / "tokens.json"
        self._token = TokenFile(self._tokens).add(CALLER, ["answer"], name="laptop")
        self._process: subprocess.Popen[str] | None = None
        self.port = 0
        self.start()

    def start(self) -> None:
        out = self._folder / "serve.out"
        where = ["--store", self.store, "--keys", str(self.keys), "--tokens", str(self._tokens)]
        home = {"HOME": str(self._folder), "XDG_DATA_HOME": str(self._folder / "data"), "PYTHONUNBUFFERED": "1"}
        with out.open("w") as stream:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "gopher_mcp_python", "serve", *where, "--port", str(self.port)],
                env=children.environment(home), stdin=subprocess.DEVNULL, stdout=stream,
            )  # fmt: skip
        end = time.monotonic() + SECONDS
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)/.*stops", out.read_text())):
            assert self._process.poll() is None and time.monotonic() < end, "it says nothing"
            time.sleep(0.05)
        self.port = int(found[1])

    def kill(self) -> None:
        """Ends it as a crash does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait(SECONDS)

    def request(self, method: str, path: str = "", body: Any = None) -> tuple[int, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {self._token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, PATH + path, None if body is None else json.dumps(body), headers)
            reply = connection.getresponse()
            return reply.status, json.loads(reply.read())
        finally:
            connection.close()

    def pending(self) -> list[dict[str, Any]]:
        status, body = self.request("GET", "?limit=100")
        assert status == 200, body
        found: list[dict[str, Any]] = body["elicitations"]
        return found

    def wait_for_pending(self, count: int = 1) -> list[dict[str, Any]]:
        """What there is to answer, once it is so many."""
        return self._until(self.pending, lambda found: len(found) >= count)

    def show(self, id: str) -> dict[str, Any]:
        status, body = self.request("GET", f"/{id}")
        assert status == 200, body
        return dict(body)

    def wait_for_status(self, id: str, *statuses: str) -> str:
        shown = self._until(lambda: self.show(id), lambda shown: shown["status"] in statuses)
        return str(shown["status"])

    def respond(self, id: str, response: Mapping[str, Any]) -> int:
        return self.request("POST", f"/{id}/respond", {"response": response})[0]

    def respond_when_it_can(self, id: str, response: Mapping[str, Any]) -> int:
        """The same, again while the server has no database (503)."""
        return self._until(lambda: self.respond(id, response), lambda status: status != 503)

    @staticmethod
    def _until(look: Callable[[], Any], is_there: Callable[[Any], bool]) -> Any:
        end = time.monotonic() + SECONDS
        while not is_there(found := look()):
            assert time.monotonic() < end, f"only {found}"
            time.sleep(0.05)
        return found


@contextmanager
def answering(folder: Path, store: str | None = None) -> Iterator[Answering]:
    running = Answering(folder, store)
    try:
        yield running
    finally:
        running.kill()


class Agent:
    """An agent in a process of its own whose person is elsewhere."""

    def __init__(self, at: Answering, env: Mapping[str, str], **given: Any) -> None:
        told = {"store": at.store, "keys": str(at.keys), **given}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.answering", json.dumps(told)],
            env=children.environment(env),
            cwd=children.ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
        )

    def created(self) -> str:
        """The id of its next question."""
        assert self.process.stdout is not None
        return str(json.loads(self.process.stdout.readline())["created"])

    def end(self) -> dict[str, Any]:
        out, _ = self.process.communicate(timeout=SECONDS)
        assert self.process.returncode == 0, out
        return dict(json.loads(out.splitlines()[-1]))

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.communicate(timeout=SECONDS)


def main(given: dict[str, Any]) -> None:
    from gopher_mcp_python import GopherAgent
    from gopher_mcp_python.serve.opening import open_store
    from gopher_mcp_python.store import StoreElicitationHandler
    from gopher_mcp_python.store.creation_rate import CreationRate

    def say(**facts: Any) -> None:
        print(json.dumps(facts), flush=True)

    with open_store(given["store"], given["keys"]) as store:
        store._rate = CreationRate(None)  # for as many tests as want to use it
        handler = StoreElicitationHandler(
            store, caller=CALLER, timeout_s=given.get("timeout_s"), on_created=lambda one: say(created=one.id)
        )
        options = {"engine": given.get("engine", "embedded"), "elicitation": {"handler": handler}}
        provider = given.get("provider", "DirectProvider")
        with GopherAgent.create_with_url(provider, "scripted", given["url"], options) as agent:
            result = agent.run_detailed(given["query"])
    say(text=result.response, engine=agent.engine, cause=type(result.elicitation_cause).__name__)


if __name__ == "__main__":
    os.environ.pop("GOPHER_MCP_ENGINE", None)
    main(json.loads(sys.argv[1]))
