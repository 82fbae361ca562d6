"""The loopback listener: one redirect is taken, everything else changes nothing, the pages say what is true."""

from __future__ import annotations

import asyncio
import base64
import errno
import hashlib
import logging
import pickle
import re
import shutil
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import httpx2
import pytest

from gopher_mcp_python import AgentError
from gopher_mcp_python.oauth import incoming, loopback, pages, redirect, sockets
from gopher_mcp_python.oauth.debug import debug
from gopher_mcp_python.oauth.errors import SignInError
from gopher_mcp_python.oauth.loopback import Callback, Redirect
from tests.support.canary import Canary, secret

STATE, CODE = secret("state"), secret("code")
HAS_IPV6 = socket.has_ipv6 and Path("/proc/net/if_inet6").exists()
needs_ipv6 = pytest.mark.skipif(not HAS_IPV6, reason="this machine has no IPv6 loopback")


def right(**more: str) -> str:
    return urlencode({"code": CODE, "state": STATE, **more})


async def raw(callback: Callback, data: bytes, host: str = "127.0.0.1") -> str:
    """Sends bytes to the listener and reads until it closes."""
    reader, writer = await asyncio.open_connection(host, urlsplit(callback.redirect_uri).port)
    try:
        writer.write(data)
        return (await reader.read()).decode()
    finally:
        writer.close()


async def get(callback: Callback, query: str, *, path: str | None = None, host: str | None = None) -> str:
    parts = urlsplit(callback.redirect_uri)
    target = f"{path or parts.path}?{query}" if query else path or parts.path
    return await raw(callback, f"GET {target} HTTP/1.1\r\nHost: {host or parts.netloc}\r\n\r\n".encode())


async def taken(callback: Callback) -> Redirect:
    """The listener still takes the right redirect, and at once."""
    browser = asyncio.ensure_future(get(callback, right()))
    found = await asyncio.wait_for(callback.wait(STATE), 5)
    assert found.code == CODE
    await callback.finish(True, "You are signed in.")
    assert "<h1>Signed in</h1>" in await browser
    return found


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def with_limit() -> Any:
        return await asyncio.wait_for(main(), 60)

    return asyncio.run(with_limit())


# ---- The redirect that is waited for --------------------------------------------------------------------------------


def test_the_page_is_held_until_the_end_is_known_and_tells_the_truth() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback, httpx2.AsyncClient() as client:
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", callback.redirect_uri)
            waiting = asyncio.ensure_future(callback.wait(STATE))
            await asyncio.sleep(0)
            query = {"code": CODE, "state": STATE, "iss": "https://as.test"}
            browser = asyncio.ensure_future(client.get(callback.redirect_uri, params=query))
            found = await waiting
            assert (found.code, found.error, found.error_description, found.iss) == (
                CODE,
                None,
                None,
                "https://as.test",
            )
            assert not (await asyncio.wait({browser}, timeout=0.1))[0], "nothing is known yet, and a page was sent"
            await callback.finish(True, "You are signed in to mail.example.com.")
            page = await browser
            assert page.status_code == 200
            assert "<h1>Signed in</h1><p>You are signed in to mail.example.com.</p>" in page.text

    run(main)


def test_a_failure_is_told_and_escaped() -> None:
    async def main() -> str:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            browser = asyncio.ensure_future(get(callback, right()))
            await callback.wait(STATE)
            await callback.finish(False, 'It was refused: <script>alert("x")</script>')
            return await browser

    page = run(main)
    assert "<h1>Not signed in</h1>" in page and "Signed in</h1>" not in page.replace("Not signed in", "")
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt;" in page and "<script" not in page


def test_an_error_with_the_right_state_is_taken() -> None:
    async def main() -> Redirect:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            query = urlencode({"error": "access_denied", "error_description": "no, thanks", "state": STATE})
            browser = asyncio.ensure_future(get(callback, query))
            found = await callback.wait(STATE)
            await callback.finish(False, "")
            assert "The sign-in did not succeed." in await browser
            return found

    found = run(main)
    assert (found.code, found.error, found.error_description) == (None, "access_denied", "no, thanks")


