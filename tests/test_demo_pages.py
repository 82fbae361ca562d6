"""The demo's server and its provider page, over HTTP, spoken to by the plain SDK client."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gopher_mcp_python.demo.child import DemoServer
from gopher_mcp_python.demo.click import click
from tests.support import children

TOOL = "get_gmail_users_get_profile"
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor())


@pytest.fixture(scope="module")
def server() -> Iterator[DemoServer]:
    with DemoServer() as running:
        yield running


def call(
    url: str, answer: Callable[[str], str], *, mode: str = "legacy", calls: int = 1
) -> tuple[list[tuple[bool, str]], list[str]]:
    """Calls the mail tool; `answer` gets the link, in a thread, and returns the action. Results, and notices seen."""
    import mcp_types as types
    from mcp import Client

    async def work() -> tuple[list[tuple[bool, str]], list[str]]:
        notices = []

        async def elicit(_: Any, params: Any) -> types.ElicitResult:
            return types.ElicitResult(action=await asyncio.to_thread(answer, params.url))  # type: ignore[arg-type]

        async def message(incoming: Any) -> None:
            notices.append(getattr(incoming, "method", ""))

        async with Client(url, mode=mode, elicitation_callback=elicit, message_handler=message) as client:
            results = [await client.call_tool(TOOL, {}) for _ in range(calls)]
        return [(bool(result.is_error), result.content[0].text) for result in results], notices  # type: ignore[union-attr]

    return asyncio.run(work())


def _pressing(decision: str) -> Callable[[str], str]:
    def answer(url: str) -> str:
        click(url, decision)
        return "accept"

    return answer


def _get(url: str, **headers: str) -> tuple[int, str, Any]:
    request = urllib.request.Request(url, headers={name.replace("_", "-"): value for name, value in headers.items()})
    return _open(request)


def _open(request: urllib.request.Request) -> tuple[int, str, Any]:
    try:
        with _OPENER.open(request, timeout=20) as reply:
            return reply.status, reply.read().decode(), reply.headers
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), error.headers


def _while_asked(server: DemoServer, look: Callable[[str], None]) -> None:
    """Runs `look` on the page's link while the tool call waits, then cancels."""
    failures: list[BaseException] = []

    def answer(url: str) -> str:
        try:
            look(url)
        except BaseException as error:
            failures.append(error)
        return "cancel"

    call(server.url, answer)
    if failures:
        raise failures[0]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_allow_gives_the_profile(server: DemoServer, mode: str) -> None:
    results, notices = call(server.url, _pressing("allow"), mode=mode)
    assert results[0][0] is False and json.loads(results[0][1])["emailAddress"] == "ada@mail.example"
    assert ("notifications/elicitation/complete" in notices) == (mode == "legacy")


def test_a_session_is_asked_once(server: DemoServer) -> None:
    asked = []

    def answer(url: str) -> str:
        asked.append(url)
        return _pressing("allow")(url)

    results, _ = call(server.url, answer, calls=2)
    assert [failed for failed, _ in results] == [False, False]
    assert len(asked) == 1


@pytest.mark.parametrize("mode", ["legacy", "auto"])
@pytest.mark.parametrize(("action", "words"), [("decline", "'decline'"), ("cancel", "'cancel'")])
def test_no_means_no_profile(server: DemoServer, mode: str, action: str, words: str) -> None:
    results, _ = call(server.url, lambda url: action, mode=mode)
    assert results[0][0] is True and words in results[0][1]
    assert "ada@" not in results[0][1]


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_deny_on_the_page_is_told(server: DemoServer, mode: str) -> None:
    results, _ = call(server.url, _pressing("deny"), mode=mode)
    assert results[0][0] is True and "denied on the provider's page" in results[0][1]


def test_accept_before_the_page_is_done_waits_for_it(server: DemoServer) -> None:
    clicking: list[subprocess.Popen[bytes]] = []
    program = "import sys, time; from gopher_mcp_python.demo.click import click\ntime.sleep(1); click(sys.argv[1])"

    def answer(url: str) -> str:
        clicking.append(subprocess.Popen([sys.executable, "-c", program, url], env=children.environment()))
        return "accept"

    results, _ = call(server.url, answer)
    assert clicking[0].wait(20) == 0
    assert results[0][0] is False and "ada@mail.example" in results[0][1]


