"""What a browser brings back from the authorization server (RFC 6749 4.1.2, RFC 9207), read strictly.

It comes as a request to the loopback listener, or as a text that a person copied out of the browser's address line.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl, urlsplit

__all__ = ["NOT_TAKEN", "STRAYS", "Redirect", "Stray", "is_address_of", "pasted_query", "read_redirect"]

Stray = Literal["nothing", "part", "other", "unclear"]
"""Why a query is not the one that is waited for: nothing of an answer in it, an answer without the state, the state of
another sign-in, a parameter that is there twice (RFC 6749 3.1: must not be)."""

#: For the page that a browser gets.
STRAYS: dict[Stray, str] = {
    "nothing": "This address is for a sign-in, and there is nothing of a sign-in in it.",
    "part": "This address belongs to no sign-in that waits here: its state is missing.",
    "other": "This address belongs to no sign-in that waits here: it may be from an earlier attempt.",
    "unclear": "The address can't be read with certainty: it says something twice.",
}
#: For a person who pasted it; {uri}: the redirect URI.
NOT_TAKEN: dict[Stray, str] = {
    "nothing": "That is not the address of the page on which the browser ended; it begins with {uri}",
    "part": "That is only a part of the address, its state is missing. Copy the whole address line of the browser.",
    "other": "That address belongs to another sign-in, perhaps an earlier attempt. Sign in at the URL above.",
    "unclear": "That address can't be read with certainty: it says something twice. Copy it once more.",
}
_MOST_FIELDS = 100
_PASTE_MARKS = re.compile(r"\x1b?\[20[01]~")  # what a terminal puts around a paste when a program has asked for it
_WHITE = re.compile(r"[\s\x00-\x1f\x7f\u200b\ufeff]+")
_AROUND = {"<": ">", "(": ")", "[": "]", "{": "}", '"': '"', "'": "'", "`": "`", "\u201c": "\u201d", "\u00ab": "\u00bb"}
_WORDS_BEFORE = re.compile(r"\A[^?#=&]*?(?=https?://)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, repr=False)
class Redirect:
    """An answer of the authorization server that belongs to this sign-in: its state was right.

    `code`, or `error` (with `error_description`), and `iss` as they came; None when they did not. The texts are the
    server's: nothing in them is checked.
    """

    code: str | None = None
    error: str | None = None
    error_description: str | None = None
    iss: str | None = None

    def __repr__(self) -> str:
        return "Redirect(<redacted>)"


def read_redirect(query: str, state: str) -> Redirect | Stray:
    """The answer in a query, or why it is none for the sign-in with this state."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST_FIELDS, errors="replace")
    except ValueError:
        return "unclear"
    fields = dict(pairs)
    ours = [name for name, _ in pairs if name in ("code", "state", "error", "iss")]
    if not ours:
        return "nothing"
    if "state" not in fields:
        return "part"
    if len(ours) != len(set(ours)):
        return "unclear"
    if not _same(fields["state"], state):
        return "other"
    names = ("code", "error", "error_description", "iss")
    code, error, description, iss = (fields.get(name) or None for name in names)
    return Redirect(code, error, description, iss)


def pasted_query(text: str) -> str:
    """The query in a text that a person pasted: an address, whole or without its beginning, over several lines, in
    quotes or brackets, or just the query."""
    text = _WHITE.sub("", _PASTE_MARKS.sub("", text))
    while len(text) > 1 and _AROUND.get(text[0]) == text[-1]:
        text = text[1:-1]
    text = _WORDS_BEFORE.sub("", text).replace("&amp;", "&")
    address, mark, fragment = text.partition("#")
    before, question, query = address.partition("?")
    if question:
        return query
    if "=" in before:
        return before
    return fragment if mark else ""  # response_mode=fragment, which only the address line knows


def is_address_of(text: str, url: str) -> bool:
    """Whether a pasted text is this page's own address, as far as host and path go."""
    cleaned = _WORDS_BEFORE.sub("", _WHITE.sub("", text)).strip("<>()[]\"'")
    try:
        one, other = urlsplit(cleaned), urlsplit(url)
    except ValueError:
        return False
    return bool(one.netloc) and (one.netloc.lower(), one.path) == (other.netloc.lower(), other.path)


def _same(one: str, other: str) -> bool:
    """In constant time; an empty state is never right."""
    return bool(other) and hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
