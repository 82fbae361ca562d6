"""The service's server configuration over real HTTP, and the factories that stand on it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from gopher_mcp_python import (
    AgentError,
    ApiKeyError,
    ConnectionError,
    GopherAgent,
    ServerConfig,
    ServerConfigRoute,
    TimeoutError,
    making,
    server_config,
)
from tests.support.servers import McpServer


class Service:
    """A service on loopback that answers as told and remembers its requests."""

    def __init__(self) -> None:
        self.status, self.body, self.location = 200, b'{"servers": []}', ""
        self.headers: dict[str, str] = {}
        self.pause = 0.0  # seconds before each byte of the body
        self.cut = 0  # bytes of the body that are announced and not sent
        self.locations: dict[str, str] = {}  # redirects by path
        self.requests: list[tuple[str, str | None]] = []
        self.hang: threading.Event | None = None
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                service.requests.append((self.path, self.headers.get("Authorization")))
                if service.hang:
                    service.hang.wait(10)
                    return  # the client has gone
                location = service.locations.get(self.path, service.location)
                self.send_response(302 if self.path in service.locations else service.status)
                for name, value in {**service.headers, **({"Location": location} if location else {})}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(service.body)))
                self.end_headers()
                body = service.body[: len(service.body) - service.cut]
                for piece in [body[at : at + 1] for at in range(len(body))] if service.pause else [body]:
                    time.sleep(service.pause)
                    try:
                        self.wfile.write(piece)
                    except OSError:
                        return  # the client has gone

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        self.root = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[Service]:
    running = Service()
    monkeypatch.setenv("GOPHER_API_ROOT", running.root + "/")
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    yield running
    running.close()


@pytest.mark.parametrize(
    ("route", "query"),
    [
        (None, ""),
        (ServerConfigRoute("serverId", "1"), "?serverId=1"),
        (ServerConfigRoute("serverName", "my mail & more"), "?serverName=my+mail+%26+more"),
        (ServerConfigRoute("gatewayId", "g"), "?gatewayId=g"),
        (ServerConfigRoute("gatewayName", "ü"), "?gatewayName=%C3%BC"),
    ],
)
def test_the_request(route: ServerConfigRoute | None, query: str, service: Service) -> None:
    assert json.loads(ServerConfig.fetch("the-key", route)) == {"servers": []}
    assert service.requests == [(f"/v1/mcp-servers{query}", "Bearer the-key")]


@pytest.mark.parametrize(
    ("environment", "root"),
    [
        ({}, "https://api.gopher.security"),
        ({"GOPHER_SDK_TEST": "true"}, "https://api-test.gopher.security"),
        ({"GOPHER_SDK_TEST": " Yes "}, "https://api-test.gopher.security"),
        ({"GOPHER_SDK_TEST": "false"}, "https://api.gopher.security"),
        ({"GOPHER_SDK_TEST": "on"}, "https://api.gopher.security"),  # as the library reads it
        ({"GOPHER_API_ROOT": "  "}, "https://api.gopher.security"),
        ({"GOPHER_SDK_TEST": "1", "GOPHER_API_ROOT": "http://a.test/x/"}, "http://a.test/x"),
    ],
)
def test_the_address(environment: dict[str, str], root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GOPHER_API_ROOT", "GOPHER_SDK_TEST"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert server_config._address(None) == f"{root}/v1/mcp-servers"


def test_an_address_of_another_kind_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_API_ROOT", "file:///etc")
    with pytest.raises(AgentError, match="GOPHER_API_ROOT must begin with https"):
        ServerConfig.fetch("k")


@pytest.mark.parametrize("key", ["", "  ", None, 3])
def test_a_key_is_required(key: Any) -> None:
    with pytest.raises(ApiKeyError, match="API key is required"):
        ServerConfig.fetch(key)


def test_a_key_with_a_line_break_is_refused_unseen(canary: Any) -> None:
    with pytest.raises(ApiKeyError, match="line break") as caught:
        ServerConfig.fetch(canary.secret("key") + "\nX: y")
    canary.check_exception("refused", caught.value)


def test_an_unknown_route_is_refused() -> None:
    with pytest.raises(AgentError, match="it is one of serverId"):
        ServerConfig.fetch("k", ServerConfigRoute("server_id", "1"))


def test_a_route_of_half_a_character_is_refused() -> None:
    with pytest.raises(AgentError, match="'serverName' holds half a character"):
        ServerConfig.fetch("k", ServerConfigRoute("serverName", "a\ud800b"))


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, ApiKeyError), (403, ApiKeyError), (404, AgentError), (500, ConnectionError), (503, ConnectionError)],
)
def test_refusals_are_typed_and_show_a_safe_preview(
    status: int, kind: type[AgentError], service: Service, canary: Any
) -> None:
    service.status = status
    service.body = f"no\x1b[2J access_token={canary.secret('echo')} ".encode() + b"x" * 5000
    with pytest.raises(AgentError) as caught:
        ServerConfig.fetch(canary.secret("key"))
    assert type(caught.value) is kind
    assert f"HTTP {status}" in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value).partition("): ")[2]) <= 512
    canary.check_exception("refused", caught.value)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'"x"', b"\xff", b'{"succeeded": false}'])
def test_answers_that_are_no_configuration(body: bytes, service: Service) -> None:
    service.body = body
    with pytest.raises(AgentError):
        ServerConfig.fetch("k")


def test_nobody_there(monkeypatch: pytest.MonkeyPatch, service: Service) -> None:
    monkeypatch.setenv("GOPHER_API_ROOT", "http://127.0.0.1:1")
    with pytest.raises(ConnectionError, match=r"127\.0\.0\.1:1 could not be reached"):
        ServerConfig.fetch("k")


def test_an_answer_that_does_not_come(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_config, "_TIMEOUT", 0.3)
    service.hang = threading.Event()
    with pytest.raises(TimeoutError, match="did not answer within"):
        ServerConfig.fetch("k")
    service.hang.set()


def test_the_limit_is_thirty_seconds() -> None:
    assert server_config._TIMEOUT == 30.0


def test_an_answer_that_trickles_in_is_given_up_too(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit is for the whole, while a socket's own is for each piece."""
    monkeypatch.setattr(server_config, "_TIMEOUT", 0.4)
    service.body, service.pause = b'{"servers": []}' + b" " * 100, 0.05
    with pytest.raises(TimeoutError, match="did not answer within"):
        ServerConfig.fetch("k")


