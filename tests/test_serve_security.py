"""What keeps others out: host names, origins, headers, slow and large senders, and nothing of a payload in any log."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.serve import create_app
from gopher_mcp_python.serve.rates import Rate
from gopher_mcp_python.serve.server import BoundedProtocol, bind
from gopher_mcp_python.store import model
from tests.support.serving import BASE, SECONDS, Serving, one_for_many_tests, starting

PATHS = ("/", "/page.js", "/page.css", "/icon.svg", "/health", "/ready", "/openapi.json", BASE, f"{BASE}/events")


@pytest.fixture(scope="module")
def _running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with one_for_many_tests(tmp_path_factory.mktemp("security")) as running:
        yield running


@pytest.fixture
def serving(_running: Serving) -> Serving:
    return _running.clear()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Serving]]:
    with starting(tmp_path) as begin:
        yield begin


# ---- Host, Origin ----------------------------------------------------------------------------------------------------


def test_other_host_names_are_refused_everywhere(serving: Serving) -> None:
    port = serving.port
    names = [f"evil.example:{port}", "evil.example:8123", "127.0.0.1", "", f"127.0.0.1:{port}.evil.example"]
    for host in [*names, f"localhost.:{port}", f"user@127.0.0.1:{port}"]:
        for path in PATHS:
            refused = serving.get(path, headers={"Host": host})
            assert (refused.status, refused.error["code"]) == (403, "host"), (host, path)
    assert serving.get(headers={"Host": f"LOCALHOST:{serving.port}"}).status == 200


def test_no_host_and_two_hosts_are_refused(serving: Serving) -> None:
    for lines in ("", f"Host: {serving.host}\r\nHost: evil.example\r\n"):
        with serving.raw() as connection:
            connection.sendall(f"GET /health HTTP/1.0\r\n{lines}\r\n".encode())
            assert connection.makefile("rb").readline().split()[1] in (b"403", b"400")


def test_other_origins_are_refused(serving: Serving) -> None:
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    host = serving.host
    origins = ["https://evil.example", "null", f"http://{host}.evil.example", "http://127.0.0.1:1", "file://"]
    origins += [f"http://{host}:80", f"https://{host}:443", "http://[", "http://[x]", "http://", "://", "http:"]
    origins += [f"http://{host}/", f"http://{host}@evil.example", "http://127.0.0.1", f"ftp://{host}"]
    for origin in origins:
        for site in ({"Origin": origin}, {"Origin": origin, "Content-Type": "application/x-www-form-urlencoded"}):
            refused = serving.respond(asked.id, {"confirmed": True}, headers=site)
            assert (refused.status, refused.error["code"]) == (403, "origin"), origin
        assert serving.get(headers={"Origin": origin}).status == 403
    for site in ("cross-site", "same-site"):
        assert serving.respond(asked.id, {"confirmed": True}, headers={"Sec-Fetch-Site": site}).status == 403
        assert serving.get("/page.js", token=None, headers={"Sec-Fetch-Site": site}).status == 403
    assert serving.store.confirmation_state("ada", asked.id) == "pending"
    own = {"Origin": serving.url, "Sec-Fetch-Site": "same-origin"}
    assert serving.respond(asked.id, {"confirmed": True}, headers=own).status == 200


def test_a_link_from_elsewhere_shows_the_page_and_nothing_else(serving: Serving) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    assert serving.get("/", token=None, headers=link).status == 200
    assert serving.get("/", token=None, headers=link | {"Sec-Fetch-Dest": "iframe"}).status == 403
    assert serving.get(headers=link).status == 403


def test_no_answer_of_other_sites_pages_can_be_read(serving: Serving) -> None:
    for path in PATHS[:-1]:
        reply = serving.get(path)
        assert not [name for name in reply.headers if name.startswith("access-control")]
    assert serving.request("OPTIONS", BASE, headers={"Access-Control-Request-Method": "POST"}).status == 405


@pytest.mark.parametrize("hosts", [[], ["*"], ["http://a"], ["a/b"], [""], ["a:b"]])
def test_allowed_hosts_that_are_none(hosts: list[str]) -> None:
    with pytest.raises(ValueError, match="allowed host"):
        create_app(None, None, allowed_hosts=hosts)  # type: ignore[arg-type]


# ---- Forms of other sites' pages -------------------------------------------------------------------------------------

STEPS = ("respond", "cancel", "check", "file")  # all that change something, or answer to a body
SIMPLE = (  # what a form, or a script without asking first, may send to another site (the CORS-safelisted types)
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "text/plain",
    "TEXT/PLAIN; charset=utf-8",
)


def _sent(serving: Serving, path: str, kind: str | None, body: bytes | None, **options: Any) -> Any:
    headers = {**({"Content-Type": kind} if kind is not None else {}), **options.pop("headers", {})}
    return serving.request("POST", path, body, headers=headers, **options)


@pytest.mark.parametrize("step", STEPS)
def test_a_form_of_another_sites_page_is_refused(serving: Serving, step: str) -> None:
    """The whole attack at once, by a name that the attacker's DNS leads here, then less and less of it."""
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    path, body = f"{BASE}/{asked.id}/{step}", b"response=%7B%22confirmed%22%3Atrue%7D"
    foreign = {"Host": "evil.example:8123", "Origin": "https://evil.example"}
    refused = _sent(serving, path, SIMPLE[0], body, token=None, headers=foreign)
    assert (refused.status, refused.error["code"]) == (403, "host")
    refused = _sent(serving, path, SIMPLE[0], body, token=None, headers={"Origin": "https://evil.example"})
    assert (refused.status, refused.error["code"]) == (403, "origin")
    for token in (None, "gmt_nobody", serving.answer[:-1]):
        for kind in SIMPLE:  # an old browser tells no origin
            refused = _sent(serving, path, kind, body, token=token)
            assert (refused.status, refused.error["code"]) == (403, "cross_site"), (token, kind)
        refused = _sent(serving, path, None, body, token=token)
        assert (refused.status, refused.error["code"]) == (403, "cross_site"), "a Blob without a type"
        own = _sent(serving, path, SIMPLE[0], body, token=token, headers={"Origin": serving.url})
        assert (own.status, own.error["code"]) == (403, "cross_site"), "nothing of ours sends forms"
        with serving.raw() as connection:  # a body of unknown length and type
            bearer = f"Authorization: Bearer {token}\r\n" if token else ""
            head = f"POST {path} HTTP/1.1\r\nHost: {serving.host}\r\n{bearer}Transfer-Encoding: chunked\r\n\r\n"
            connection.sendall(head.encode() + b"2\r\n{}\r\n0\r\n\r\n")
            assert connection.makefile("rb").readline().split()[1] == b"403"
    assert serving.store.confirmation_state("ada", asked.id) == "pending"


