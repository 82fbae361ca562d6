"""The identity provider, the protected servers, the browser and the fault proxy of the sign-in tests do what they say.

What is tested with them is only as strict as they are: each check of theirs is shown to refuse something here.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import secrets
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx2
import pytest
from mcp import ClientSession
from mcp.client.auth import OAuthClientProvider
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken

from tests.support import children, fault_proxy
from tests.support.browsing import Browser, plant_client_secrets
from tests.support.fault_proxy import FaultProxy
from tests.support.hosting import LOOPBACK, closed_port
from tests.support.idp import Client, IdentityProvider
from tests.support.protected import ProtectedServer

CALLBACK = "http://127.0.0.1:1/callback"
VERIFIER = "v" * 50
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@pytest.fixture
def idp(identity_provider: IdentityProvider) -> IdentityProvider:
    return identity_provider.reset()


@pytest.fixture
def server(protected_server: ProtectedServer, idp: IdentityProvider) -> ProtectedServer:
    return protected_server.reset()


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> Iterator[Browser]:
    plant_client_secrets(monkeypatch)
    browser = Browser()
    yield browser
    browser.close()


# ---- the provider, by plain HTTP -------------------------------------------------------------------------------------


class _Still(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *arguments: Any) -> None:
        return None


def fetch(url: str, data: dict[str, str] | None = None, **headers: str) -> tuple[int, dict[str, Any]]:
    """The status, and the reply: JSON, or the parameters of a redirect."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Still)
    body = urllib.parse.urlencode(data).encode() if data is not None else None
    try:
        reply = opener.open(urllib.request.Request(url, body, headers), timeout=10)
    except urllib.error.HTTPError as error:
        reply = error
    with reply:
        text, location = reply.read().decode(), reply.headers.get("location")
    if location:
        return reply.status, dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(location).query))
    with contextlib.suppress(ValueError):
        return reply.status, json.loads(text)
    return reply.status, {}


def ask(idp: IdentityProvider, **changed: str | None) -> tuple[int, dict[str, Any]]:
    query = {"response_type": "code", "client_id": "app-1", "redirect_uri": CALLBACK, "state": "s-1",
             "code_challenge": CHALLENGE, "code_challenge_method": "S256", "resource": "http://r/mcp",
             **changed}  # fmt: skip
    return fetch(f"{idp.authorize_url}?{urllib.parse.urlencode({k: v for k, v in query.items() if v is not None})}")


def redeem(idp: IdentityProvider, code: str, **changed: str) -> tuple[int, dict[str, Any]]:
    form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "client_id": "app-1",
            "code_verifier": VERIFIER, "resource": "http://r/mcp", **changed}  # fmt: skip
    return fetch(f"{idp.issuer}/token", form)


def refresh(idp: IdentityProvider, token: str, **changed: str) -> tuple[int, dict[str, Any]]:
    form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": "app-1", **changed}
    return fetch(f"{idp.issuer}/token", form)


def code_of(idp: IdentityProvider) -> str:
    status, answer = ask(idp)
    assert status == 302
    return str(answer["code"])


@pytest.fixture
def app(idp: IdentityProvider) -> Client:
    return idp.add_client("app-1")


def test_a_code_is_exchanged_once(idp: IdentityProvider, app: Client) -> None:
    status, answer = ask(idp)
    assert (status, answer["state"], answer["iss"]) == (302, "s-1", idp.issuer)
    status, reply = redeem(idp, answer["code"])
    assert status == 200 and reply["expires_in"] == 3600 and reply["scope"] == "mcp"
    assert idp.introspect(reply["access_token"])
    status, again = redeem(idp, answer["code"])
    assert (status, again["error"]) == (400, "invalid_grant")
    assert idp.introspect(reply["access_token"]) is None, "a code that comes twice takes its tokens with it"


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"code_verifier": "w" * 50}, "invalid_grant"),
        ({"redirect_uri": "http://127.0.0.1:2/callback"}, "invalid_grant"),
        ({"resource": "http://other/mcp"}, "invalid_target"),
        ({"client_id": "somebody"}, "invalid_client"),
        ({"client_secret": "guessed"}, "invalid_client"),
        ({"grant_type": "password"}, "unsupported_grant_type"),
    ],
    ids=lambda value: str(value),
)
def test_a_code_is_bound(idp: IdentityProvider, app: Client, changed: dict[str, str], error: str) -> None:
    _, reply = redeem(idp, code_of(idp), **changed)
    assert reply["error"] == error