def test_the_page_is_closed_to_everything_outside(server: DemoServer) -> None:
    def look(url: str) -> None:
        status, html, headers = _get(url)
        policy = headers["Content-Security-Policy"]
        assert status == 200 and "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "form-action 'self'" in policy and headers["Cache-Control"] == "no-store"
        assert not re.search(r"<script|\ssrc=|\son\w+=|@import|url\(", html)
        assert not re.search(r"https?://", html), "nothing is loaded from, or leads, elsewhere"
        assert "prefers-color-scheme: dark" in html and ">Allow</button>" in html and ">Deny</button>" in html
        assert "HttpOnly" in headers["Set-Cookie"] and "samesite=strict" in headers["Set-Cookie"].lower()

    _while_asked(server, look)


@pytest.mark.parametrize("change", ["no cookie", "wrong proof", "other origin", "rebound host"])
def test_a_forged_click_is_refused(server: DemoServer, change: str) -> None:
    def look(url: str) -> None:
        _, html, headers = _get(url)
        fields = dict(re.findall(r'name="(state|proof)" value="([^"]*)"', html)) | {"decision": "allow"}
        sent = {"Cookie": headers["Set-Cookie"].split(";")[0], "Origin": url.partition("/provider")[0]}
        if change == "no cookie":
            del sent["Cookie"]
        elif change == "wrong proof":
            fields["proof"] = "0" * 64
        elif change == "other origin":
            sent["Origin"] = "https://evil.example"
        else:
            sent["Host"] = "evil.example:8123"
        target = urllib.parse.urljoin(url, "/provider/decision")
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        request = urllib.request.Request(target, urllib.parse.urlencode(fields).encode(), sent)
        with pytest.raises(urllib.error.HTTPError) as refused:
            opener.open(request, timeout=20)
        assert refused.value.code == 403
        refused.value.close()

    _while_asked(server, look)


def test_a_link_works_once_and_not_after_the_call(server: DemoServer) -> None:
    links = []

    def answer(url: str) -> str:
        links.append(url)
        click(url, "allow")
        assert "Already decided" in _get(url)[1]
        return "accept"

    results, _ = call(server.url, answer)
    assert results[0][0] is False
    assert _get(links[0])[0] == 410
    with pytest.raises(OSError, match="410"):
        click(links[0])


def test_a_callback_with_a_made_up_code_is_ignored(server: DemoServer) -> None:
    def look(url: str) -> None:
        state = urllib.parse.parse_qs(urllib.parse.urlsplit(url).query)["state"][0]
        back = urllib.parse.urljoin(url, "/oauth/callback?" + urllib.parse.urlencode({"state": state, "code": "x"}))
        assert _get(back)[0] == 410
        assert _get(urllib.parse.urljoin(url, "/oauth/callback?state=unknown&code=x"))[0] == 410

    _while_asked(server, look)


@pytest.mark.parametrize(
    "url",
    ["https://accounts.example.test/provider/authorize", "http://127.0.0.1:1/other", "http://localhost/provider/authorize"],
)  # fmt: skip
def test_only_the_demos_own_page_is_ever_clicked(url: str) -> None:
    with pytest.raises(ValueError, match=r"own page on 127\.0\.0\.1"):
        click(url)


def test_the_server_ends_with_its_starter() -> None:
    program = (
        "import sys, time; from gopher_mcp_python.demo.child import DemoServer\n"
        "server = DemoServer().__enter__(); print(server._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=children.environment()
    ) as starter:
        assert starter.stdout is not None
        pid = int(starter.stdout.readline())
        starter.kill()
    end = time.monotonic() + 10
    while _is_alive(pid):
        assert time.monotonic() < end, "the server outlived the program that started it"
        time.sleep(0.1)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def test_a_taken_port_is_said_in_one_line(server: DemoServer) -> None:
    port = urllib.parse.urlsplit(server.url).port
    ended = children.run([sys.executable, "-m", "gopher_mcp_python.demo.server", "--port", str(port)])
    assert ended.code == 1
    assert ended.err.count("\n") == 1 and str(port) in ended.err and "--port" in ended.err