@pytest.mark.parametrize("step", STEPS)
def test_no_form_is_told_to_sign_in(serving: Serving, step: str) -> None:
    """What a page of another site can't send without being asked about is an unknown sender's, and no more."""
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    path = f"{BASE}/{asked.id}/{step}"
    for token in (None, "gmt_nobody"):
        for kind in ("application/json", "image/png"):
            told = _sent(serving, path, kind, b"{}", token=token)
            assert (told.status, told.error["code"]) == (401, "unauthorized"), kind
            assert told.headers["www-authenticate"].startswith("Bearer ")
        told = _sent(serving, path, None, None, token=token)  # nothing at all, as cancel may be
        assert (told.status, told.error["code"]) == (401, "unauthorized")


def test_a_form_with_a_token_is_of_the_wrong_type(serving: Serving) -> None:
    asked = serving.store.create_confirmation("ada", tool="t", arguments={})
    for step in ("respond", "cancel", "check"):
        for kind in SIMPLE:
            refused = _sent(serving, f"{BASE}/{asked.id}/{step}", kind, b"response=x")
            assert (refused.status, refused.error["code"]) == (415, "unsupported_media_type"), (step, kind)
    assert serving.store.confirmation_state("ada", asked.id) == "pending"
    file = serving.store.create("ada", model.file_upload("?", media_types=["text/plain"]))
    assert serving.send_file(file.id, b"notes", "text/plain").status == 201
    assert serving.send_file(file.id, b"notes", "text/plain", token=None).status == 403


def test_forms_count_as_failures(start: Callable[..., Serving]) -> None:
    serving = start(failures_per_minute=3)
    path = f"{BASE}/el_{'A' * 22}/cancel"
    seen = [_sent(serving, path, SIMPLE[0], b"x=1", token=None).status for _ in range(4)]
    assert seen == [403, 403, 403, 429]
    assert serving.get(token=None).status == 429, "both are counted together"
    assert serving.get().status == 200, "whoever has a token is not kept out by that"


