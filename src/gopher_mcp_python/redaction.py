"""Secrets taken out of what goes to logs, reprs and error messages: in URLs, in headers, in free text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING
from urllib.parse import unquote_plus, urlencode, urlsplit, urlunsplit

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["is_sensitive_name", "log_failure", "redact_headers", "redact_text", "redact_url", "redacted_error"]

_REDACTED = "<redacted>"
_SENSITIVE = frozenset(
    "access_token api_key apikey assertion auth auth_code authorization authorization_code client_assertion "
    "client_secret code code_challenge code_verifier cookie credential device_code id_token key passphrase passwd "
    "password pin private_key proxy_authorization refresh_token secret session session_id set_cookie sig signature "
    "state ticket token user_code x_amz_credential x_amz_security_token x_amz_signature x_api_key".split()
)
_SENSITIVE_ENDINGS = ("_token", "_secret", "_password", "_key", "_credential")
# Words that also mean harmless things ("error code: 500"): in free text they count only as parameters or quoted fields.
_AMBIGUOUS = frozenset("auth code key pin session sig state ticket".split())
# Patterns begin where a run of their characters begins: texts of servers are long, and a search that starts anew at
# each character of a run takes the square of its length.
_URL = re.compile(r"(?<![A-Za-z0-9+.-])[A-Za-z0-9+.-]{1,40}://[^\s\"'<>`]+")
# name=value, name: value, "name": "value", 'name': 'value', \"name\": \"value\"; values end at a delimiter, at their
# closing quote, or with the text when that was cut off.
_NAME = re.compile(r"""(?<![A-Za-z0-9_-])(?P<name>[A-Za-z0-9_-]{2,200})(?P<between>\\*["']?\s*[=:]\s*)""")
_VALUE = re.compile(
    r"""(?P<quoted>"(?:[^"\\]|\\[\s\S])*(?:"|\\?\Z)|'(?:[^'\\]|\\[\s\S])*(?:'|\\?\Z)|\\+"[^"]*(?:"|\Z))"""
    r"""|(?:(?:Bearer|Basic)\s+)?[^\s,;&"'{}\[\]()<>]+"""
)
_FOLLOWS = re.compile(r"(?<=[=:])\s*|\s*[=:]\s*")
_LOOKED_AT = 200  # characters of a value of an ambiguous name; a longer one is taken for a secret
_HEADER_LINE = re.compile(r"\b((?:proxy-)?authorization|(?:set-)?cookie)(\s*:\s*)(?![\"'\s])[^\r\n]+", re.IGNORECASE)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE)
_KEY_LIKE = re.compile(
    r"(?<![A-Za-z0-9_-])(?:(?:sk|pk|rk|ghp|gho|ghs|ghu|github_pat|glpat|xox[abps])[-_][A-Za-z0-9_-]{8,}"
    r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]+|AIza[A-Za-z0-9_-]{20,}|ya29\.[A-Za-z0-9_-]{8,}|AKIA[A-Z0-9]{12,})"
)
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_.\[\]-]{1,40}\Z")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_OPAQUE = re.compile(r"[A-Za-z][0-9]|[0-9][A-Za-z]")  # a letter beside a digit: seldom in words, often in random text
_LONGEST_URL = 2000  # characters of a redacted URL; more of it tells nobody anything


def is_sensitive_name(name: str) -> bool:
    """Whether a query parameter, header or field of this name may hold a secret."""
    plain = _CAMEL.sub("_", name.strip()).lower().replace("-", "_")
    return plain in _SENSITIVE or plain.endswith(_SENSITIVE_ENDINGS)


