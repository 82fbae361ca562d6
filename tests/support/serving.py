"""The application of `gopher-mcp serve` on a real server (uvicorn, in a thread) over a real store, and its clients."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gopher_mcp_python.serve import TokenFile, Uploads, create_app
from gopher_mcp_python.serve.server import Server, bind
from gopher_mcp_python.store.core import Store
from gopher_mcp_python.store.keys import KeyRing
from gopher_mcp_python.store.memory import MemoryBackend

SECONDS = 30.0  # the longest that anything here may take
BASE = "/v1/mcp/elicitations"


@dataclass
class Reply:
    status: int
    headers: dict[str, str]
    data: bytes = field(repr=False)

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> dict[str, Any]:
        found: dict[str, Any] = self.json["error"]
        return found


class Serving:
    """A running server.

    Attributes:
        store: answers asked and given directly.
        answer, call: tokens of the caller "ada" for each scope; `other`: one to answer as "bob".
    """

    def __init__(self, folder: Path, store: Store | None = None, **options: Any) -> None:
        self.store = store or Store(MemoryBackend(), KeyRing.generate(), rate=None)
        self.tokens = TokenFile(folder / "tokens.json")
        self.answer = self.tokens.add("ada", ["answer"], name="laptop")
        self.call = self.tokens.add("ada", ["call"], name="agent")
        self.other = self.tokens.add("bob", ["answer"], name="phone")
        self.uploads = Uploads(folder / "uploads", max_per_caller=options.pop("max_per_caller", 1 << 20))
        self._listener = bind("127.0.0.1", options.pop("port", 0))
        self.port: int = self._listener.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        options.setdefault("uploads", self.uploads)
        self.app = create_app(self.store, self.tokens, allowed_hosts=[self.host, f"localhost:{self.port}"], **options)
        self.server = Server(self.app)
        self._thread = threading.Thread(target=self._run, name="test server", daemon=True)
        self._thread.start()
        assert self.get("/health").status == 200  # its loop runs; nothing that it needs comes later

    def _run(self) -> None:
        self.server.run(sockets=[self._listener])

    def close(self) -> None:
        self.server.should_exit = True
        self._thread.join(SECONDS)
        assert not self._thread.is_alive(), "the server has not ended"
        self._listener.close()
        self.store.close()

    def clear(self) -> Serving:
        """With nothing pending."""
        for caller in ("ada", "bob"):
            for one in self.store.pending(caller, limit=1000):
                self.store.cancel(caller, one.id)
        return self

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = "",
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """One request on a connection of its own. `body`: bytes as they are, anything else as JSON. `token`: that of
        ada's answers when omitted; None: none."""
        sent = {} if token is None else {"Authorization": f"Bearer {token or self.answer}"}
        data = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        if body is not None and not isinstance(body, bytes):
            sent["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        try:
            connection.request(method, path, data, {**sent, **(headers or {})})
            reply = connection.getresponse()
            found = {name.lower(): value for name, value in reply.getheaders()}
            return Reply(reply.status, found, reply.read())
        finally:
            connection.close()

    def get(self, path: str = BASE, **options: Any) -> Reply:
        return self.request("GET", path, **options)

    def post(self, path: str, body: Any = None, **options: Any) -> Reply:
        return self.request("POST", path, {} if body is None else body, **options)

    def respond(self, identity: str, response: Any, **options: Any) -> Reply:
        return self.post(f"{BASE}/{identity}/respond", {"response": response}, **options)

    def send_file(self, identity: str, data: bytes, kind: str, name: str = "notes.txt", **options: Any) -> Reply:
        headers = {"Content-Type": kind, "X-File-Name": name}
        return self.request("POST", f"{BASE}/{identity}/file", data, headers=headers, **options)

    @contextmanager
    def raw(self) -> Iterator[socket.socket]:
        """A connection on which a test sends bytes of its own."""
        with socket.create_connection(("127.0.0.1", self.port), SECONDS) as connection:
            yield connection

    @contextmanager
    def feed(self, token: str | None = None, last: str | None = None) -> Iterator[Feed]:
        """The feed of changes, open."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=SECONDS)
        headers = {"Authorization": f"Bearer {token or self.answer}"} | ({"Last-Event-ID": last} if last else {})
        try:
            connection.request("GET", f"{BASE}/events", headers=headers)
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            assert reply.getheader("content-type", "").startswith("text/event-stream")
            yield Feed(reply)
        finally:
            connection.close()


class Feed:
    """Events as they come."""

    def __init__(self, reply: http.client.HTTPResponse) -> None:
        self._reply = reply

    def next(self, *, heartbeats: bool = False) -> dict[str, str]:
        """The next event; comments are left out, heartbeats given on request."""
        event: dict[str, str] = {}
        while True:
            line = self._reply.readline().decode().rstrip("\n")
            if not line and event:
                return event
            if line.startswith(": heartbeat") and heartbeats:
                return {"event": "heartbeat"}
            name, colon, value = line.partition(": ")
            if name and colon:
                event[name] = value
            if not line and not event and self._reply.isclosed():
                return {"event": "end"}


@contextmanager
def starting(folder: Path) -> Iterator[Callable[..., Serving]]:
    """Gives what starts servers with options of their own, which are closed at the end."""
    started: list[Serving] = []

    def begin(**options: Any) -> Serving:
        started.append(Serving(folder, **options))
        return started[-1]

    try:
        yield begin
    finally:
        for one in started:
            one.close()


@contextmanager
def one_for_many_tests(folder: Path) -> Iterator[Serving]:
    """One that never says that there were too many requests."""
    with starting(folder) as begin:
        yield begin(requests_per_minute=10**6, failures_per_minute=10**6)
