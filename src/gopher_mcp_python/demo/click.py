"""Clicks a button of the demo's provider page through HTTP, for hosts where nobody sits at a terminal."""

from __future__ import annotations

from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from urllib.error import HTTPError
from urllib.parse import urlencode, urljoin, urlsplit
from urllib.request import HTTPCookieProcessor, ProxyHandler, build_opener

TIMEOUT_SECONDS = 20.0


def click(url: str, decision: str = "allow") -> str:
    """Open the demo's page and press "allow" or "deny"; returns the heading of the page that follows.

    Only the demo's own pages on this machine are touched: a real provider's page is a person's to read.

    Raises:
        ValueError: The URL is not one of the demo's pages on the loopback interface.
        OSError: The page could not be reached, or did not accept the click.
    """
    parts = urlsplit(url)
    if parts.scheme != "http" or parts.hostname != "127.0.0.1" or parts.path != "/provider/authorize":
        raise ValueError("only the demo's own page on 127.0.0.1 is clicked by this program")
    # No proxy: the page is on this machine. A cookie jar that keeps loopback cookies: the form needs its cookie.
    cookies = CookieJar(DefaultCookiePolicy(strict_domain=False))
    opener = build_opener(ProxyHandler({}), HTTPCookieProcessor(cookies))
    try:
        with opener.open(url, timeout=TIMEOUT_SECONDS) as shown:
            form = _Form(shown.read().decode("utf-8"))
        fields = {**form.fields, "decision": decision}
        target = urljoin(url, form.action)
        with opener.open(target, urlencode(fields).encode(), timeout=TIMEOUT_SECONDS) as done:
            return _Form(done.read().decode("utf-8")).heading
    except HTTPError as error:
        with error:
            raise OSError(f"the page answered {error.code}: {_Form(error.read().decode('utf-8')).heading}") from None


class _Form(HTMLParser):
    """The hidden fields, the target and the heading of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}
        self.action = ""
        self.heading = ""
        self._in_heading = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self.action = found.get("action", "")
        elif tag == "input" and found.get("type") == "hidden":
            self.fields[found["name"]] = found["value"]
        elif tag == "h1":
            self._in_heading = True

    def handle_endtag(self, tag: str) -> None:
        if tag == "h1":
            self._in_heading = False

    def handle_data(self, data: str) -> None:
        if self._in_heading:
            self.heading += data