def test_nothing_is_taken_before_somebody_waits() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            assert "Nothing was done" in await get(callback, right())
            assert callback.redirect is None
            await taken(callback)

    run(main)


def test_a_browser_that_waits_too_long_is_sent_to_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "_HOLD_SECONDS", 0.05)

    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            page = await get(callback, right())
            assert "Go back to the program" in page and "not finished yet" in page
            again = asyncio.ensure_future(get(callback, right()))  # loaded again: waits for the end once more
            assert (await callback.wait(STATE)).code == CODE
            while callback._held is None:
                await asyncio.sleep(0.005)
            await callback.finish(True, "")
            assert "<h1>Signed in</h1>" in await again

    run(main)


def test_a_reload_while_the_end_is_not_known_gets_the_page() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            first = asyncio.ensure_future(get(callback, right()))
            await callback.wait(STATE)
            first.cancel()  # closes the connection, as a browser does
            await asyncio.wait({first})
            while callback._held is not None:
                await asyncio.sleep(0.005)
            second = asyncio.ensure_future(get(callback, right()))
            while callback._held is None:
                await asyncio.sleep(0.005)
            await callback.finish(True, "")
            assert "<h1>Signed in</h1>" in await second

    run(main)


def test_a_second_attempt_sends_the_browser_of_the_first_one_away() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            before = secret("before")
            callback.expect(before)
            first = asyncio.ensure_future(get(callback, f"code={CODE}&state={before}"))
            await callback.wait(before)
            callback.expect(STATE)
            assert "Go back to the program" in await first
            assert callback.redirect is None
            await taken(callback)

    run(main)


# ---- Addresses ------------------------------------------------------------------------------------------------------


@needs_ipv6
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_localhost_is_both_families_on_one_port(host: str) -> None:
    async def main() -> None:
        async with await Callback.listen("http://localhost/cb?tenant=a") as callback:
            port = urlsplit(callback.redirect_uri).port
            assert callback.redirect_uri == f"http://localhost:{port}/cb?tenant=a"
            callback.expect(STATE)
            target = f"GET /cb?tenant=a&{right()} HTTP/1.1\r\nHost: localhost:{port}\r\n\r\n".encode()
            browser = asyncio.ensure_future(raw(callback, target, host))
            assert (await callback.wait(STATE)).code == CODE
            await callback.finish(True, "")
            assert "Signed in" in await browser

    run(main)


@pytest.mark.parametrize(
    ("uri", "places"),
    [
        (None, ["127.0.0.1"]),
        ("http://127.0.0.1/x", ["127.0.0.1"]),
        ("http://127.0.0.9/x", ["127.0.0.9"]),
        pytest.param("http://[::1]/x", ["::1"], marks=needs_ipv6),
        pytest.param("HTTP://LOCALHOST", ["127.0.0.1", "::1"], marks=needs_ipv6),
    ],
)
def test_only_what_the_uri_means_is_bound(uri: str | None, places: list[str]) -> None:
    bound = sockets.bind(sockets.parse_address(uri))
    try:
        assert [one.getsockname()[0] for one in bound] == places
        assert len({one.getsockname()[1] for one in bound}) == 1
    finally:
        for one in bound:
            one.close()