# ---- Headers ---------------------------------------------------------------------------------------------------------


def test_strict_headers_on_every_reply(serving: Serving) -> None:
    replies = [serving.get(path) for path in PATHS[:-1]]
    replies += [serving.get("/nothing"), serving.get(token=None), serving.get("/", headers={"Host": "evil.example"})]
    replies += [serving.request("PUT", BASE), serving.post(f"{BASE}/x/respond", {})]
    for reply in replies:
        headers = reply.headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert (headers["referrer-policy"], headers["cache-control"]) == ("no-referrer", "no-store")
        assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers and "set-cookie" not in headers
        assert "strict-transport-security" not in headers


def test_the_page_needs_nothing_from_elsewhere(serving: Serving) -> None:
    text = "".join(serving.get(path, token=None).data.decode() for path in ("/", "/page.css", "/page.js", "/talk.js"))
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert " style=" not in text and " onclick=" not in text and "innerHTML" not in text
    for path, kind in (("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")):
        assert serving.get(path, token=None).headers["content-type"].startswith(kind)


def test_https_is_kept(start: Callable[..., Serving]) -> None:
    serving = start(https=True)
    assert "max-age" in serving.get("/").headers["strict-transport-security"]
    local = serving.get("/", headers={"Host": f"localhost:{serving.port}"})  # which other programs here share
    assert local.status == 200 and "strict-transport-security" not in local.headers


# ---- Slow and odd clients --------------------------------------------------------------------------------------------


def test_whoever_is_slow_is_left(start: Callable[..., Serving], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.3)
    serving = start(patience_s=0.3)
    head = f"POST {BASE}/x/respond HTTP/1.1\r\nHost: {serving.host}\r\nAuthorization: Bearer {serving.answer}\r\n"
    with serving.raw() as connection:  # half a head, then nothing
        connection.sendall(head[:40].encode())
        assert connection.recv(100) == b""
    with serving.raw() as connection:  # nothing at all
        assert connection.recv(100) == b""
    with serving.raw() as connection:  # a second head that never ends
        connection.sendall(f"GET /health HTTP/1.1\r\nHost: {serving.host}\r\n\r\nGET".encode())
        file = connection.makefile("rb")
        assert b"200" in file.readline()
        assert file.read().endswith(b'{"status":"ok"}')
    with serving.raw() as connection:  # a body that never comes
        connection.sendall(f"{head}Content-Type: application/json\r\nContent-Length: 10\r\n\r\n{{".encode())
        assert connection.makefile("rb").readline().split()[1] == b"408"


def test_heads_that_are_too_large_or_no_http(serving: Serving) -> None:
    for sent in (
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
        b"GET\r\n\r\n",
    ):
        with serving.raw() as connection, contextlib.suppress(ConnectionError):
            connection.sendall(sent)
            assert connection.recv(100).split()[1:2] in ([b"400"], [b"431"], [])
    assert serving.get(f"{BASE}?x={'y' * 3000}").status == 422
    assert serving.get("/health").status == 200


def test_a_websocket_is_not_opened(serving: Serving) -> None:
    headers = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "x", "Sec-WebSocket-Version": "13"}
    assert serving.get("/health", headers=headers).status in (200, 400, 403, 404)


def test_a_failure_inside_tells_nothing(
    serving: Serving, monkeypatch: pytest.MonkeyPatch, canary: Any, caplog: Any
) -> None:
    def broken(*_: Any, **__: Any) -> Any:
        raise RuntimeError(canary.secret("payload"))

    monkeypatch.setattr(serving.store, "get", broken)
    with caplog.at_level(logging.DEBUG):
        failed = serving.get(f"{BASE}/el_{'A' * 22}")
    assert (failed.status, failed.error["code"]) == (500, "failed")
    assert "RuntimeError at" in caplog.text and "in broken" in caplog.text
    assert canary.secret("payload") not in caplog.text + failed.data.decode()


# ---- Nothing in logs -------------------------------------------------------------------------------------------------