def test_a_refusal_whose_body_does_not_come_is_a_refusal(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_config, "_TIMEOUT", 0.3)
    service.status, service.pause, service.body = 401, 0.6, b"n"
    with pytest.raises(ApiKeyError, match="HTTP 401"):
        ServerConfig.fetch("k")


def test_an_answer_that_is_cut_short(service: Service) -> None:
    service.cut = 1
    with pytest.raises(ConnectionError, match="broke"):
        ServerConfig.fetch("k")


def test_a_redirect_within_the_host_is_followed_with_the_key(service: Service) -> None:
    service.locations = {"/v1/mcp-servers": "/v2/servers?a=1"}
    assert ServerConfig.fetch("the-key") == '{"servers": []}'
    assert service.requests == [("/v1/mcp-servers", "Bearer the-key"), ("/v2/servers?a=1", "Bearer the-key")]


@pytest.mark.parametrize("kind", ["other port", "other name", "other scheme", "with a password"])
def test_no_redirect_leads_to_another_host(kind: str, service: Service, canary: Any) -> None:
    other, secret = Service(), canary.secret("redirect-password")
    port = service.root.rpartition(":")[2]
    service.status, service.location = 302, {
        "other port": other.root + "/elsewhere",
        "other name": f"http://localhost:{port}/elsewhere",
        "other scheme": f"https://127.0.0.1:{port}/elsewhere",
        "with a password": f"http://me:{secret}@127.0.0.1:{port}/elsewhere",
    }[kind]  # fmt: skip
    try:
        with pytest.raises(AgentError, match="redirects to another address") as caught:
            ServerConfig.fetch("the-key")
        assert secret not in str(caught.value)
        assert other.requests == [] and len(service.requests) == 1
    finally:
        other.close()


def test_redirects_in_a_circle_end(service: Service) -> None:
    service.status, service.location = 302, "/v1/mcp-servers"
    with pytest.raises(AgentError, match="HTTP 302"):
        ServerConfig.fetch("k")


# ---- what the answer may look like ----------------------------------------------------------------------------------


def test_a_byte_order_mark_is_left_out(service: Service) -> None:
    service.body = b"\xef\xbb\xbf" + service.body
    assert ServerConfig.fetch("k") == '{"servers": []}'


