"""Places outside the store's database that remember how far the audit's chain had come."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any, Protocol
from urllib.error import HTTPError
from urllib.parse import urlsplit

from .errors import StoreError

__all__ = ["Anchor", "FileAnchor", "Head", "UrlAnchor"]

_LARGEST = 1 << 26  # bytes of an anchor that are read; of a file that has grown beyond it, the last ones
_TAIL = 1 << 16  # bytes of a file in which its newest head is looked for
_UNSENDABLE = re.compile(r"[^!-~]")  # in a URL


@dataclass(frozen=True)
class Head:
    """The end of a chain: the last record's number and hash."""

    seq: int
    hash: str


class Anchor(Protocol):
    """Where heads are kept. Any thread may use it."""

    def write(self, head: Head) -> None:
        """Remembers a head. Raises StoreError."""

    def read(self) -> list[Head]:
        """What is remembered, in any order; nothing in a new place. Raises StoreError."""

    def newest(self) -> Head | None:
        """Of what is remembered, the head with the highest number. Raises StoreError."""


class FileAnchor:
    """A file to which heads are appended, one line of JSON each. It protects as far as who can write to the database
    can't write to it: another user's, another machine's, or one that only grows (chattr +a)."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    def __repr__(self) -> str:
        return f"FileAnchor({str(self._path)!r})"

    def write(self, head: Head) -> None:
        """Appends a head. Raises StoreError when the file can't be written."""
        line = json.dumps({"seq": head.seq, "hash": head.hash}).encode("ascii") + b"\n"
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        try:
            descriptor = os.open(self._path, flags, 0o600)
            try:
                end = os.lseek(descriptor, 0, os.SEEK_END)
                if end and os.lseek(descriptor, end - 1, os.SEEK_SET) and os.read(descriptor, 1) != b"\n":
                    line = b"\n" + line  # a line that was cut off by a crash
                os.write(descriptor, line)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _failure(str(self._path), error) from None

    def read(self) -> list[Head]:
        """The heads in the file (of a very large one, in its last part). Raises StoreError when it can't be read."""
        return self._last(_LARGEST)

    def newest(self) -> Head | None:
        """The head with the highest number near the file's end; None in a new file. Raises StoreError."""
        return _highest(self._last(_TAIL))

    def _last(self, most: int) -> list[Head]:
        try:
            with open(self._path, "rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - most))
                data = file.read(most)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _failure(str(self._path), error) from None
        heads = [_head(line) for line in data.split(b"\n") if line.strip()]
        return [head for head in heads if head is not None]


class UrlAnchor:
    """A resource on another machine: a head is sent with PUT as {"seq": 7, "hash": "..."}, and GET gives the last one,
    or a list of several. Its server should keep the one with the highest number."""

    def __init__(self, url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 10.0) -> None:
        """`headers` go with every request (an Authorization, say), which may take `timeout_s` seconds.

        Raises ValueError for a URL that is not https, unless it leads to this machine, for one with a password, and for
        headers that can't be sent.
        """
        try:
            parts = urlsplit(url)
            readable = parts.port != 0 and not _UNSENDABLE.search(url)
        except ValueError:
            readable = False
        if not readable:
            raise ValueError("the anchor's URL can't be read")
        if "@" in parts.netloc:
            raise ValueError("the anchor's URL holds a login: pass it as a header (headers={'Authorization': ...})")
        if any("\r" in text or "\n" in text for pair in (headers or {}).items() for text in pair):
            raise ValueError("a header for the anchor's URL holds a line break")
        here = parts.hostname in ("localhost", "127.0.0.1", "::1")
        if not parts.hostname or parts.scheme not in ("https", "http") or (parts.scheme == "http" and not here):
            raise ValueError("the anchor's URL must be https (http is for this machine only)")
        self._url, self._host = url, parts.hostname
        self._headers, self._timeout_s = dict(headers or {}), timeout_s

    def __repr__(self) -> str:
        return f"UrlAnchor(<{self._host}>)"

    def write(self, head: Head) -> None:
        """Sends a head. Raises StoreError when the server does not take it."""
        self._ask("PUT", json.dumps({"seq": head.seq, "hash": head.hash}).encode("ascii"))

    def read(self) -> list[Head]:
        """The heads that the server tells. Raises StoreError when it can't be reached or tells none."""
        data = self._ask("GET", None)
        try:
            told = json.loads(data) if data else []
        except (ValueError, RecursionError):
            raise StoreError(f"The audit's anchor at {self._host} did not answer with JSON") from None
        heads = [_of(one) for one in (told if isinstance(told, list) else [told])]
        return [head for head in heads if head is not None]

    def newest(self) -> Head | None:
        """Of these the one with the highest number; None when there is none. Raises StoreError."""
        return _highest(self.read())

    def _ask(self, method: str, body: bytes | None) -> bytes:
        headers = {"Content-Type": "application/json", **self._headers}
        request = urllib.request.Request(self._url, data=body, headers=headers, method=method)
        try:
            with _OPENER.open(request, timeout=self._timeout_s) as answer:
                data: bytes = answer.read(_LARGEST)
                return data
        except (OSError, HTTPException, ValueError) as error:  # their texts may quote the URL, or a header
            code = None
            if isinstance(error, HTTPError):
                code = error.code
                error.close()
            if code == 404 and method == "GET":
                return b""
            told = code or type(error).__name__
            raise StoreError(f"The audit's anchor at {self._host} can't be used ({told}): see to it") from None


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect would take the headers along."""

    def redirect_request(self, *_: Any) -> None:
        return None


_OPENER = urllib.request.build_opener(_NoRedirects)


def _head(line: bytes) -> Head | None:
    try:
        return _of(json.loads(line))
    except ValueError:
        return None  # cut off by a crash


def _of(told: Any) -> Head | None:
    seq, digest = (told.get("seq"), told.get("hash")) if isinstance(told, dict) else (None, None)
    return Head(seq, digest) if type(seq) is int and 0 < seq < 2**63 and isinstance(digest, str) else None


def _highest(heads: Iterable[Head]) -> Head | None:
    return max(heads, key=lambda head: head.seq, default=None)


def _failure(place: str, error: OSError) -> StoreError:
    return StoreError(f"The audit's anchor {place} can't be used ({error.strerror or type(error).__name__}): see to it")
