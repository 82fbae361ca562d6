"""Secrets that came with the command line: taken out of everything that is said about a failure, however it is written.

`redaction` recognises secrets by their surroundings; these are known by their value.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote

from ..redaction import redact_text

__all__ = ["keep_out", "keep_out_of_urls", "redacted", "without_secrets"]

_SHORTEST = 4
"""Characters of a value that is worth looking for: shorter ones stand everywhere."""
_PASSWORD = re.compile(r"://[^/?#@\s]*?:([^/?#@\s]+)@")
_known: set[str] = set()


def keep_out(value: str) -> str:
    """Remember a secret that the command line led to, for as long as the process lives; gives it back."""
    quoted = quote(value, safe="", errors="replace")
    for form in (value, value.strip(), value.rpartition(" ")[2], quoted, unquote(value)):
        if len(form) >= _SHORTEST:
            _known.add(form)
    return value


def keep_out_of_urls(text: str) -> None:
    """Remember the passwords in URLs of an argument (`postgresql://user:password@host`)."""
    for password in _PASSWORD.findall(text):
        keep_out(password)


def without_secrets(text: str) -> str:
    """`text` without the values that were remembered."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, "<redacted>")
    return text


def redacted(text: str) -> str:
    """`text` without those, and without what looks like a secret: for tracebacks and logs."""
    return redact_text(without_secrets(text))
