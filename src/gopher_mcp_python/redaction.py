"""Secrets taken out of what goes to logs, reprs and error messages: in URLs, in headers, in free text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

__all__ = ["is_sensitive_name", "redact_headers", "redact_text", "redact_url"]

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
_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s\"'<>`]+")
# name=value, name: value, "name": "value", 'name': 'value'; values end at a delimiter or their closing quote.
_PAIR = re.compile(
    r"""(?P<name>[A-Za-z][A-Za-z0-9_-]{1,40})(?P<between>["']?\s*[=:]\s*)"""
    r"""(?P<value>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|(?:(?:Bearer|Basic)\s+)?[^\s,;&"'{}\[\]()<>]+)"""
)
_BEARER = re.compile(r"\b(Bearer|Basic)\s+[A-Za-z0-9._~+/=-]+", re.IGNORECASE)
_KEY_LIKE = re.compile(r"\b(?:sk|pk|rk|ghp|gho|xox[abps])[-_][A-Za-z0-9_-]{8,}|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9._-]+")


def is_sensitive_name(name: str) -> bool:
    """Whether a query parameter, header or field of this name may hold a secret."""
    plain = name.strip().lower().replace("-", "_")
    return plain in _SENSITIVE or plain.endswith(_SENSITIVE_ENDINGS)


def redact_url(url: str) -> str:
    """A URL for a log: which host, which path, which parameters; no value of any parameter, no user info, no fragment.

    Values of sensitive names become <redacted>, others <present>. Raises nothing: what can't be read is <invalid-url>.
    """
    try:
        parts = urlsplit(url)
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return "<invalid-url>"
    if parts.scheme and not parts.netloc:
        return f"{parts.scheme}:{_REDACTED}"
    _, at, host = parts.netloc.rpartition("@")
    hidden = [(name, _REDACTED if is_sensitive_name(name) else "<present>") for name, _ in query]
    shown = urlunsplit((parts.scheme, f"{_REDACTED}@{host}" if at else host, parts.path, urlencode(hidden), ""))
    return f"{shown}#{_REDACTED}" if parts.fragment else shown


def redact_headers(headers: Mapping[str, str] | Iterable[tuple[str, str]]) -> dict[str, str]:
    """Header names with their values taken out: any header of a caller's own may be a credential."""
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    return {name: _REDACTED for name, _ in pairs}


def redact_text(text: str) -> str:
    """Free text (an error message, a server's reply) without the secrets that can be recognised in it."""
    text = _URL.sub(lambda found: redact_url(found.group()), text)
    text = _PAIR.sub(_redacted_pair, text)
    text = _BEARER.sub(rf"\1 {_REDACTED}", text)
    return _KEY_LIKE.sub(_REDACTED, text)


def _redacted_pair(found: re.Match[str]) -> str:
    name, between, value = found["name"], found["between"], found["value"]
    if not is_sensitive_name(name) or value == _REDACTED:
        return found.group()
    if name.lower() in _AMBIGUOUS and between != "=" and value[0] not in "\"'":
        return found.group()
    return f"{name}{between}{_REDACTED}"