def test_a_code_expires(idp: IdentityProvider, app: Client) -> None:
    code = code_of(idp)
    idp.advance(61)
    assert redeem(idp, code)[1]["error"] == "invalid_grant"


@pytest.mark.parametrize(
    ("changed", "status", "error"),
    [
        ({"client_id": "somebody"}, 400, None),
        ({"redirect_uri": "http://127.0.0.1:1/other"}, 400, None),
        ({"redirect_uri": "http://localhost:1/callback"}, 400, None),
        ({"redirect_uri": "http://127.0.0.1:999/callback"}, 302, None),
        ({"code_challenge": None, "code_challenge_method": None}, 302, "invalid_request"),
        ({"code_challenge_method": "plain"}, 302, "invalid_request"),
        ({"response_type": "token"}, 302, "unsupported_response_type"),
    ],
    ids=lambda value: str(value),
)
def test_authorization_requests_are_checked(
    idp: IdentityProvider, app: Client, changed: dict[str, str | None], status: int, error: str | None
) -> None:
    got, answer = ask(idp, **changed)
    assert (got, answer.get("error")) == (status, error)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"consent": "deny"}, {"error": "access_denied", "state": "s-1"}),
        ({"state": "wrong"}, {}),
        ({"state": "missing"}, {"state": None}),
        ({"iss": None}, {"iss": None}),
        ({"iss": "wrong"}, {"iss": "https://somebody.example.test"}),
        ({"pkce": "refused"}, {"error": "invalid_request"}),
        ({"authorize_error": "server_error"}, {"error": "server_error"}),
    ],
    ids=str,
)
def test_the_redirect_says_what_was_set(
    idp: IdentityProvider, app: Client, settings: dict[str, Any], expected: dict[str, Any]
) -> None:
    idp.reset(**settings).add_client("app-1")
    _, answer = ask(idp)
    assert {name: answer.get(name) for name in expected} == expected
    assert (answer.get("state") == "s-1") == (settings.get("state") is None)


def test_refresh_tokens_rotate_and_reuse_revokes_the_grant(idp: IdentityProvider, app: Client) -> None:
    first = redeem(idp, code_of(idp))[1]
    status, second = refresh(idp, first["refresh_token"])
    assert status == 200 and second["refresh_token"] != first["refresh_token"]
    assert idp.introspect(first["access_token"]) and idp.introspect(second["access_token"])
    assert refresh(idp, first["refresh_token"])[1]["error"] == "invalid_grant"
    assert idp.count("reuse") == 1
    assert refresh(idp, second["refresh_token"])[1]["error"] == "invalid_grant"
    assert idp.introspect(second["access_token"]) is None


@pytest.mark.parametrize(("kind", "told"), [("same", True), ("omit", False)])
def test_without_rotation_the_old_refresh_token_stays_good(
    idp: IdentityProvider, app: Client, kind: str, told: bool
) -> None:
    idp.settings.refresh_reply = kind
    old = redeem(idp, code_of(idp))[1]["refresh_token"]
    for _ in range(2):
        status, reply = refresh(idp, old)
        assert status == 200 and (reply.get("refresh_token") == old) == told
        assert "refresh_token" in reply or not told


def test_offline_access_is_what_brings_a_refresh_token(idp: IdentityProvider, app: Client) -> None:
    idp.settings.refresh = "offline_access"
    assert "refresh_token" not in redeem(idp, code_of(idp))[1]
    code = ask(idp, scope="mcp offline_access")[1]["code"]
    assert "refresh_token" in redeem(idp, code)[1]


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_clients_authenticate_as_registered(idp: IdentityProvider, method: str) -> None:
    client = idp.add_client("app-1", method=method)
    assert client.secret
    word = base64.b64encode(f"app-1:{client.secret}".encode()).decode()
    form = {"grant_type": "authorization_code", "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    ways = {
        "client_secret_basic": ({}, {"Authorization": f"Basic {word}"}),
        "client_secret_post": ({"client_id": "app-1", "client_secret": client.secret}, {}),
        "none": ({"client_id": "app-1"}, {}),
    }
    for way, (more, headers) in ways.items():
        status, _ = fetch(f"{idp.issuer}/token", {**form, "code": code_of(idp), **more}, **headers)
        assert status == (200 if way == method else 401), way
    assert [entry["method"] for entry in idp.events("token")] == [method]


def test_a_client_signs_in_by_itself(idp: IdentityProvider) -> None:
    client = idp.add_client("job", method="client_secret_post")
    form = {"grant_type": "client_credentials", "client_id": "job", "client_secret": str(client.secret)}
    status, reply = fetch(f"{idp.issuer}/token", form)
    assert status == 200 and "refresh_token" not in reply
    issued = idp.introspect(reply["access_token"])
    assert issued and issued.grant.subject == "job"
    idp.add_client("public")
    assert fetch(f"{idp.issuer}/token", {**form, "client_id": "public", "client_secret": ""})[0] != 200


