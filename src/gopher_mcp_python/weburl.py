"""URLs that a server wants a person to open: read strictly, written anew, judged before anybody sees a link.

A URL that goes to a browser is the one that this module wrote, in ASCII, with what could mislead a shell, a terminal
or a lenient URL reader escaped or refused. Browsers read URLs by the WHATWG rules and Python by RFC 3986; where the
two disagree about which host is meant (backslashes, tabs, percent signs in the host), the URL is refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from .errors import UnsafeUrlError
from .hostnames import ascii_host, is_foreign_address, is_ip_address, is_local, look_alike_warnings, site_of

__all__ = ["WebUrl", "is_unsafe", "parse_web_url"]

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BRACKETS = re.compile(r"\[[0-9A-Fa-f:.]+\](:[0-9]*)?\Z")
_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LONE_SURROGATES = re.compile("[\ud800-\udfff]")
# RFC 3986 reserved and unreserved, and "%": what is already escaped stays as it is.
_KEPT = "!$&'()*+,;=:@/?-._~%[]"


@dataclass(frozen=True, slots=True, repr=False)
class WebUrl:
    """An http or https URL that may be shown and opened.

    `href` is what to show and open; `host` is what the browser will contact; `site` the part of it that somebody
    registered (see `hostnames.site_of`); `warnings` are sentences for the person, empty when nothing looks odd;
    `is_misleading` says that one of them is about an address that looks like another: such a page is not opened
    without asking.
    """

    href: str
    scheme: str
    host: str
    site: str
    warnings: tuple[str, ...]
    is_misleading: bool

    def __repr__(self) -> str:
        return f"WebUrl(<redacted>, host={self.host!r})"


def parse_web_url(url: str) -> WebUrl:
    """Reads a server's URL. Raises UnsafeUrlError with the reason, never the URL, when it must not be opened."""
    _refuse_odd_text(url)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise UnsafeUrlError("the URL is malformed") from None
    if "\\" in url.partition("?")[0].partition("#")[0]:
        raise UnsafeUrlError("the URL has a backslash in its address, which browsers read in their own way")
    scheme = parts.scheme.lower()
    userinfo, _, where = parts.netloc.rpartition("@")
    if "[" in parts.netloc and not _BRACKETS.match(where):
        raise UnsafeUrlError("the URL has no host that can be read with certainty")
    shown_host, host = _host(parts.hostname or "")
    href = _written(scheme, host, port, userinfo, parts.path, parts.query, parts.fragment)
    misleading = _misleading(host, shown_host, bool(userinfo))
    return WebUrl(href, scheme, host, site_of(host), (*misleading, *_plain_warnings(scheme, host)), bool(misleading))


def is_unsafe(url: str | None) -> bool:
    """Whether it is one that must not be opened."""
    try:
        parse_web_url(url or "")
    except UnsafeUrlError:
        return True
    return False


def _refuse_odd_text(url: str) -> None:
    if not isinstance(url, str) or not url:
        raise UnsafeUrlError("there is no URL")
    if url != url.strip() or _CONTROLS.search(url):
        raise UnsafeUrlError("the URL begins or ends with a space, or holds control characters")
    found = _SCHEME.match(url)
    scheme = found.group(1).lower() if found else ""
    if scheme not in ("http", "https"):
        raise UnsafeUrlError(f"only http and https pages are opened, not {scheme[:20] + ':' if scheme else 'this'}")
    if not url[len(scheme) :].startswith("://"):
        raise UnsafeUrlError("the URL has no host")


def _host(name: str) -> tuple[str, str]:
    """The host as the server wrote it, and in ASCII."""
    if not name or "%" in name:
        raise UnsafeUrlError("the URL has no host that can be read with certainty")
    if is_ip_address(name):
        return name, f"[{name}]" if ":" in name else name
    try:
        return name, ascii_host(name)
    except ValueError:
        raise UnsafeUrlError("the host name of the URL is not valid") from None


def _written(scheme: str, host: str, port: int | None, userinfo: str, path: str, query: str, fragment: str) -> str:
    user = quote(_LONE_SURROGATES.sub("\ufffd", userinfo), safe="!$&'()*+,;=:-._~%") + "@" if userinfo else ""
    where = f"{scheme}://{user}{host}" + ("" if port is None else f":{port}")
    text = where + _escaped(path)
    text += "?" + _escaped(query) if query else ""
    return text + ("#" + _escaped(fragment) if fragment else "")


def _escaped(part: str) -> str:
    return quote(_LONE_SURROGATES.sub("\ufffd", part), safe=_KEPT)


def _misleading(host: str, shown_host: str, has_userinfo: bool) -> list[str]:
    found = look_alike_warnings(host, shown_host)
    if has_userinfo:
        found.insert(0, f"There is text before an @ sign in the address, often used to mislead. The page is on {host}.")
    return found


def _plain_warnings(scheme: str, host: str) -> list[str]:
    found = []
    if is_foreign_address(host):
        found.append("The address is a number, not a name: nobody's name vouches for it.")
    if scheme == "http" and not is_local(host):
        found.append("The address is http, not https: what you type there can be read on the way.")
    return found
