"""One TLS context for all clients: certificates are checked as ever, and read when they are needed."""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import pytest

from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.http import Http
from gopher_mcp_python.toolset import tls
from gopher_mcp_python.toolset.connection import HttpConnection, http_client
from tests.support.scripted_llm import HOSTS, certificates

NAMED = {"sni_hostname": HOSTS[0]}  # the certificate is that host's


class _Page(BaseHTTPRequestHandler):
    """Answers "here", or leads to where the server says."""

    def do_GET(self) -> None:
        to = getattr(self.server, "leads_to", None)
        self.send_response(307 if to else 200)
        if to:
            self.send_header("Location", to)
        self.send_header("Content-Length", "0" if to else "4")
        self.end_headers()
        if not to:
            self.wfile.write(b"here")

    def log_message(self, *args: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    leads_to: str | None = None

    def handle_error(self, *args: Any) -> None:
        """A client that breaks the handshake off is what is tested."""


def serving(context: ssl.SSLContext | None) -> Iterator[_Server]:
    server = _Server(("127.0.0.1", 0), _Page)
    if context is not None:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("certificates")
    certificates(made)
    return made


@pytest.fixture(scope="module")
def encrypted(folder: Path) -> Iterator[str]:
    for server in serving(certificates(folder)):
        yield f"https://127.0.0.1:{server.server_port}/"


@pytest.fixture(scope="module")
def plain() -> Iterator[_Server]:
    yield from serving(None)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> list[ssl.SSLContext]:
    """The contexts that are really made in a test that begins with none."""
    monkeypatch.setattr(tls, "_contexts", {})
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR"):
        monkeypatch.delenv(name, raising=False)
    contexts: list[ssl.SSLContext] = []
    real = httpx2.create_ssl_context

    def counted(*args: Any, **options: Any) -> ssl.SSLContext:
        context = real(*args, **options)
        if not args and not options:  # ours; clients pass through what they are given
            contexts.append(context)
        return context

    monkeypatch.setattr(httpx2, "create_ssl_context", counted)
    return contexts


async def fetch(url: str, *, follow: bool = False) -> str:
    async with http_client(HttpConnection(url)) as client:
        return (await client.get(url, extensions=NAMED, follow_redirects=follow)).text


def test_plain_http_reads_no_certificates(plain: _Server, made: list[ssl.SSLContext]) -> None:
    assert asyncio.run(fetch(f"http://127.0.0.1:{plain.server_port}/")) == "here"
    assert made == []


def test_a_stranger_is_refused(encrypted: str) -> None:
    with pytest.raises(httpx2.ConnectError, match="certificate"):
        asyncio.run(fetch(encrypted))


def test_the_named_authority_is_trusted_and_read_once(
    encrypted: str, folder: Path, made: list[ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    found: list[str] = []
    threads = [threading.Thread(target=lambda: found.append(asyncio.run(fetch(encrypted)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == ["here"] * 4 and len(made) == 1
    monkeypatch.delenv("SSL_CERT_FILE")  # another choice, another context
    with pytest.raises(httpx2.ConnectError, match="certificate"):
        asyncio.run(fetch(encrypted))


def test_the_name_in_the_certificate_counts(encrypted: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    monkeypatch.setitem(NAMED, "sni_hostname", "somebody.example.test")
    with pytest.raises(httpx2.ConnectError, match="certificate"):
        asyncio.run(fetch(encrypted))


def test_a_redirect_from_plain_http_is_checked(
    plain: _Server, encrypted: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plain, "leads_to", encrypted)
    url = f"http://127.0.0.1:{plain.server_port}/"
    with pytest.raises(httpx2.ConnectError, match="certificate"):
        asyncio.run(fetch(url, follow=True))
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    assert asyncio.run(fetch(url, follow=True)) == "here"


def test_a_file_that_is_missing_is_said_at_the_handshake(
    encrypted: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = folder / "later.pem"
    monkeypatch.setenv("SSL_CERT_FILE", str(file))
    with pytest.raises(FileNotFoundError):
        asyncio.run(fetch(encrypted))
    file.write_bytes((folder / "ca.pem").read_bytes())
    assert asyncio.run(fetch(encrypted)) == "here"


def test_authorization_servers_are_checked_by_the_same_context(
    encrypted: str, folder: Path, made: list[ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask() -> str:
        async with Http(encrypted) as http:
            request = httpx2.Request("GET", encrypted)
            request.extensions = NAMED
            return (await http.send(request)).text

    with pytest.raises(SignInError, match="certificate was not accepted"):
        asyncio.run(ask())
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "ca.pem"))
    assert asyncio.run(ask()) == asyncio.run(fetch(encrypted)) == "here"
    assert len(made) == 2  # one for each choice of certificates
