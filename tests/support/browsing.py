"""A person with a browser, for the tests of first-step sign-in.

In the test's process: `Browser(monkeypatch)` stands where the product starts the browser. In a child process:
`BROWSER=` the file that `browser_file()` writes. Either way pages are really fetched: redirects are followed to the
program's callback, Allow or Deny is pressed where a page has the buttons.
"""

from __future__ import annotations

import argparse
import asyncio
import html
import json
import re
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import children

if TYPE_CHECKING:
    from gopher_mcp_python import GopherAgent, GopherAgentTokenRecord
    from tests.support.idp import IdentityProvider
    from tests.support.protected import ProtectedServer

_SECONDS = 30.0  # the longest that a page may take


@dataclass
class Page:
    """What a browser got in the end. The address may hold a code, so only its path is kept."""

    status: int
    path: str
    text: str

    @property
    def words(self) -> str:
        """The text without its markup."""
        return " ".join(html.unescape(re.sub(r"<(style|script).*?</\1>|<[^>]*>", " ", self.text, flags=re.S)).split())


@dataclass
class Visit:
    """What the person did with one authorization URL. `parameters` are those of the URL, without state and PKCE."""

    parameters: dict[str, str]
    pages: list[Page] = field(default_factory=list)
    error: str | None = None

    @property
    def page(self) -> Page:
        """The page that the sign-in ended on."""
        assert self.pages, f"no page was reached: {self.error}"
        return self.pages[0]


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects and calls back before the one that leaves the provider."""

    def __init__(self, leaving: Callable[[str], None]) -> None:
        self._leaving = leaving

    def redirect_request(self, req: Any, fp: Any, code: int, msg: str, headers: Any, newurl: str) -> Any:
        if urllib.parse.urlsplit(newurl).netloc != urllib.parse.urlsplit(req.full_url).netloc:
            self._leaving(newurl)
        return super().redirect_request(req, fp, code, msg, headers, newurl)


class Person:
    """Goes through one sign-in.

    Args:
        allow: which button is pressed where there are two.
        repeats: how often the callback is visited once more afterwards, as "reload" does.
        strays: what the browser asks of the callback's host before the callback itself, such as "/favicon.ico".
        before_callback: called (on the browser's thread) just before the callback is visited.
        stop_at_callback: the callback is never visited (its address is given to `before_callback`).
    """

    def __init__(
        self, *, allow: bool = True, repeats: int = 0, strays: Iterable[str] = (),
        before_callback: Callable[[str], None] | None = None, stop_at_callback: bool = False,
    ) -> None:  # fmt: skip
        self.allow, self.repeats, self.strays = allow, repeats, tuple(strays)
        self.before_callback, self.stop_at_callback = before_callback, stop_at_callback

    def go(self, url: str, visit: Visit) -> None:
        callback: list[str] = []

        def leaving(to: str) -> None:
            callback.append(to)
            for stray in self.strays:
                visit.pages.append(_fetch(urllib.request.build_opener(_NO_PROXY), urllib.parse.urljoin(to, stray)))
            if self.before_callback is not None:
                self.before_callback(to)
            if self.stop_at_callback:
                raise _Stopped

        opener = urllib.request.build_opener(_NO_PROXY, _Redirects(leaving))
        try:
            page = _fetch(opener, url)
            form = re.search(r'<form method="post" action="([^"]*)">', page.text)
            key = re.search(r'name="request" value="([^"]*)"', page.text)
            if form and key:
                data = {"request": key[1], "decision": "allow" if self.allow else "deny"}
                page = _fetch(opener, urllib.parse.urljoin(url, form[1]), urllib.parse.urlencode(data).encode())
        except _Stopped:
            return
        visit.pages.insert(0, page)
        for _ in range(self.repeats if callback else 0):
            visit.pages.append(_fetch(opener, callback[0]))


class _Stopped(Exception):
    pass


_NO_PROXY = urllib.request.ProxyHandler({})


def _fetch(opener: urllib.request.OpenerDirector, url: str, data: bytes | None = None) -> Page:
    try:
        with opener.open(url, data, timeout=_SECONDS) as reply:
            return Page(reply.status, urllib.parse.urlsplit(reply.url).path, reply.read().decode(errors="replace"))
    except urllib.error.HTTPError as refused:
        with refused:
            path = urllib.parse.urlsplit(refused.url or url).path
            return Page(refused.code, path, refused.read().decode(errors="replace"))
    except OSError as error:
        return Page(0, urllib.parse.urlsplit(url).path, type(getattr(error, "reason", error)).__name__)


class Browser:
    """Stands where the product starts the person's browser; the person acts on a thread.

    `person` may be exchanged at any moment. With `wait` (an event of the test's) nothing is done until it is set.
    """

    def __init__(self, monkeypatch: Any = None, *, wait: threading.Event | None = None, **person: Any) -> None:
        self.person, self.wait = Person(**person), wait
        self.visits: list[Visit] = []
        self._threads: list[threading.Thread] = []
        self._opened = threading.Event()
        if monkeypatch is not None:
            self.install(monkeypatch)

    def install(self, monkeypatch: Any) -> None:
        from gopher_mcp_python import oauth_browser

        def launch(command: list[str], href: str) -> str:
            self.open(href)
            return command[0]

        monkeypatch.setattr(oauth_browser, "browser_command", lambda environ, platform="": ["test-browser"])
        monkeypatch.setattr(oauth_browser, "_launch", launch)

    def open(self, url: str) -> bool:
        """Shows a page; returns at once."""
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(url).query))
        visit = Visit({name: query[name] for name in query if name not in ("state", "code_challenge", "nonce")})
        noted = threading.Event()
        thread = threading.Thread(target=self._act, args=(url, visit, noted), name="test browser", daemon=True)
        thread.start()
        self._threads.append(thread)
        self.visits.append(visit)
        noted.set()  # nothing comes of a visit before it is on the list, and what is on the list can be waited for
        self._opened.set()
        return True

    def _act(self, url: str, visit: Visit, noted: threading.Event) -> None:
        noted.wait(_SECONDS)
        if self.wait is not None:
            self.wait.wait(_SECONDS)
        try:
            self.person.go(url, visit)
        except Exception as error:
            visit.error = type(error).__name__

    def wait_opened(self, seconds: float = 20) -> None:
        assert self._opened.wait(seconds), f"no page was opened within {seconds} s"

    def finished(self) -> list[Visit]:
        """The visits, once the person has ended them all."""
        for thread in self._threads:
            thread.join(_SECONDS)
            assert not thread.is_alive(), "the browser still waits for a page"
        return self.visits

    def close(self) -> None:
        if self.wait is not None:
            self.wait.set()
        self.finished()


class FakeTime:
    """Moves the clocks of this process on: every timer of every event loop sees it when it next looks.

    The wall clock goes right again after the test. The monotonic one stays ahead, as it may never go back: timers of
    loops that live on, the product's own among them, would come that much too late.
    """

    _monotonic_ahead, _steady = 0.0, time.monotonic

    def __init__(self, monkeypatch: Any) -> None:
        self._ahead, wall = 0.0, time.time
        monkeypatch.setattr(time, "time", lambda: wall() + self._ahead)
        time.monotonic = lambda: FakeTime._steady() + FakeTime._monotonic_ahead

    def pass_(self, seconds: float) -> None:
        """Returns when those who look at the clock every 50 ms have looked."""
        self._ahead += seconds
        FakeTime._monotonic_ahead += seconds
        threading.Event().wait(0.25)


class World:
    """A provider, a protected server, a person with a browser and an empty token store: one test's surroundings."""

    def __init__(self, idp: IdentityProvider, server: ProtectedServer, browser: Browser) -> None:
        from gopher_mcp_python import MemoryTokenStore

        self.idp, self.server, self.browser, self.store = idp, server, browser, MemoryTokenStore()

    def create(self, url: str | None = None, *, options: dict[str, Any] | None = None, **oauth: Any) -> GopherAgent:
        """An agent without a model on the server; `oauth` are its sign-in options."""
        from gopher_mcp_python import GopherAgent

        given = {"engine": "embedded", "oauth": {"token_store": self.store, **oauth}, **(options or {})}
        return GopherAgent.create_with_url("DirectProvider", "m", url or self.server.url, given)

    def whoami(self, url: str | None = None, *, server: ProtectedServer | None = None, **oauth: Any) -> dict[str, Any]:
        """Signs in, asks the server who that was, and leaves; what is done to its token then meets nobody any more."""
        server = server or self.server
        goodbyes = server.count("goodbye")
        with self.create(url or server.url, **oauth) as agent:
            told: dict[str, Any] = json.loads(agent.run("whoami"))
        server.wait_goodbye(goodbyes + 1)
        return told

    def keys(self) -> list[str]:
        """The keys of the tokens that are stored; a client's registration is none."""
        return [key for key in asyncio.run(self.store.keys()) if not key.endswith("/client")]

    def record(self) -> GopherAgentTokenRecord:
        """The one token that is stored."""
        (key,) = self.keys()
        found = asyncio.run(self.store.get(key))
        assert found is not None
        return found

    def change_record(self, **changed: Any) -> None:
        """Changes the stored token, as time or another process does."""
        (key,), record = self.keys(), self.record()
        for name, value in changed.items():
            setattr(record, name, value)
        asyncio.run(self.store.set(key, record))

    def sign_ins(self) -> int:
        """How often a person was sent to the provider's page."""
        return self.idp.count("authorize")

    def nothing_is_kept(self) -> None:
        """No token in the store."""
        assert self.keys() == []


def browser_file(folder: Path, *options: str) -> Path:
    """An executable for BROWSER: `--deny`, `--repeats N`, `--stray PATH`, `--wait FILE` (until it exists)."""
    file = folder / "test-browser"
    lines = [
        f"#!{sys.executable}",
        "import sys",
        f"sys.path.insert(0, {str(children.ROOT)!r})",
        "from tests.support import browsing",
        f"browsing.main([*{list(options)!r}, *sys.argv[1:]])",
    ]
    file.write_text("\n".join(lines) + "\n")
    file.chmod(0o755)
    return file


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(description="A browser whose person signs in.")
    parser.add_argument("url")
    parser.add_argument("--deny", action="store_true")
    parser.add_argument("--repeats", type=int, default=0)
    parser.add_argument("--stray", action="append", default=[])
    parser.add_argument("--wait", type=Path, help="act only once this file exists")
    options = parser.parse_args(argv)
    while options.wait is not None and not options.wait.exists():
        time.sleep(0.05)
    visit = Visit({})
    Person(allow=not options.deny, repeats=options.repeats, strays=options.stray).go(options.url, visit)
    return 0


def plant_client_secrets(monkeypatch: Any) -> None:
    """Marks the secrets that the client itself makes (state, PKCE verifier), so that the canary sees them leak."""
    import base64
    import hashlib
    import secrets

    from mcp.client.auth import oauth2

    from tests.support.canary import secret

    made = secrets.token_urlsafe

    def generate(cls: type[oauth2.PKCEParameters]) -> oauth2.PKCEParameters:
        verifier = secret("verifier") + secrets.token_hex(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")
        return cls(code_verifier=verifier, code_challenge=challenge)

    monkeypatch.setattr(secrets, "token_urlsafe", lambda size=None: secret("state") + made(size))
    monkeypatch.setattr(oauth2.PKCEParameters, "generate", classmethod(generate))