@pytest.mark.parametrize("missing", [socket.AF_INET, socket.AF_INET6])
@pytest.mark.parametrize("number", [errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL])
def test_a_family_that_the_machine_does_not_have_is_no_error(
    monkeypatch: pytest.MonkeyPatch, missing: int, number: int
) -> None:
    """No test can take a family from the machine: binding it fails as the kernel would let it fail."""
    real = sockets._bind_one

    def bind_one(family: int, place: str, port: int) -> socket.socket:
        if family == missing:
            raise OSError(number, "not on this machine")
        if family == socket.AF_INET6 and not HAS_IPV6:
            pytest.skip("this machine has no IPv6 loopback")
        return real(family, place, port)

    monkeypatch.setattr(sockets, "_bind_one", bind_one)
    bound = sockets.bind(sockets.parse_address("http://localhost/x"))
    assert [one.family for one in bound] == [socket.AF_INET6 if missing == socket.AF_INET else socket.AF_INET]
    for one in bound:
        one.close()
    with pytest.raises(SignInError, match="No port could be opened on"):
        sockets.bind(sockets.parse_address("http://127.0.0.1/x" if missing == socket.AF_INET else "http://[::1]/x"))


def test_a_named_port_is_used_as_it_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    uri = f"http://localhost:{port}"

    async def main() -> None:
        for _ in range(2):  # the port is free again at once
            async with await Callback.listen(uri) as callback:
                assert callback.redirect_uri == uri
                callback.expect(STATE)
                browser = asyncio.ensure_future(get(callback, right(), path="/"))
                assert (await callback.wait(STATE)).code == CODE
                await callback.finish(True, "")
                await browser

    run(main)


@pytest.mark.parametrize("place", ["127.0.0.1", pytest.param("::1", marks=needs_ipv6)])
def test_a_port_that_is_taken_on_either_family_is_named(place: str) -> None:
    with socket.socket(socket.AF_INET6 if ":" in place else socket.AF_INET) as other:
        other.bind((place, 0))
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(SignInError, match=rf"Port {port} of localhost.* another program uses it") as error:
            run(lambda: Callback.listen(f"http://localhost:{port}/callback"))
    assert error.value.reason == "misconfigured"


@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("https://localhost/callback", "its scheme is not http"),
        ("app:/callback", "its scheme is not http"),
        ("http://example.com/callback", "its host is not this machine"),
        ("http://localhost.example.com/callback", "its host is not this machine"),
        ("http://0.0.0.0:1234/callback", "its host is not this machine"),
        ("http:///callback", "its host is not this machine"),
        ("", "its scheme is not http"),
        ("http://localhost:0/callback", "its port is 0"),
        ("http://localhost:99999/callback", "it is malformed"),
        ("http://[::1/callback", "it is malformed"),
        ("http://localhost/callback#there", "it has a fragment"),
        ("http://me:it@localhost/callback", "it has a user name"),
        ("http://localhost/call back", "it holds a space"),
        ("http://localhost/\r\nX: y", "it holds a space"),
    ],
)
def test_a_uri_that_nobody_here_can_listen_on_is_refused_with_the_reason(uri: str, why: str) -> None:
    with pytest.raises(SignInError, match=re.escape(why)) as error:
        run(lambda: Callback.listen(uri))
    assert error.value.reason == "misconfigured" and "leave redirect_uri out" in str(error.value)


# ---- Everything else ------------------------------------------------------------------------------------------------