def test_replies_and_descriptions_are_what_was_set(idp: IdentityProvider, app: Client) -> None:
    idp.settings.reply_members = {"token_type": "mac", "scope": None}
    reply = redeem(idp, code_of(idp))[1]
    assert reply["token_type"] == "mac" and "scope" not in reply
    idp.settings.error_description = "not {secrets}!"
    assert redeem(idp, "c-1")[1]["error_description"] == f"not c-1   {VERIFIER} !"


def test_revocation(idp: IdentityProvider, app: Client) -> None:
    reply = redeem(idp, code_of(idp))[1]
    assert fetch(f"{idp.issuer}/revoke", {"token": reply["refresh_token"], "client_id": "app-1"})[0] == 200
    assert idp.introspect(reply["access_token"]) is None
    assert refresh(idp, reply["refresh_token"])[0] == 400


@pytest.mark.parametrize(
    ("metadata", "path", "at"),
    [
        ("oauth", "", "/.well-known/oauth-authorization-server"),
        ("oauth", "/t1", "/.well-known/oauth-authorization-server/t1"),
        ("oidc-inserted", "/t1", "/.well-known/openid-configuration/t1"),
        ("oidc-appended", "/t1", "/t1/.well-known/openid-configuration"),
        ("oidc-appended", "", "/.well-known/openid-configuration"),
        ("none", "/t1", None),
    ],
)
def test_metadata_stand_in_one_place(idp: IdentityProvider, metadata: str, path: str, at: str | None) -> None:
    idp.reset(metadata=metadata, issuer_path=path)
    places = ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"]
    places += [place + "/t1" for place in places] + ["/t1/.well-known/openid-configuration"]
    found = {place: reply for place in places for status, reply in [fetch(idp.base + place)] if status == 200}
    assert list(found) == ([at] if at else [])
    for document in found.values():
        assert document["issuer"] == idp.issuer
        assert document["token_endpoint"] == f"{idp.issuer}/token"


def test_nothing_in_the_log_is_secret(idp: IdentityProvider, app: Client, canary: Any) -> None:
    reply = redeem(idp, code_of(idp))[1]
    refresh(idp, reply["refresh_token"])
    refresh(idp, reply["refresh_token"])
    print(idp.log)  # looked at by the canary
    assert idp.count("token", "refresh", "reuse") == 3


# ---- the whole way, by the SDK's own client --------------------------------------------------------------------------


class Storage:
    """The SDK's token storage."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@contextlib.asynccontextmanager
async def signing_in(
    server: ProtectedServer, browser: Browser, storage: Storage, sse: bool = False
) -> AsyncIterator[ClientSession]:
    """A session of the SDK's client, with its sign-in and a minimal callback."""
    came: asyncio.Queue[dict[str, str]] = asyncio.Queue()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            path = (await reader.readuntil(b"\r\n\r\n")).decode().split()[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nThanks.")
            await writer.drain()
        finally:
            writer.close()
        if path.startswith("/callback"):
            came.put_nowait(dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query)))

    async def show(url: str) -> None:
        browser.open(url)

    async def wait() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**await came.get())

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    redirect = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/callback"
    url = server.sse_url if sse else server.url
    metadata = OAuthClientMetadata(redirect_uris=[redirect], client_name="test", scope=None)  # type: ignore[list-item]
    auth = OAuthClientProvider(url, metadata, storage, show, wait)
    async with listening, contextlib.AsyncExitStack() as stack:
        if sse:
            streams = await stack.enter_async_context(sse_client(url, auth=auth))
        else:
            client = await stack.enter_async_context(httpx2.AsyncClient(auth=auth))
            streams = await stack.enter_async_context(streamable_http_client(url, http_client=client))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        yield session


async def text_of(session: ClientSession, tool: str) -> str:
    result = await session.call_tool(tool, {})
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("sse", [False, True], ids=["http", "sse"])
@pytest.mark.parametrize("token_format", ["opaque", "jwt"])
def test_the_sdk_signs_in(
    idp: IdentityProvider, server: ProtectedServer, browser: Browser, token_format: str, sse: bool
) -> None:
    idp.settings.token_format = token_format
    storage = Storage()

    async def go() -> str:
        async with signing_in(server, browser, storage, sse) as session:
            return await text_of(session, "whoami")

    told = json.loads(asyncio.run(go()))
    assert told == {"subject": "ada", "scopes": ["mcp"], "issuer": idp.issuer}
    assert storage.tokens and storage.tokens.refresh_token
    asked = idp.events("authorize")[0]
    assert asked["resource"] == (server.sse_url if sse else server.url) and asked["pkce"] == "S256"
    assert server.calls() == [("whoami", 1)]
    assert server.count("unauthorized") == 1
    visit = browser.finished()[0]
    assert (visit.page.path, visit.page.words) == ("/callback", "Thanks.")