def test_gzip_that_nobody_asked_for_is_read(service: Service) -> None:
    service.headers, service.body = {"Content-Encoding": "GZIP"}, gzip.compress(service.body)
    assert ServerConfig.fetch("k") == '{"servers": []}'


@pytest.mark.parametrize(
    ("encoding", "body", "told"),
    [
        ("gzip", b"plain", "damaged"),
        ("gzip", gzip.compress(b'{"servers": []}')[:-9], "damaged"),
        ("gzip", gzip.compress(b" " * (17 * 1024 * 1024)), "larger than 16 MB"),
        ("br", b"\x0b", "not asked for"),
    ],
    ids=["no gzip", "cut", "bomb", "unknown"],
)
def test_a_broken_encoding_is_named(encoding: str, body: bytes, told: str, service: Service) -> None:
    service.headers, service.body = {"Content-Encoding": encoding}, body
    with pytest.raises(AgentError, match=told):
        ServerConfig.fetch("k")


def test_an_answer_without_end_is_given_up(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_config, "_LARGEST", 100_000)
    service.body = b" " * 200_000
    with pytest.raises(AgentError, match="larger than"):
        ServerConfig.fetch("k")


def test_a_key_that_the_service_repeats_is_not_told(service: Service, canary: Any) -> None:
    key = canary.secret("api-key")
    service.status, service.body = 403, f"no such key: {key}.".encode()
    with pytest.raises(ApiKeyError, match="no such key: <API key>") as caught:
        ServerConfig.fetch(key)
    canary.check_exception("refused", caught.value)
    service.status, service.body = 200, json.dumps({"succeeded": False, "message": f"{key} has no plan"}).encode()
    with pytest.raises(AgentError, match=r"succeeded: false\): <API key> has no plan") as caught:
        ServerConfig.fetch(key)
    canary.check_exception("refused", caught.value)


# ---- the factories that stand on it, on the embedded engine ---------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "path"),
    [
        (lambda o: GopherAgent.create_with_api_key("DirectProvider", "m", "key", o), ""),
        (lambda o: GopherAgent.create_with_server_id("DirectProvider", "m", "key", "7", o), "?serverId=7"),
        (lambda o: GopherAgent.create_with_server_name("DirectProvider", "m", "key", "mail", o), "?serverName=mail"),
        (lambda o: GopherAgent.create_with_gateway_id("DirectProvider", "m", "key", "8", o), "?gatewayId=8"),
        (lambda o: GopherAgent.create_with_gateway_name("DirectProvider", "m", "key", "gw", o), "?gatewayName=gw"),
    ],
    ids=["api_key", "server_id", "server_name", "gateway_id", "gateway_name"],
)
@pytest.mark.parametrize("wrapped", [True, False])
def test_a_fetched_configuration_makes_an_agent_whose_tools_can_ask(
    make: Any, path: str, wrapped: bool, service: Service, server: McpServer
) -> None:
    servers = {"servers": [{"name": "mail", "url": server.url, "transport": "streamable_http"}]}
    service.body = json.dumps({"succeeded": True, "data": servers} if wrapped else servers).encode()
    asked: list[Any] = []

    def handler(request: Any) -> str:
        asked.append(request)
        return "accept"

    with make({"engine": "embedded", "elicitation": {"handler": handler}}) as agent:
        assert service.requests == [(f"/v1/mcp-servers{path}", "Bearer key")]
        assert "accept" in agent.run("decline_aware")
    assert len(asked) == 1
    assert server.actions() == ["accept"]


@pytest.mark.parametrize("place", ["top", "config"])
@pytest.mark.parametrize("wrapped", [True, False])
def test_the_url_at_the_top_or_under_config_beside_what_is_null(
    place: str, wrapped: bool, service: Service, server: McpServer
) -> None:
    where = {"url": server.url} if place == "top" else {"config": {"url": server.url, "headers": {}}}
    servers = {"servers": [None, {"name": "mail", "serverId": "7", "transport": "http_sse", **where}]}
    service.body = json.dumps({"succeeded": True, "data": servers} if wrapped else servers).encode()
    with GopherAgent.create_with_api_key("DirectProvider", "m", "key", {"engine": "embedded"}) as agent:
        assert agent.run("plain") == "plain: ok"


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        ([], "names no server"),
        ([None], "names no server"),
        (["mail"], "is not an object"),
        ([{"name": "mail"}], "mail has neither a url nor a command"),
        ([{"name": "mail", "url": "ftp://a.test/"}], "not an http or https address"),
    ],
)
def test_a_fetched_configuration_without_a_usable_server_says_so(
    servers: list[Any], told: str, service: Service
) -> None:
    service.body = json.dumps({"data": {"servers": servers}}).encode()
    with pytest.raises(AgentError, match=told):
        GopherAgent.create_with_gateway_id("DirectProvider", "m", "key", "g", {"engine": "embedded"})