STRAYS: dict[str, tuple[str, str, str, int]] = {
    "an error with a wrong state": ("GET", f"/callback?error=access_denied&state={secret('other')}", "{host}", 400),
    "a code with a wrong state": ("GET", f"/callback?code={CODE}&state={STATE}x", "{host}", 400),
    "a code without a state": ("GET", f"/callback?code={CODE}", "{host}", 400),
    "an empty state": ("GET", f"/callback?code={CODE}&state=", "{host}", 400),
    "two states": ("GET", f"/callback?code={CODE}&state={STATE}&state={STATE}", "{host}", 400),
    "two codes": ("GET", f"/callback?code={CODE}&code=b&state={STATE}", "{host}", 400),
    "200 parameters": ("GET", f"/callback?{'a=b&' * 200}code={CODE}&state={STATE}", "{host}", 400),
    "no query": ("GET", "/callback", "{host}", 400),
    "the icon": ("GET", "/favicon.ico", "{host}", 404),
    "another path": ("GET", f"/callback/x?{right()}", "{host}", 404),
    "the path of a path": ("GET", f"//127.0.0.1/callback?{right()}", "{host}", 404),
    "a whole URL": ("GET", f"http://{{host}}/callback?{right()}", "{host}", 404),
    "HEAD": ("HEAD", f"/callback?{right()}", "{host}", 405),
    "POST": ("POST", f"/callback?{right()}", "{host}", 405),
    "OPTIONS": ("OPTIONS", f"/callback?{right()}", "{host}", 405),
    "a name that leads here (DNS rebinding)": ("GET", f"/callback?{right()}", "evil.example", 400),
    "such a name with our port": ("GET", f"/callback?{right()}", "evil.example:{port}", 400),
    "an address of another machine": ("GET", f"/callback?{right()}", "192.0.2.1:{port}", 400),
    "another port": ("GET", f"/callback?{right()}", "127.0.0.1:1", 400),
    "a port of many digits": ("GET", f"/callback?{right()}", f"127.0.0.1:{'1' * 5000}", 400),
    "two hosts": ("GET", f"/callback?{right()}", "{host}\r\nHost: {host}", 400),
    "an empty host": ("GET", f"/callback?{right()}", "", 400),
}


@pytest.mark.parametrize("name", STRAYS)
def test_a_stray_gets_a_small_true_page_and_changes_nothing(name: str) -> None:
    method, target, host, status = STRAYS[name]

    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            parts = urlsplit(callback.redirect_uri)
            place = {"host": parts.netloc, "port": parts.port}
            head = f"{method} {target.format(**place)} HTTP/1.1\r\nHost: {host.format(**place)}\r\n\r\n"
            answer = await raw(callback, head.encode())
            first, _, page = answer.partition("\r\n")
            assert first.startswith(f"HTTP/1.1 {status} ")
            assert ("Nothing was done" in page) is (method != "HEAD") and len(page) < 4000
            assert "Signed in" not in answer and callback.redirect is None
            await taken(callback)

    run(main)


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",  # TLS
        b"\x00" * 5000,
        b"nonsense\r\n\r\n",
        b"GET /callback\r\n\r\n",
        b"GET /callback?" + right().encode() + b" HTTP/1.1\r\n\r\n",  # no Host
        b"GET /callback?" + right().encode() + b" HTTP/2.0\r\nHost: 127.0.0.1\r\n\r\n",
        b"POST /callback HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 300000\r\n\r\n" + b"x" * 300000,
        b"GET /callback HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: " + b"y" * 300000,
        b"GET /callback?code=" + b"x" * (1 << 20) + b"&state=y HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    ],
    ids=range(9),
)
def test_noise_is_no_harm(data: bytes) -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            answer = await raw(callback, data)
            assert not answer or re.match(r"HTTP/1.1 4\d\d ", answer)
            if len(data) > 200000:
                assert "Nothing was done" in answer, "the answer did not arrive"
            await taken(callback)

    run(main)


def test_a_request_in_pieces_is_read() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            parts = urlsplit(callback.redirect_uri)
            reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
            for letter in f"GET /callback?{right()} HTTP/1.1\r\nhost:{parts.netloc}\r\nCookie: {'c' * 9000}\r\n\r\n":
                writer.write(letter.encode())
                if letter in "=\r\n":
                    await asyncio.sleep(0)
            assert (await callback.wait(STATE)).code == CODE
            await callback.finish(True, "")
            assert b"Signed in" in await reader.read()
            writer.close()

    run(main)