def test_the_sdk_refreshes_steps_up_and_meets_a_page_with_buttons(
    idp: IdentityProvider, server: ProtectedServer, browser: Browser
) -> None:
    idp.settings.consent = "page"
    server.before("plain", idp.expire_access_tokens)

    async def go() -> list[str]:
        async with signing_in(server, browser, Storage()) as session:
            return [await text_of(session, tool) for tool in ("whoami", "needs_admin", "plain")]

    assert asyncio.run(go())[1:] == ["admin: mcp admin", "plain: ok"]
    assert server.count("forbidden") == 1
    # The SDK's client signs in again after a 401, also where a refresh would do.
    assert [visit.page.path for visit in browser.finished()] == ["/callback"] * 3
    assert [entry["scope"] for entry in idp.events("allowed")][:2] == ["mcp", "mcp admin"]


def test_tokens_for_another_server_are_refused(idp: IdentityProvider, server: ProtectedServer) -> None:
    client = idp.add_client("app-1")
    for resource, status in ((server.url, 400), ("http://127.0.0.1:1/mcp", 401), (None, 401)):
        token = idp.tokens_for(client, resource=resource)["access_token"]
        got, _ = fetch(server.url, {}, Authorization=f"Bearer {token}", Accept="application/json, text/event-stream")
        assert (got == 401) == (status == 401), resource


def test_some_messages_may_need_no_token(server: ProtectedServer) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    with httpx2.Client(trust_env=False, headers={"Accept": "application/json, text/event-stream"}) as client:
        assert client.post(server.url, json=message).status_code == 401
        server.settings.challenge_header = "Basic"
        assert client.post(server.url, json=message).headers["www-authenticate"] == "Basic"
        server.settings.open = ("ping",)
        assert client.post(server.url, json=message).status_code not in (401, 403)
    assert server.refusals() == 2


def test_as_a_process() -> None:
    """What the terminal tests and the benchmarks start."""
    argv = [sys.executable, "-m", "tests.support.idp", "--servers", "2", "--set", 'consent="page"']
    process, told = children.start_server(argv)
    try:
        assert len(told["urls"]) == 2 and fetch(told["url"], {})[0] == 401
        status, document = fetch(told["issuer"] + PLACE)
        assert status == 200 and document["authorization_endpoint"] == told["authorize"]
        log = httpx2.get(told["log"], trust_env=False).json()
        assert [entry["path"] for entry in log] == [PLACE]
    finally:
        children.stop(process)


def test_a_held_step_waits_for_the_test(idp: IdentityProvider, app: Client) -> None:
    hold = idp.hold("token")

    async def go() -> int:
        task = asyncio.create_task(asyncio.to_thread(redeem, idp, code_of(idp)))
        await asyncio.to_thread(hold.wait_reached)
        assert not task.done()
        hold.release()
        return (await task)[0]

    assert asyncio.run(go()) == 200


def test_a_provider_without_metadata_stands_at_the_server(browser: Browser) -> None:
    with IdentityProvider(metadata="none") as idp, ProtectedServer(idp, legacy=True, audience=False) as server:

        async def go() -> str:
            async with signing_in(server, browser, Storage()) as session:
                return await text_of(session, "plain")

        assert asyncio.run(go()) == "plain: ok"
        assert [p for p in idp.paths() if "well-known" not in p] == ["POST /register", "GET /authorize", "POST /token"]
        assert browser.finished()[0].page.words == "Thanks."


# ---- the fault proxy -------------------------------------------------------------------------------------------------

PLACE = "/.well-known/oauth-authorization-server"


@pytest.fixture(scope="module")
def _proxy(identity_provider: IdentityProvider) -> Iterator[FaultProxy]:
    with FaultProxy(identity_provider.base) as proxy:
        yield proxy


@pytest.fixture
def proxy(_proxy: FaultProxy, idp: IdentityProvider) -> FaultProxy:
    return _proxy.clear()


