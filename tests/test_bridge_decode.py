"""Decoding of the library's struct, against cffi: a decoder that shares nothing with ours but the header's layout."""

from __future__ import annotations

from typing import Any

import cffi
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from gopher_mcp_python.ffi import _bridge
from tests.support import testkit

FIELDS = ("request_id_json", "elicitation_id", "mode", "message", "url", "raw_json", "raw_params_json")
EXAMPLES = 10_000

ffi = cffi.FFI()
ffi.cdef("typedef struct { " + " ".join(f"const char *{name};" for name in FIELDS) + " } request_t;")

# Bytes as they may come: none, ASCII, text of any plane, anything at all (a C string ends at its first NUL).
_text = st.one_of(
    st.none(),
    st.sampled_from([b"", b"url", b"form", b"a"]),
    st.sampled_from([b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf0\x9f\x98", b"\xf4\x90\x80\x80"]),
    st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=60),
)  # fmt: skip
_requests = st.tuples(*[_text] * len(FIELDS))


def by_cffi(values: tuple[bytes | None, ...]) -> tuple[Any, list[Any]]:
    """The struct in memory and what keeps it there."""
    kept = [ffi.NULL if value is None else ffi.new("char[]", value) for value in values]
    return ffi.new("request_t *", kept), kept


def read_by_cffi(request: Any) -> dict[str, str | None]:
    """What the fields say, read through cffi and decoded by Python's own codec."""
    raw = {name: getattr(request, name) for name in FIELDS}
    return {
        name: None if value == ffi.NULL else ffi.string(value).decode("utf-8", "replace") for name, value in raw.items()
    }


def expected(request: Any) -> dict[str, str | None]:
    fields = read_by_cffi(request)
    return {**fields, "mode": fields["mode"] or ""}


def decoded(request: _bridge.ElicitationRequest) -> dict[str, str | None]:
    return {name: getattr(request, name) for name in FIELDS}


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(_requests)
@example((None,) * 7)
@example((b"\xff" * 5,) * 7)
def test_every_struct_is_decoded_as_cffi_decodes_it(values: tuple[bytes | None, ...]) -> None:
    request, _kept = by_cffi(values)
    ours = _bridge.decode_request(int(ffi.cast("uintptr_t", request)))
    assert decoded(ours) == expected(request)


@pytest.mark.parametrize("size", [1 << 20, 10 << 20])
@pytest.mark.parametrize("unit", [b"a", "é".encode(), "\U0001f600".encode(), b"\xff", b"\xf0\x9f"])
def test_megabytes_are_decoded_whole(size: int, unit: bytes) -> None:
    request, _kept = by_cffi((unit * (size // len(unit)),) * 3 + (None,) * 4)
    ours = _bridge.decode_request(int(ffi.cast("uintptr_t", request)))
    assert decoded(ours) == expected(request)
    assert ours.elicitation_id is not None and len(ours.elicitation_id) >= size // 4


def test_all_lengths_around_the_vector_width() -> None:
    """The fast path looks at many bytes at once: a wrong byte at any place must be found."""
    for length in range(70):
        for place in range(length):
            text = bytearray(b"x" * length)
            text[place] = 0x80
            request, _kept = by_cffi((bytes(text),) + (None,) * 6)
            ours = _bridge.decode_request(int(ffi.cast("uintptr_t", request)))
            assert ours.request_id_json == bytes(text).decode("utf-8", "replace"), (length, place)


def test_a_request_through_the_callback_is_decoded_alike() -> None:
    got: list[_bridge.ElicitationRequest] = []
    host = testkit.Host(lambda request: got.append(request) or 2)
    handle = testkit.handle(host, answer="inline", server="label")
    outcome = testkit.finish(handle.run("odd; big 3000000"))
    handle.close()
    assert outcome.text == "2 2"
    odd, big = got
    assert (odd.mode, odd.request_id_json, odd.url) == ("", None, None)
    assert odd.elicitation_id == "\ufffd\ufffd id" and odd.raw_json == "\ufffd\ufffd"
    assert odd.message == "caf\ufffd \ufffd" and odd.server == "label"
    assert big.message == "m" * 3_000_000 and big.mode == "url"


def test_address_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="address"):
        _bridge.decode_request(0)