def test_connections_that_say_nothing_hold_up_nobody_and_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(incoming, "_REQUEST_SECONDS", 0.3)

    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            port = urlsplit(callback.redirect_uri).port
            silent = await asyncio.gather(*(asyncio.open_connection("127.0.0.1", port) for _ in range(200)))
            half = (await asyncio.open_connection("127.0.0.1", port))[1]
            half.write(b"GET /callback")
            answers = await asyncio.gather(*(get(callback, f"code=x&state=wrong{n}") for n in range(200)))
            assert all("Nothing was done" in answer for answer in answers)
            browser = asyncio.ensure_future(get(callback, right()))
            assert (await callback.wait(STATE)).code == CODE
            for reader, writer in silent:
                try:
                    assert await reader.read() == b""
                except ConnectionError:
                    pass
                writer.close()
            half.close()
            await callback.finish(True, "")
            assert "Signed in" in await browser

    run(main)


def test_too_many_idle_connections_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loopback, "_IDLE_SECONDS", 0.0)

    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            port = urlsplit(callback.redirect_uri).port
            silent = [await asyncio.open_connection("127.0.0.1", port) for _ in range(loopback._MANY + 40)]
            await asyncio.sleep(0.05)
            assert len(callback._connections) <= loopback._MANY
            await taken(callback)
            for _, writer in silent:
                writer.close()

    run(main)


def test_a_repeated_callback_is_not_taken_again() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            browser = asyncio.ensure_future(get(callback, right()))
            first = await callback.wait(STATE)
            again = await get(callback, urlencode({"code": secret("second"), "state": STATE}))
            assert again.startswith("HTTP/1.1 400") and "has been here with this sign-in before" in again
            assert await callback.wait(STATE) is first and first.code == CODE
            await callback.finish(True, "")
            assert "Signed in" in await browser

    run(main)


def test_states_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return False

    monkeypatch.setattr(redirect.hmac, "compare_digest", compare)
    assert redirect.read_redirect(right(), STATE) == "other"
    assert compared == [(STATE.encode(), STATE.encode())]
    assert redirect.read_redirect("code=x&state=", "") == "other"


# ---- Pages ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("page", [pages.signed_in(""), pages.failed(""), pages.pending(), pages.stray("x")])
def test_pages_load_and_run_nothing_and_are_kept_nowhere(page: bytes) -> None:
    from http import HTTPStatus

    head, _, body = pages.response(HTTPStatus.OK, page).decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert {"Cache-Control: no-store", "Referrer-Policy: no-referrer", "Connection: close"} <= set(lines)
    assert f"Content-Length: {len(page)}" in lines
    (policy,) = (line.partition(": ")[2] for line in lines if line.startswith("Content-Security-Policy"))
    (style,) = re.findall("<style>(.*?)</style>", body, re.S)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.split("; ")[:2] == ["default-src 'none'", f"style-src 'sha256-{digest}'"]
    assert not re.search(r"<script|<link|<img|<iframe|<form|https?:|url\(|\son\w+=|style=", body)


def test_a_real_browser_shows_the_page_as_it_is_meant(tmp_path: Path) -> None:
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("no chromium here: apt-get install chromium")

    async def main() -> tuple[str, str]:
        async with await Callback.listen("http://localhost/callback") as callback:
            callback.expect(STATE)
            browser = await asyncio.create_subprocess_exec(
                chromium, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path}",
                "--enable-logging=stderr", "--dump-dom", f"{callback.redirect_uri}?{right()}",
                stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            )  # fmt: skip
            await callback.wait(STATE)
            await callback.finish(True, "You are signed in to mail.example.com.")
            out, err = await browser.communicate()
            return out.decode(), err.decode(errors="replace")

    shown, log = run(main)
    assert "<h1>Signed in</h1>" in shown
    assert not [line for line in log.splitlines() if "CONSOLE" in line], "the policy blocked the page's own style"


# ---- Pasted addresses -----------------------------------------------------------------------------------------------

