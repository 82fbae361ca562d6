"""The library's struct in memory, decoded by the bridge, against a decoder that shares nothing with it.

Input: a byte whose bits say which of the seven fields are NULL, then the fields, each ended by a NUL.
"""

from __future__ import annotations

import ctypes
import pickle
from random import Random
from typing import Any

from gopher_mcp_python.ffi import _bridge

WORDS: tuple[Any, ...] = ()
LARGEST = 4_000
PIECES = (
    b"url", b"form", b"a" * 7, b"x" * 16, b"y" * 31, "é".encode(), "\u6f22".encode(), "\U0001f600".encode(), b"\x80",
    b"\xff", b"\xc0\x80", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80", b"\xf8\x88",
    b"\0", b"\\u0000", b"https://a.example/",
)  # fmt: skip
FIELDS = ("request_id_json", "elicitation_id", "mode", "message", "url", "raw_json", "raw_params_json")

Request = type("Request", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_char_p) for name in FIELDS]})


def fields_of(data: bytes) -> dict[str, bytes | None]:
    missing, texts = (data[0], data[1:].split(b"\0")) if data else (0, [])
    texts += [b""] * (len(FIELDS) - len(texts))
    return {name: None if missing >> place & 1 else texts[place] for place, name in enumerate(FIELDS)}


def mutate(data: bytes, most: int, seed: int) -> bytes:
    """Pieces at random places: nothing in compiled code leads the search, so each input is changed a lot."""
    chance = Random(seed)
    changed = bytearray(data or b"\0")
    changed[0] = chance.choice((0, 0, changed[0], chance.getrandbits(7)))
    for _ in range(chance.randrange(1, 40)):
        at = chance.randrange(1, len(changed) + 1)
        if chance.random() < 0.2:
            del changed[at : at + chance.randrange(1, 60)]
        else:
            changed[at:at] = chance.choice(PIECES) * chance.choice((1, 1, 1, 2, 17))
    return bytes(changed[:most])


def one_input(data: bytes) -> None:
    fields = fields_of(data)
    struct = Request(**fields)
    request = _bridge.decode_request(ctypes.addressof(struct))
    expected = {name: None if raw is None else raw.decode("utf-8", "replace") for name, raw in fields.items()}
    expected["mode"] = expected["mode"] or ""
    got = {name: getattr(request, name) for name in FIELDS}
    assert got == expected, got
    assert request.server is None and request.requested_schema is None
    assert pickle.loads(pickle.dumps(request)) == request and hash(request) == hash(pickle.loads(pickle.dumps(request)))
    shown = repr(request)
    url = expected["url"]
    assert url is None or len(url) < 30 or url not in shown or url in str(expected["mode"]), "the URL is in the repr"