def test_a_refused_key_is_told_by_the_factory_too(service: Service) -> None:
    service.status, service.body = 401, b'{"message": "unknown key"}'
    with pytest.raises(ApiKeyError, match=r"refused the API key \(HTTP 401\): .*unknown key"):
        GopherAgent.create_with_server_name("DirectProvider", "m", " key ", "mail", {"engine": "embedded"})
    assert service.requests == [("/v1/mcp-servers?serverName=mail", "Bearer key")]


@pytest.mark.parametrize("route", [1, "serverId", {"key": "serverId", "value": "x"}])
def test_a_route_of_the_wrong_kind_is_named(route: Any) -> None:
    with pytest.raises(AgentError, match="ServerConfigRoute"):
        ServerConfig.fetch("key", route)


@pytest.mark.parametrize(
    "root",
    [
        "ftp://a.test",
        "http://[::1",
        "http:///x",
        "http://a.test:99999",
        "https://",
        "http://user:s3cret@127.0.0.1:1",
        "http://127.0.0.1:1/?key=s3cret",
        "http://127.0.0.1:1/#s3cret",
    ],
)
def test_an_unusable_root_is_refused_without_being_told(root: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_API_ROOT", root)
    with pytest.raises(AgentError, match="GOPHER_API_ROOT must") as caught:
        ServerConfig.fetch("key")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("value", ["", " ", None, 1])
def test_a_route_needs_a_value(value: Any) -> None:
    with pytest.raises(AgentError, match="must be a non-empty string"):
        ServerConfig.fetch("key", ServerConfigRoute("serverId", value))


@pytest.mark.parametrize("form", ["servers", "nested", "mcpServers"])
def test_headers_inside_a_configuration_go_by_the_same_rules(form: str, canary: Any) -> None:
    """On both engines: the native library would send a line break as the beginning of another header."""
    secret = canary.secret("configured-header")
    entry = {"name": "mail", "url": "http://127.0.0.1:9/mcp", "headers": {"X-Key": f"{secret}\r\nX-Other: 1"}}
    text = json.dumps(
        {
            "servers": {"servers": [entry]},
            "nested": {"data": {"servers": [{"name": "mail", "config": entry}]}},
            "mcpServers": {"mcpServers": {"mail": entry}},
        }[form]
    )
    with pytest.raises(ValueError, match="the header 'X-Key' holds a line break") as caught:
        GopherAgent.create_with_server_config("DirectProvider", "direct", text)
    assert secret not in str(caught.value)


@pytest.mark.parametrize(
    ("entry", "local"),
    [
        ({"command": "mail-server"}, True),
        ({"config": {"command": "mail-server", "args": []}}, True),
        ({"name": "command", "url": "https://mcp.example.test/"}, False),
        ({"url": "https://mcp.example.test/", "description": '"command"'}, False),
    ],
)
def test_only_a_configuration_with_a_command_needs_the_embedded_engine(entry: dict[str, Any], local: bool) -> None:
    objects = list(making._objects(json.dumps({"servers": [entry]})))
    assert (making._embedded_only("OpenAIProvider", objects) is not None) is local


def test_a_configuration_nested_without_end_is_left_to_the_engine() -> None:
    assert list(making._objects("[" * 100_000)) == []


def test_a_token_in_a_servers_path_is_not_told(canary: Any) -> None:
    secret = canary.secret("path-token")
    with pytest.raises(ConnectionError) as caught:
        GopherAgent.create_with_url("DirectProvider", "direct", f"http://127.0.0.1:9/s/{secret}/mcp")
    assert secret not in str(caught.value)
    assert "http://127.0.0.1:9/s/" in str(caught.value)