WHOLE = f"http://127.0.0.1:1/callback?{right()}"


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        f"  {WHOLE}  \r\n",
        f"<{WHOLE}>",
        f'"{WHOLE}"',
        f"[({WHOLE})]",
        f"\x1b[200~{WHOLE}\x1b[201~",
        f"[200~{WHOLE}[201~",
        WHOLE[:40] + "\n" + WHOLE[40:60] + "\r\n  " + WHOLE[60:],
        WHOLE.removeprefix("http://"),
        WHOLE.partition("?")[2],
        "?" + WHOLE.partition("?")[2],
        "/callback?" + WHOLE.partition("?")[2],
        WHOLE + "#_=_",
        WHOLE.replace("&", "&amp;"),
        WHOLE.replace("?", "#"),
        f"the address is: {WHOLE}",
        WHOLE + "&iss=https://as.test/x",
        WHOLE.partition("?")[2] + "&iss=https://as.test/x",
        WHOLE + "&x=" + "y" * 20000,
    ],
    ids=range(19),
)
def test_a_pasted_address_is_taken_however_it_was_copied(text: str) -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            assert callback.feed(text) is None
            found = await callback.wait(STATE)
            assert found.code == CODE
            assert found.iss in (None, "https://as.test/x")

    run(main)


def test_a_pasted_error_is_taken() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            assert callback.feed(f"http://localhost/callback?error=access_denied&state={STATE}") is None
            assert (await callback.wait(STATE)).error == "access_denied"

    run(main)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"http://127.0.0.1/callback?code={CODE}&state={secret('old')}", "belongs to another sign-in"),
        (f"http://127.0.0.1/callback?code={CODE}", "only a part"),
        (f"code={CODE}", "only a part"),
        (CODE, "is not the address"),
        ("", "is not the address"),
        (f"rest-of-code&state={STATE}", "is not the address"),
        ("http://127.0.0.1/callback", "is not the address"),
        (f"{WHOLE}&state=b", "says something twice"),
        (f"https://accounts.example.test/authorize?client_id=a&state={STATE}", "the page where the sign-in begins"),
        (f"<https://ACCOUNTS.example.test/authorize?client_id=a&state={STATE}>", "the page where the sign-in begins"),
    ],
)
def test_what_can_t_be_taken_is_refused_with_words_that_help(text: str, why: str, canary: Canary) -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            callback.expect(STATE)
            said = callback.feed(text, sign_in_url=f"https://accounts.example.test/authorize?state={STATE}")
            assert said is not None and why in said
            canary.check("sentence for people", said)
            assert callback.redirect is None
            await taken(callback)
            assert callback.feed(WHOLE) == "No sign-in is waiting."

    run(main)


def test_feeding_wakes_the_one_who_waits_from_another_thread_once() -> None:
    async def main() -> None:
        async with await Callback.listen() as callback:
            assert callback.feed(WHOLE) == "No sign-in is waiting."
            waiting = asyncio.ensure_future(callback.wait(STATE))
            await asyncio.sleep(0.01)
            said: list[str | None] = []
            threads = [threading.Thread(target=lambda: said.append(callback.feed(WHOLE))) for _ in range(8)]
            for one in threads:
                one.start()
            assert (await waiting).code == CODE
            await asyncio.to_thread(lambda: [one.join() for one in threads])
            assert sorted(said, key=str) == [None] + ["The browser has come back already."] * 7

    run(main)


# ---- Ends -----------------------------------------------------------------------------------------------------------


def test_everything_is_closed_at_once() -> None:
    async def main() -> None:
        callback = await Callback.listen("http://localhost/callback")
        idle = await asyncio.open_connection("127.0.0.1", urlsplit(callback.redirect_uri).port)
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        await callback.finish(False, "")
        await callback.finish(True, "")
        assert asyncio.get_running_loop().time() - began < 0.9
        with pytest.raises(OSError):
            await asyncio.open_connection("127.0.0.1", urlsplit(callback.redirect_uri).port)
        with pytest.raises(SignInError, match="ended before the browser came back") as error:
            await callback.wait(STATE)
        assert error.value.reason == "cancelled"
        idle[1].close()

    run(main)