def redact_url(url: str) -> str:
    """A URL for a log: which host, which path, which parameters; no value of any parameter, no user info, no fragment,
    nothing of the path that looks like a value.

    Values of sensitive names become <redacted>, others <present>. Raises nothing: what can't be read is <invalid-url>.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return "<invalid-url>"
    if parts.scheme and not parts.netloc:
        return f"{parts.scheme}:{_REDACTED}"
    _, at, host = parts.netloc.rpartition("@")
    path = "/".join(map(_shown_segment, parts.path.split("/")))
    query = urlencode([_shown_parameter(piece) for piece in parts.query.split("&") if piece], errors="replace")
    shown = urlunsplit((parts.scheme, f"{_REDACTED}@{host}" if at else host, path, query, ""))
    shown = f"{shown}#{_REDACTED}" if parts.fragment else shown
    return shown if len(shown) <= _LONGEST_URL else shown[:_LONGEST_URL] + "..."


def _shown_parameter(piece: str) -> tuple[str, str]:
    """One parameter of a query: its name when it is one (what has no value may be a value itself), and what it had."""
    name, separator, _ = piece.partition("=")
    name = unquote_plus(name)
    if is_sensitive_name(name):
        return name, _REDACTED
    return (name, "<present>") if separator and _PLAIN_NAME.match(name) else (_REDACTED, "<present>")


def _shown_segment(segment: str) -> str:
    """One step of a path, without parameters of its own (;name=value) and without tokens."""
    ends = [place for place in map(segment.find, ";=") if place >= 0]
    if ends:
        return segment[: min(ends) + 1] + _REDACTED
    return _REDACTED if len(segment) >= 20 and len(_OPAQUE.findall(segment)) > 1 else segment


def redact_headers(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Header names with their values taken out: any header of a caller's own may be a credential."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return {name: _REDACTED for name, _ in pairs}


def redact_text(text: str) -> str:
    """Free text (an error message, a server's reply) without the secrets that can be recognised in it."""
    text = _URL.sub(lambda found: redact_url(found.group()), text)
    text = _HEADER_LINE.sub(rf"\1\2{_REDACTED}", text)
    text = _without_pairs(text)
    text = _BEARER.sub(rf"\1 {_REDACTED}", text)
    return _KEY_LIKE.sub(_REDACTED, text)


def redacted_error(error: BaseException) -> str:
    """An exception's text for a log, short and redacted. Raises nothing: an exception of somebody else's may fail to
    have a text."""
    try:
        return redact_text(str(error)[:5000])[:300]
    except Exception:
        return "(it has no text)"


def log_failure(log: Logger, what: str, error: BaseException) -> None:
    """Warns that something of the program's own failed: what it was, the exception's kind, its text redacted. Raises
    nothing: a filter of the program's may fail in turn."""
    with suppress(Exception):
        log.warning("%s: %s: %s", what, type(error).__name__, redacted_error(error))


def _without_pairs(text: str) -> str:
    """Also what stands in another's value is found: `error: access_token=...`, `{"message": "bad token=..."}`."""
    shown: list[str] = []
    done = at = 0
    while found := _NAME.search(text, at):
        at = found.end()
        value = _VALUE.match(text, at) if _may_be_secret(text, found) else None
        while value:  # what has a value of its own was a name: `bad token: client_secret: ...`
            shown += text[done : value.start()], _REDACTED
            done = at = value.end()
            follows = _FOLLOWS.match(text, at)
            value = _VALUE.match(text, follows.end()) if follows else None
    return "".join(shown) + text[done:]


def _may_be_secret(text: str, found: re.Match[str]) -> bool:
    """Whether the value that follows this name must go."""
    name, between = found["name"], found["between"]
    if not is_sensitive_name(name) or name.lower() not in _AMBIGUOUS or between == "=":
        return is_sensitive_name(name)
    value = _VALUE.match(text, found.end(), found.end() + _LOOKED_AT)
    return value is not None and (value["quoted"] is not None or _looks_random(value.group()))


def _looks_random(value: str) -> bool:
    return "://" not in value and (len(value) >= _LOOKED_AT or (len(value) >= 16 and any(map(str.isdigit, value))))
