"""The gateway over HTTP: who may call, whose session is whose, and servers that come and go."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from mcp.shared.exceptions import MCPError
from mcp_types import CLIENT_CAPABILITIES_META_KEY, CLIENT_INFO_META_KEY, HEADER_MISMATCH, PROTOCOL_VERSION_META_KEY

from gopher_mcp_python.gateway import Gateway, read_upstream
from gopher_mcp_python.gateway.http import create_app
from gopher_mcp_python.gateway.jwt_tokens import JwtAuthenticator
from gopher_mcp_python.gateway.serving import HttpServer, keep_quiet
from gopher_mcp_python.serve.server import BoundedProtocol
from gopher_mcp_python.serve.tokens import TokenFile
from tests.support.gateways import OverHttp, Person, id_of, memory_store, run, status_of, text_of
from tests.support.hosting import Hosted, closed_port, listener
from tests.support.serving import Serving

BOTH = pytest.mark.parametrize("modern", [False, True], ids=["handshake", "2026-07-28"])
HELLO = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}},
}  # fmt: skip
ACCEPT = {"accept": "application/json, text/event-stream"}


@pytest.fixture
def house() -> Iterator[OverHttp]:
    made = OverHttp()
    yield made
    made.close()


def post(url: str, message: dict[str, Any] | None = None, **headers: str) -> httpx2.Response:
    with httpx2.Client(timeout=20) as client:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return client.post(url, json=message or HELLO, headers={**ACCEPT, **given})


@BOTH
def test_over_http_all_the_way(house: OverHttp, modern: bool) -> None:
    person, seen = Person(), []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def body() -> None:
        async with house.client(person, modern=modern) as client:
            assert text_of(await client.call_tool("progress", {}, progress_callback=on_progress)) == "done"
            assert text_of(await client.call_tool("erase", {"path": "/http"})) == "erase done"
            if not modern:
                assert text_of(await client.call_tool("ask", {"of": "x"})) == "accept Bob"

    run(body())
    assert [at for at, _, _ in seen] == [1, 2, 3] and house.vault.runs == [("erase", {"path": "/http"})]


@BOTH
def test_cancelling_over_http_reaches_the_server(house: OverHttp, modern: bool) -> None:
    async def body() -> None:
        async with house.client(modern=modern) as client:
            calling = asyncio.ensure_future(client.call_tool("slow", {}))
            while not house.vault.gates["slow"].is_set():
                await asyncio.sleep(0.005)
            calling.cancel()
            await asyncio.wait((calling,))
            while not house.vault.cancelled:
                await asyncio.sleep(0.005)

    run(body())


def test_two_people_on_one_server_at_the_same_time(house: OverHttp) -> None:
    class Named(Person):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def __call__(self, context: Any, params: Any) -> Any:
            answer = await super().__call__(context, params)
            answer.content = {"name": self.name + params.message}
            return answer

    async def body() -> None:
        ada, bob = Named("ada"), Named("bob")
        async with house.client(ada) as of_ada, house.client(bob) as of_bob:
            pairs = [(name, n, client) for n in range(5) for name, client in (("ada", of_ada), ("bob", of_bob))]
            results = await asyncio.gather(*(client.call_tool("ask", {"of": n}) for _, n, client in pairs))
        assert [text_of(result) for result in results] == [f"accept {name}Name of {n}?" for name, n, _ in pairs]

    run(body())


# ---- who -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def tokens(tmp_path: Path) -> TokenFile:
    return TokenFile(tmp_path / "tokens.json")


def test_tokens_and_their_scopes(tokens: TokenFile) -> None:
    ada, bob = tokens.add("ada", ["call"]), tokens.add("bob", ["call"])
    answers = tokens.add("ada", ["answer"])
    house = OverHttp(tokens)
    try:
        assert post(house.url).status_code == 401
        assert "Bearer" in post(house.url).headers["www-authenticate"]
        assert post(house.url, authorization="Bearer wrong").status_code == 401
        assert post(house.url, authorization=f"Basic {ada}").status_code == 401
        refused = post(house.url, authorization=f"Bearer {answers}")
        assert refused.status_code == 403 and "insufficient_scope" in refused.headers["www-authenticate"]
        assert ada not in refused.text

        async def body() -> None:
            async with house.client(token=ada) as of_ada, house.client(token=bob, modern=True) as of_bob:
                held = await of_ada.call_tool("erase", {})
                assert [one.id for one in house.store.pending("ada")] == [id_of(held)]
                house.store.respond("ada", id_of(held), {"confirmed": True})
                assert status_of(await of_bob.call_tool("erase", {})) == "held"
                assert text_of(await of_ada.call_tool("erase", {})) == "erase done"

        run(body())
        opened = post(house.url, authorization=f"Bearer {ada}")
        session = opened.headers["mcp-session-id"]
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert post(house.url, ping, authorization=f"Bearer {bob}", mcp_session_id=session).status_code == 404
        assert post(house.url, ping, authorization=f"Bearer {ada}", mcp_session_id=session).status_code == 200
        (entry,) = [entry for entry in tokens.entries() if entry.caller == "bob"]
        tokens.revoke(entry.id)
        assert post(house.url, authorization=f"Bearer {bob}").status_code == 401
    finally:
        house.close()


def test_who_calls_can_not_confirm_and_who_confirms_can_not_call(tmp_path: Path) -> None:
    page = Serving(tmp_path)
    house = OverHttp(page.tokens, store=page.store)

    async def confirm(id: str, token: str) -> int:
        return (await asyncio.to_thread(page.respond, id, {"confirmed": True}, token=token)).status

    async def body() -> None:
        async with house.client(token=page.call) as client:
            held = id_of(await client.call_tool("erase", {}))
            assert [await confirm(held, token) for token in (page.call, page.other)] == [403, 404]
            assert status_of(await client.call_tool("erase", {})) == "held"
            assert await confirm(held, page.answer) == 200
            assert text_of(await client.call_tool("erase", {})) == "erase done"

    try:
        run(body())
        assert post(house.url, authorization=f"Bearer {page.answer}").status_code == 403
    finally:
        house.close()
        page.close()


def test_without_tokens_only_this_machine_and_only_when_told() -> None:
    gateway = Gateway([read_upstream("x=http://127.0.0.1:9/mcp")], memory_store())
    with pytest.raises(ValueError, match="loopback"):
        create_app(gateway, [], host="0.0.0.0", anonymous=True)
    with pytest.raises(ValueError, match="nobody could call"):
        create_app(gateway, [])


def test_hosts_and_origins(house: OverHttp) -> None:
    assert post(house.url).status_code == 200
    assert post(house.url, host="evil.example:8124").status_code == 421
    assert post(house.url, origin="https://evil.example").status_code == 403
    assert post(house.url, origin="null").status_code == 403
    here = house.front.base
    assert post(house.url, origin=here).status_code == 200
    modern = {"mcp_protocol_version": "2026-07-28"}
    assert post(house.url, host="evil.example:8124", **modern).status_code == 421
    assert post(house.url, origin="https://evil.example", **modern).status_code == 403


# ---- JWT -------------------------------------------------------------------------------------------------------------


class Provider:
    """An identity provider: its keys, and tokens signed by them."""

    def __init__(self) -> None:
        self.keys: dict[str, Any] = {}
        self.fetched = 0
        self.fails = False
        self.algorithm = ""  # told with the keys
        self.new_key("one")

    def new_key(self, kid: str, *, kind: str = "rsa") -> None:
        self.keys[kid] = (
            rsa.generate_private_key(65537, 2048) if kind == "rsa" else ec.generate_private_key(ec.SECP256R1())
        )

    def fetch(self, url: str) -> dict[str, Any]:
        self.fetched += 1
        if self.fails:
            raise OSError("down")
        found = []
        for kid, key in self.keys.items():
            kind = jwt.algorithms.RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else jwt.algorithms.ECAlgorithm
            entry = {**json.loads(kind.to_jwk(key.public_key())), "kid": kid, "use": "sig"}
            found.append({**entry, "alg": self.algorithm} if self.algorithm else entry)
        return {"keys": found}

    def token(self, kid: str = "one", *, algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        body = {
            "iss": "https://idp.example/", "aud": "gateway", "sub": "ada", "scope": "openid call",
            "exp": time.time() + 60, **claims,
        }  # fmt: skip
        body = {name: value for name, value in body.items() if value is not None}
        return jwt.encode(body, key or self.keys[kid], algorithm=algorithm, headers={"kid": kid} if kid else {})


@pytest.fixture(scope="module")
def provider() -> Provider:
    return Provider()


def authenticator(provider: Provider, **more: Any) -> JwtAuthenticator:
    options = {"issuer": "https://idp.example/", "audience": "gateway", "fetch": provider.fetch, **more}
    return JwtAuthenticator("https://idp.example/jwks", **options)


def who(found: JwtAuthenticator, token: str) -> Any:
    return found.authenticate(f"Bearer {token}")


def test_a_good_jwt(provider: Provider) -> None:
    found, before = authenticator(provider), provider.fetched
    principal = who(found, provider.token())
    assert (principal.caller, principal.scopes) == ("ada", {"call"})
    assert who(found, provider.token(scope=None, scp=["answer"])).scopes == {"answer"}
    assert who(found, provider.token(scope=None)).scopes == frozenset()
    assert who(found, provider.token(aud=["other", "gateway"])).caller == "ada"
    assert who(found, provider.token(exp=time.time() - 5)).caller == "ada"  # clocks differ
    named = authenticator(provider, caller_claim="email", scope_prefix="gopher:")
    assert who(named, provider.token(email="a@b", scope="gopher:call answer")).scopes == {"call"}
    assert provider.fetched == before + 2  # once each


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://idp.example"}, {"iss": None}, {"aud": "other"}, {"aud": None}, {"exp": 1}, {"exp": None},
        {"sub": None}, {"sub": ""}, {"sub": 7}, {"sub": "a\nb"}, {"sub": "x" * 201}, {"nbf": time.time() + 3600},
    ],
)  # fmt: skip
def test_a_jwt_that_is_not_for_us(provider: Provider, claims: dict[str, Any]) -> None:
    assert who(authenticator(provider), provider.token(**claims)) is None


def test_algorithms_and_keys(provider: Provider) -> None:
    found = authenticator(provider)
    public = provider.keys["one"].public_key()
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    part = jwt.utils.base64url_encode
    body = part(json.dumps({"iss": "https://idp.example/", "aud": "gateway", "sub": "ada", "scope": "call",
                            "exp": time.time() + 60}).encode())  # fmt: skip
    head = part(json.dumps({"alg": "HS256", "kid": "one"}).encode())
    import hashlib
    import hmac

    forged = b".".join((head, body, part(hmac.new(pem, head + b"." + body, hashlib.sha256).digest()))).decode()
    none = b".".join((part(json.dumps({"alg": "none", "kid": "one"}).encode()), body, b"")).decode()
    assert who(found, forged) is None and who(found, none) is None
    assert who(found, provider.token(algorithm="RS512")) is None  # not listed
    assert who(authenticator(provider, algorithms=["RS512"]), provider.token(algorithm="RS512")).caller == "ada"
    stranger = rsa.generate_private_key(65537, 2048)
    assert who(found, provider.token(key=stranger)) is None
    for wrong in (["HS256"], ["none"], []):
        with pytest.raises(ValueError, match="algorithms"):
            authenticator(provider, algorithms=wrong)
    with pytest.raises(ValueError, match="https"):
        JwtAuthenticator("http://idp.example/jwks", issuer="x", audience="y")
    for text in ("", "a.b", "a.b.c", "x" * 5000, "é.é.é"):
        assert who(found, text) is None


def test_a_key_is_good_for_its_own_algorithm_only() -> None:
    provider = Provider()
    provider.algorithm = "RS256"
    found = authenticator(provider, algorithms=["RS256", "RS512"])
    assert who(found, provider.token()).caller == "ada"
    assert who(found, provider.token(algorithm="RS512")) is None


def test_keys_change_and_the_provider_may_be_down(monkeypatch: pytest.MonkeyPatch) -> None:
    provider = Provider()
    found = authenticator(provider)
    now = time.monotonic()
    monkeypatch.setattr("gopher_mcp_python.gateway.jwt_tokens.time.monotonic", lambda: now)
    assert who(found, provider.token()) is not None and provider.fetched == 1
    provider.new_key("two", kind="ec")
    fresh = provider.token("two", algorithm="ES256")
    assert who(found, fresh) is None and provider.fetched == 1  # not more often than every ten seconds
    now += 11
    assert who(found, fresh) is not None and provider.fetched == 2
    provider.fails = True
    now += 400
    assert who(found, fresh) is not None and provider.fetched == 3  # what was known stays
    provider.fails = False
    del provider.keys["one"]
    old = Provider()
    old.keys["one"] = rsa.generate_private_key(65537, 2048)
    now += 400
    assert who(found, old.token()) is None
    assert who(found, provider.token("two", algorithm="ES256", key=provider.keys["two"])) is not None


def test_jwts_open_the_gateway(provider: Provider) -> None:
    house = OverHttp(authenticator(provider))
    try:
        assert post(house.url, authorization=f"Bearer {provider.token(scope='answer')}").status_code == 403
        assert post(house.url, authorization=f"Bearer {provider.token(aud='other')}").status_code == 401

        async def body() -> None:
            async with house.client(token=provider.token(sub="eve")) as client:
                await client.call_tool("erase", {})
            assert len(house.store.pending("eve")) == 1

        run(body())
    finally:
        house.close()


# ---- servers that come and go ----------------------------------------------------------------------------------------


@BOTH
def test_a_server_that_was_restarted(modern: bool) -> None:
    house = OverHttp()
    try:

        async def body() -> None:
            async with house.client(modern=modern) as client:
                assert text_of(await client.call_tool("peek", {})) == "peek done"
                await asyncio.to_thread(house.restart_vault)
                assert text_of(await client.call_tool("peek", {})) == "peek done"

        run(body())
    finally:
        house.close()
    assert len(house.vault.runs) == 2


def test_a_server_that_stopped_before_the_call_costs_no_approval() -> None:
    house = OverHttp()
    try:

        async def body() -> None:
            async with house.client() as client:
                held = await client.call_tool("erase", {})
                house.store.respond("local", id_of(held), {"confirmed": True})
                port = int(house.behind.base.rpartition(":")[2])
                await asyncio.to_thread(house.behind.close)
                for _ in range(2):
                    with pytest.raises(MCPError, match="can't reach vault"):
                        await client.call_tool("erase", {})
                house.behind = await asyncio.to_thread(house.vault_at, port)
                assert text_of(await client.call_tool("erase", {})) == "erase done"

        run(body())
    finally:
        house.close()
    assert len(house.vault.runs) == 1


def test_a_server_that_ends_in_the_middle_leaves_it_unknown() -> None:
    house = OverHttp()
    try:

        async def body() -> None:
            async with house.client() as client:
                arguments = {"wait": "never"}
                held = await client.call_tool("erase", arguments)
                house.store.respond("local", id_of(held), {"confirmed": True})
                calling = asyncio.ensure_future(client.call_tool("erase", arguments))
                while not house.vault.runs:
                    await asyncio.sleep(0.005)
                await asyncio.to_thread(house.restart_vault)
                assert status_of(await calling) == "unknown"
                assert status_of(await client.call_tool("erase", arguments)) == "unknown"

        run(body())
    finally:
        house.close()
    assert len(house.vault.runs) == 1


def test_a_server_that_is_down_is_named_and_costs_no_approval() -> None:
    port = closed_port()
    store = memory_store()
    gateway = Gateway([read_upstream(f"mail=http://127.0.0.1:{port}/mcp")], store)
    front = Hosted(create_app(gateway, [], anonymous=True), "gateway")

    async def body() -> None:
        from mcp.client.client import Client

        async with Client(f"{front.base}/mcp", mode="legacy") as client:
            for _ in range(2):
                with pytest.raises(MCPError, match="can't reach mail"):
                    await client.call_tool("erase", {})

    try:
        run(body())
    finally:
        front.close()
    assert store.pending("local") == []


# ---- what the request itself says ------------------------------------------------------------------------------------


def test_headers_say_what_was_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool's arguments may be mirrored into headers (2026-07-28), by which proxies choose where a call goes."""
    region = {"type": "string", "x-mcp-header": "Region"}
    monkeypatch.setattr("tests.support.gateways.SCHEMA", {"type": "object", "properties": {"region": region}})
    house, seen = OverHttp(), []

    async def peek(context: Any, arguments: Any, params: Any) -> str:
        seen.append(dict(context.request.headers))
        return "seen"

    house.vault._peek = peek  # type: ignore[attr-defined]

    def call(tool: str, **headers: str) -> httpx2.Response:
        meta = {PROTOCOL_VERSION_META_KEY: "2026-07-28", CLIENT_INFO_META_KEY: {"name": "t", "version": "1"},
                CLIENT_CAPABILITIES_META_KEY: {}}  # fmt: skip
        params = {"name": tool, "arguments": {"region": "test"}, "_meta": meta}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers |= {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": tool}
        return post(house.url, message, **headers)

    try:
        for tool in ("erase", "peek"):
            refused = call(tool, mcp_param_region="prod")
            assert refused.status_code == 400 and refused.json()["error"]["code"] == HEADER_MISMATCH, refused.text
        assert house.store.pending("local") == [] and seen == []
        passed = call("peek", mcp_param_region="test", mcp_param_other="prod")
        assert passed.json()["result"]["content"][0]["text"] == "seen"
        assert seen[0]["mcp-param-region"] == "test" and "mcp-param-other" not in seen[0]
        assert call("erase", mcp_param_region="test").json()["result"]["isError"]
        assert len(house.store.pending("local")) == 1
    finally:
        house.close()


def test_one_caller_can_not_open_any_number_of_sessions(house: OverHttp, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gopher_mcp_python.gateway.front.MAX_OF_CALLER", 1)
    first = post(house.url)
    assert '"protocolVersion"' in first.text and "open already" in post(house.url).text
    session = {"mcp_session_id": first.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
    assert "opened before" in post(house.url, **session).text, "a second handshake makes no second connection"
    with httpx2.Client(timeout=20) as client:
        client.delete(house.url, headers={name.replace("_", "-"): value for name, value in session.items()})
    for _ in range(500):  # the session's own task gives its place back
        if '"protocolVersion"' in post(house.url).text:
            break
    else:
        raise AssertionError("the place was not given back")


def test_no_id_of_a_session_is_in_the_logs(house: OverHttp, caplog: pytest.LogCaptureFixture) -> None:
    keep_quiet()
    with caplog.at_level("DEBUG", logger="mcp.server"):
        session = post(house.url).headers["mcp-session-id"]
        assert post(house.url, mcp_session_id="0" * 32).status_code == 404
    assert "<redacted>" in caplog.text, "the SDK tells ids, or this test tells nothing"
    assert session not in caplog.text and "0" * 32 not in caplog.text


def test_whoever_is_slow_with_a_head_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BoundedProtocol, "head_seconds", 0.2)
    gateway = Gateway([read_upstream("x=http://127.0.0.1:9/mcp")], memory_store())
    listening = listener()
    server = HttpServer(create_app(gateway, [], anonymous=True))
    thread = threading.Thread(target=server.serve_on, args=(listening,), daemon=True)
    thread.start()
    try:
        with socket.create_connection(listening.getsockname(), 20) as slow:
            slow.sendall(b"POST /mcp HTTP/1.1\r\nHost: ")
            assert slow.recv(1) == b""
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()
    assert not thread.is_alive()


def test_a_slow_provider_holds_up_only_those_who_need_it(provider: Provider) -> None:
    found = authenticator(provider)
    good = provider.token()
    assert who(found, good) is not None
    asked, goes_on = threading.Event(), threading.Event()

    def hanging(url: str) -> dict[str, Any]:
        asked.set()
        assert goes_on.wait(60)
        return provider.fetch(url)

    found._fetch, found._tried_at = hanging, float("-inf")
    strange = jwt.encode({}, provider.keys["one"], algorithm="RS256", headers={"kid": "unknown"})
    stranger = threading.Thread(target=who, args=(found, strange))
    known: list[Any] = []
    other = threading.Thread(target=lambda: known.append(who(found, good)))
    try:
        stranger.start()
        assert asked.wait(60)
        other.start()
        other.join(10)
        assert known and known[0].caller == "ada", "it waited for the provider"
    finally:
        goes_on.set()
        stranger.join(60)
        other.join(60)


def test_odd_entries_of_a_key_set_are_passed_over(provider: Provider) -> None:
    odd: list[Any] = [None, 7, {"kid": ["one"], "kty": "RSA"}, {"kid": "a", "kty": "RSA", "n": 5}, {"kid": {}}]
    found = authenticator(provider, fetch=lambda url: {"keys": [*odd, *provider.fetch(url)["keys"], {"kty": 1}]})
    assert who(found, provider.token()).caller == "ada"
    for leeway in (float("nan"), float("inf"), -1.0, 301.0):
        with pytest.raises(ValueError, match="leeway"):
            authenticator(provider, leeway_s=leeway)