def test_closing_ends_the_wait_of_others() -> None:
    async def main() -> None:
        callback = await Callback.listen()
        waiting = asyncio.ensure_future(callback.wait(STATE))
        await asyncio.sleep(0)
        callback.close()
        with pytest.raises(SignInError, match="ended before"):
            await waiting

    run(main)


@pytest.mark.parametrize("after", range(6))
def test_cancelled_at_any_moment_it_leaves_nothing_open(after: int) -> None:
    """What is left open would be found by the leak guard (tests/support/guards.py)."""

    async def whole() -> None:
        async with await Callback.listen("http://localhost/callback") as callback:
            callback.expect(STATE)
            browser = asyncio.ensure_future(get(callback, right()))
            try:
                await callback.wait(STATE)
            finally:
                browser.cancel()

    async def main() -> None:
        task = asyncio.ensure_future(whole())
        for _ in range(after):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait({task})

    run(main)


def test_cancelled_while_the_last_page_is_on_its_way() -> None:
    async def main() -> None:
        callback = await Callback.listen()
        callback.expect(STATE)
        browser = asyncio.ensure_future(get(callback, right()))
        await callback.wait(STATE)
        ending = asyncio.ensure_future(callback.finish(True, ""))
        await asyncio.sleep(0)
        ending.cancel()
        await asyncio.wait({ending})
        assert "Signed in" in await browser or ending.cancelled()

    run(main)


# ---- Secrets --------------------------------------------------------------------------------------------------------


def test_nothing_of_a_redirect_is_shown_by_what_holds_it() -> None:
    found = Redirect(CODE, secret("error"), secret("text"), secret("iss"))
    assert f"{found!r} {found!s}" == "Redirect(<redacted>) Redirect(<redacted>)"


def test_asyncio_in_debug_mode_and_our_own_debug_lines_tell_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every step of the loop is logged as slow; the canary reads all of it."""
    monkeypatch.setenv("GOPHER_MCP_OAUTH_DEBUG", "1")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        loop.slow_callback_duration = 0.0
        async with await Callback.listen() as callback:
            port = urlsplit(callback.redirect_uri).port
            waiting = asyncio.ensure_future(callback.wait(STATE))
            await asyncio.sleep(0)
            await asyncio.to_thread(_send, port, f"code={CODE}&state={secret('wrong')}")
            callback.feed(f"code={CODE}")
            sending = asyncio.ensure_future(asyncio.to_thread(_send, port, right()))
            await waiting
            await asyncio.sleep(0.05)
            await callback.finish(True, "")
            await sending

    with caplog.at_level(logging.DEBUG):
        run(main)
    assert "Executing" in caplog.text, "asyncio logged nothing: the test is blind"
    assert "gopher_mcp_python.oauth:debug.py" in caplog.text and "the browser came back has_code=True" in caplog.text


def _send(port: int, query: str) -> None:
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(f"GET /callback?{query} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
        while one.recv(4096):
            pass


def test_debug_lines_exist_only_when_asked_for_and_are_redacted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG):
        debug("not asked for")
        monkeypatch.setenv("GOPHER_MCP_OAUTH_DEBUG", "0")
        debug("not asked for")
        assert not caplog.records
        monkeypatch.setenv("GOPHER_MCP_OAUTH_DEBUG", "1")
        debug(
            "said",
            code=CODE, url=f"https://as.test/authorize?state={STATE}", refresh_token=CODE, count=3, none=None,
            scopes=["mail"], error=ValueError(f"access_token={CODE}"), evil="a\nb\x1b[2J",
        )  # fmt: skip
    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("said code=<redacted> url=https://as.test/authorize?state=")
    assert "count=3 none=None scopes=[mail] error=ValueError(access_token=<redacted>)" in line
    assert "\n" not in line and "\x1b" not in line


def test_a_sign_in_error_survives_pickling() -> None:
    error = SignInError("The sign-in was cancelled.", "cancelled")
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, AgentError) and type(copy) is SignInError
    assert (copy.message, str(copy), copy.reason) == (error.message, str(error), "cancelled")