def test_no_payload_and_no_token_in_any_log(serving: Serving, canary: Any, caplog: Any) -> None:
    """The canary looks at every record of every logger; here all that people and servers say is a canary."""
    word = canary.secret
    properties = {word("field"): {"type": "string", "maxLength": 100}, "n": {"type": "integer"}}
    from gopher_mcp_python import GopherAgentElicitationRequest

    request = GopherAgentElicitationRequest(
        "form", message=word("message"), requested_schema={"type": "object", "properties": properties}
    )
    store = serving.store
    with caplog.at_level(logging.DEBUG):
        form = store.create("ada", model.mcp_form(request))
        url = store.create(
            "ada", model.mcp_url(GopherAgentElicitationRequest("url", "e", word("m"), canary.authorization_url()))
        )
        call = store.create_confirmation("ada", tool="t", arguments={"a": word("argument")})
        text = store.create("ada", model.string_input(word("question")))
        file = store.create("ada", model.file_upload(word("question"), media_types=["text/plain"]))
        for asked in (form, url, call, text, file):
            assert serving.get(f"{BASE}/{asked.id}").status == 200
        wrong = {"name": "n", "text": word("typed")}
        serving.post(f"{BASE}/{form.id}/check", {"fields": [wrong]})
        serving.post(f"{BASE}/{form.id}/respond", {"fields": [wrong]})
        serving.post(f"{BASE}/{form.id}/respond", {"response": {"action": "accept", "content": {"n": word("value")}}})
        serving.respond(call.id, {"confirmed": word("value"), word("key"): 1})
        serving.respond(text.id, {"value": word("answer")})
        serving.respond(text.id, {"value": word("other answer")})
        serving.request(
            "POST", f"{BASE}/{text.id}/respond", word("junk").encode(), headers={"Content-Type": "application/json"}
        )
        serving.send_file(file.id, word("bytes").encode(), "text/plain", name=word("name"))
        serving.get(f"{BASE}?after={word('after')}", headers={"X-Odd": word("header")})
        serving.get(token=word("token"))
        with serving.raw() as connection:
            connection.sendall(b"GARBAGE " + word("raw").encode() + b"\r\n\r\n")
            connection.recv(1000)
    assert caplog.records
    audit = "".join(record.getMessage() for record in caplog.records)
    assert serving.answer not in audit and form.id in audit


def test_reprs_tell_nothing(serving: Serving) -> None:
    (entry, *_) = serving.tokens.entries()
    assert entry.digest.hex() not in repr(entry) and repr(entry.digest) not in repr(entry)
    assert serving.answer not in repr(serving.tokens)


# ---- Rates -----------------------------------------------------------------------------------------------------------


def test_a_rate_lets_go_when_its_window_has_passed() -> None:
    now = [0.0]
    rate = Rate(2, 10.0, clock=lambda: now[0])
    assert [rate.wait_for("a"), rate.wait_for("a")] == [0.0, 0.0]
    now[0] = 4.0
    assert rate.wait_for("a") == 6.0 and rate.wait_for("b") == 0.0
    now[0] = 10.0
    assert rate.wait_for("a") == 0.0


def test_a_rate_forgets_who_is_gone() -> None:
    now = [0.0]
    rate = Rate(1, 10.0, clock=lambda: now[0])
    for number in range(10_000):
        rate.wait_for(str(number))
    now[0] = 20.0
    rate.wait_for("new")
    assert len(rate._times) == 1


# ---- Ending ----------------------------------------------------------------------------------------------------------


def test_the_server_ends_with_feeds_open(start: Callable[..., Serving]) -> None:
    serving = start()
    serving.server.config.timeout_graceful_shutdown = None  # nothing else would end a feed
    with serving.feed() as feed:
        assert feed.next()["event"] == "ready"
        ended = threading.Event()

        def close() -> None:
            serving.server.should_exit = True
            serving._thread.join(SECONDS)
            ended.set()

        thread = threading.Thread(target=close)
        thread.start()
        assert feed.next() == {"event": "end"}
        assert ended.wait(SECONDS)
        thread.join(SECONDS)
    assert not serving._thread.is_alive()


def test_small_packets_are_not_held_back() -> None:
    """asyncio sets TCP_NODELAY for sockets that name their protocol, and for no others."""
    with bind("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert (listener.proto, accepted.proto) == (socket.IPPROTO_TCP, socket.IPPROTO_TCP)