def through(proxy: FaultProxy) -> str:
    """What a client of its own says of the answer: the status, or the kind of the failure."""
    try:
        with httpx2.Client(trust_env=False, timeout=10) as client:
            reply = client.get(proxy.base + PLACE)
            return f"{reply.status_code} {reply.headers.get('content-type')} {len(reply.content) > 100}"
    except httpx2.HTTPError as error:
        return type(error).__name__


def test_the_proxy_passes_on_and_the_provider_takes_its_name(proxy: FaultProxy) -> None:
    _, document = fetch(proxy.base + PLACE)
    assert document["token_endpoint"] == f"{proxy.base}/token"
    assert proxy.seen == [f"GET {PLACE}"]


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        (fault_proxy.cut_head, "RemoteProtocolError"),
        (fault_proxy.cut_body, "RemoteProtocolError"),
        (fault_proxy.garbage, "RemoteProtocolError"),
        (fault_proxy.dropped, "RemoteProtocolError"),
        (fault_proxy.reset, "ReadError"),
        (fault_proxy.half_json, "200 application/json True"),
        (fault_proxy.empty, "200 application/json False"),
        (fault_proxy.html, "200 text/html False"),
        (fault_proxy.wrong_type, "200 image/png True"),
        (fault_proxy.redirect_loop, "307 text/plain False"),
        (fault_proxy.redirect("http://127.0.0.1:9/"), "307 text/plain False"),
        (fault_proxy.status(503), "503 text/plain False"),
        (fault_proxy.reply([]), "200 application/json False"),
        (fault_proxy.huge, "200 application/json True"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_the_proxy_breaks_one_answer(proxy: FaultProxy, fault: fault_proxy.Fault, seen: str) -> None:
    proxy.fault(PLACE, fault, times=1)
    proxy.fault("/token", fault_proxy.garbage)
    assert through(proxy) == seen
    assert through(proxy) == "200 application/json True"


def test_the_proxy_refuses_and_holds(proxy: FaultProxy) -> None:
    proxy.refuse()
    assert through(proxy) == "ConnectError"
    proxy.accept()
    hold = proxy.hold(PLACE)

    async def go() -> str:
        task = asyncio.create_task(asyncio.to_thread(through, proxy))
        await asyncio.to_thread(hold.wait_reached)
        assert not task.done()
        hold.release()
        return await task

    assert asyncio.run(go()) == "200 application/json True"


def test_the_proxy_may_end_at_any_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each turn of the loop of an exchange is a moment at which it is cancelled; no connection is left open."""
    opened: list[asyncio.StreamWriter] = []
    connect = asyncio.open_connection

    async def seen(*where: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        pair = await connect(*where)
        opened.append(pair[1])
        return pair

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"?")
            writer.write(b"!")
        writer.close()

    class Nobody(fault_proxy.Exchange):
        async def send(self, data: bytes) -> None:
            pass

    async def go() -> None:
        reader = asyncio.StreamReader()
        server = await asyncio.start_server(answer, LOOPBACK, 0)
        async with server:
            target = server.sockets[0].getsockname()
            exchange = Nobody("GET", "/", b"?", "", target, reader, None)  # type: ignore[arg-type]
            for fault in (fault_proxy.passed, fault_proxy.cut_body):
                turns = 0
                while True:
                    task = asyncio.ensure_future(fault(exchange))
                    for _ in range(turns):
                        await asyncio.sleep(0)
                    if task.done():
                        break
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)
                    turns += 1 + turns // 20
                assert turns > 5

    monkeypatch.setattr(asyncio, "open_connection", seen)
    asyncio.run(go())
    assert len(opened) > 5
    assert [writer for writer in opened if not writer.is_closing()] == []


def test_a_session_through_the_proxy(server: ProtectedServer, idp: IdentityProvider) -> None:
    token = idp.tokens_for(idp.add_client("app-1"), resource=None)["access_token"]
    server.settings.audience = False

    async def go(url: str) -> str:
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as client:
            async with streamable_http_client(url, http_client=client) as streams:
                async with ClientSession(streams[0], streams[1]) as session:
                    await session.initialize()
                    return await text_of(session, "plain")

    with FaultProxy(server.base) as proxy:
        assert asyncio.run(go(f"{proxy.base}/mcp")) == "plain: ok"
        assert "POST /mcp" in proxy.seen


def test_nobody_listens_at_a_closed_port() -> None:
    with pytest.raises(httpx2.ConnectError):
        httpx2.get(f"http://127.0.0.1:{closed_port()}/", trust_env=False)


def test_secrets_of_the_client_are_planted(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.support import canary

    plant_client_secrets(monkeypatch)
    assert canary.leaks(secrets.token_urlsafe(32))
