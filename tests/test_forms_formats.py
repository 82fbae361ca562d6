"""Formats of forms: what each takes and refuses, and that Ajv takes whatever is taken here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gopher_mcp_python.forms import read_form
from gopher_mcp_python.forms.formats import FORMATS, check_format
from tests.support.judge import Judge

GOOD = {
    "email": [
        "name@example.com", "a@b.c", "first.last+tag@sub.example.co.uk", "!#$%&'*+/=?^_`{|}~-@example.com",
        "a@1-2.example", "x" * 64 + "@example.com", "a@" + "b" * 63 + ".com", "A.B@EXAMPLE.COM",
    ],
    "uri": [
        "https://example.com", "HTTP://EXAMPLE.com:8080/a/b;c=1?q=%20&r=/?#f/?", "http://user:pw@host/", "ftp://h/%7Ea",
        "http://[2001:db8::1]:443/", "http://[::ffff:192.0.2.1]/", "http://[v1.a:b]/", "http://127.0.0.1", "ws://h:/",
        "mailto:name@example.com", "urn:isbn:0451450523", "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6", "tel:+49301",
        "file:///etc/hosts", "data:text/plain,a", "app.example:callback", "custom:/path", "custom://", "http://h//a//",
    ],
    "date": ["2026-01-31", "2024-02-29", "2000-02-29", "0000-02-29", "9999-12-31", "0001-01-01"],
    "date-time": [
        "2026-01-31T09:30:00Z", "2026-01-31t09:30:00z", "2026-01-31T09:30:00.123456789012+01:00",
        "2026-01-31T00:00:00-00:00", "2026-01-31T23:59:59+23:59", "1998-12-31T23:59:60Z", "1998-12-31T15:59:60.9-08:00",
        "1999-01-01T00:59:60+01:00", "2015-07-01T05:29:60+05:30", "2015-06-30T20:29:60-03:30",
    ],
}  # fmt: skip
BAD = {
    "email": [
        "", "a", "@", "a@", "@b.c", "a@b", "a@@b.c", "a@b@c.d", "a b@c.d", " a@b.c", "a@b.c ", "a@b.c\n", "a\n@b.c",
        "a..b@c.d", ".a@b.c", "a.@b.c", "a@.b.c", "a@b..c", "a@b.c.", "a@-b.c", "a@b-.c", "a@b.-c", "a@b_c.d",
        "Name <a@b.c>", "<a@b.c>", '"a b"@c.d', "a@[127.0.0.1]", "a\x00@b.c", "ä@b.c", "a@bücher.de", "a@b.c\u2028",
        "a(comment)@b.c", "a,b@c.d", "a;b@c.d", "x" * 65 + "@b.c", "a@" + "b" * 64 + ".c", "a@" + "b.c" * 100,
        "a@" + ".".join(["b" * 60] * 4) + ".a" * 5, "mailto:a@b.c", "a@b.\u0663",
    ],
    "uri": [
        "", "a:b", "C:\\dir\\file", "c:/dir", "example.com", "www.example.com/x", "/path", "//host/path", "#f", "?q",
        ":", "http:", "http:/", "http://", "http:///path", "http://:80/", "http://user@/", "https:example.com", "ws:x",
        "http://a b", "http://a/b c", " http://a", "http://a ", "http://a\n", "http://a\x00", "http://a/\x7f", "http://ä/",
        "http://a/é", "http://a/%", "http://a/%4", "http://a/%zz", "http://a/<b>", 'http://a/"', "http://a/{b}",
        "http://a/|", "http://a/^", "http://a/`", "http://a\\b", "http://a/[b]", "http://a/?[b]", "http://a/#b#c",
        "http://[::1", "http://::1/", "http://[::g]/", "http://[1.2.3.4]/", "http://[fe80::1%25eth0]/", "http://[]/",
        "http://a:x/", "http://a:65536/", "http://a:1:2/", "http://a@b@c/", "localhost:8080", "localhost:8080/x",
        "example.com:443/x", "urn:isbn", "urn:x:y", "urn:isbn:", "mailto:", "1http://a", "ht_tp://a", "http//a",
        "\ud83d:x",
    ],
    "date": [
        "", "20260131", "2026-1-31", "2026-01-1", "2026-02-29", "1900-02-29", "2026-04-31", "2026-13-01", "2026-00-10",
        "2026-01-00", "2026-01-32", "26-01-31", "12026-01-31", "+2026-01-31", "-2026-01-31", "2026/01/31", "31.01.2026",
        "2026-01-31 ", " 2026-01-31", "2026-01-31\n", "2026-01-31T00:00:00Z", "2026-W05-6", "2026-031",
        "２０２６-01-31", "٢٠٢٦-01-31", "2026‑01‑31", "2026-01", "today",
    ],
    "date-time": [
        "", "2026-01-31", "20260131T093000Z", "2026-01-31T09:30:00", "2026-01-31T09:30:00.5", "2026-01-31 09:30:00Z",
        "2026-01-31T09:30Z", "2026-01-31T09Z", "2026-01-31T24:00:00Z", "2026-01-31T09:60:00Z", "2026-01-31T09:30:61Z",
        "2026-01-31T09:30:00+1:00", "2026-01-31T09:30:00+0100", "2026-01-31T09:30:00+01", "2026-01-31T09:30:00+24:00",
        "2026-01-31T09:30:00+01:60", "2026-01-31T09:30:00.Z", "2026-01-31T09:30:00,5Z", "2026-01-31T09:30:00Z\n",
        "2026-01-31T09:30:00Z ", "2026-02-30T09:30:00Z", "2026-01-31T09:30:00ZZ", "2026-01-31T09:30:00 Z",
        "2026-01-31T0９:30:00Z", "2026-01-31X09:30:00Z", "2026-01-31T09:30:00-", "2026-01-31T09:30:00+01:00:00",
        "1998-12-31T23:58:60Z", "1998-12-31T22:59:60Z", "1998-12-30T23:59:60Z", "2026-01-31T23:59:60Z",
        "1998-12-31T23:59:60+01:00", "1998-12-31T00:59:60+01:00", "1998-12-31T23:59:61Z", "T09:30:00Z", "now",
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def ajv() -> Iterator[Judge]:
    judge = Judge()
    yield judge
    judge.close()


def _ajv_takes(ajv: Judge, name: str, values: list[str]) -> list[bool]:
    return list(ajv.ask([({"type": "string", "format": name}, values)])[0].valid)


@pytest.mark.parametrize("name", GOOD)
def test_takes_what_the_standard_allows_as_ajv_does(ajv: Judge, name: str) -> None:
    assert {value: check_format(name, value) for value in GOOD[name]} == dict.fromkeys(GOOD[name])
    assert _ajv_takes(ajv, name, GOOD[name]) == [True] * len(GOOD[name])


@pytest.mark.parametrize("name", BAD)
def test_refuses_with_one_of_few_sentences_that_have_an_example_and_never_the_value(name: str) -> None:
    example = {"email": "name@example.com", "uri": "https://example.com/page", "date": "2026-01-31",
               "date-time": "2026-01-31T09:30:00Z"}[name]  # fmt: skip
    reasons = {value: check_format(name, value) for value in BAD[name]}
    assert [value for value, reason in reasons.items() if reason is None] == []
    for reason in map(str, reasons.values()):
        assert reason.startswith("must be ") and f"such as {example}" in reason
    assert len(set(reasons.values())) < len(reasons) / 3


@pytest.mark.parametrize(("name", "value", "hint"), [
    ("uri", "localhost:8080/x", "with https:// or another scheme"),
    ("uri", "http://a/b c", "a blank is written %20"),
    ("uri", "http:///path", "with a host behind the //"),
    ("uri", "https:example.com", "with // and a host"),
    ("uri", "http://a:70000/", "a port of at most 65535"),
    ("uri", "urn:isbn", "like urn:isbn:0451450523"),
    ("email", "a@" + ".".join(["b" * 60] * 5), "at most 254 characters"),
    ("date", "2026-02-30", "a day that the calendar has"),
    ("date-time", "2026-01-31T09:30:00", "the Z or the offset at its end is missing"),
    ("date-time", "2026-01-31T25:30:00Z", "a time that the clock has"),
    ("date-time", "2026-01-31T23:59:60Z", "second 60 is only at 23:59:60 UTC"),
])  # fmt: skip
def test_the_reason_says_what_is_amiss(name: str, value: str, hint: str) -> None:
    assert hint in str(check_format(name, value))


def test_a_format_that_is_not_checked_takes_everything() -> None:
    assert check_format("hostname", "..") is None
    assert check_format("EMAIL", "x") is None
    assert sorted(FORMATS) == ["date", "date-time", "email", "uri"]


def test_a_long_text_is_judged_in_proportion_to_its_length() -> None:
    long_address = "http://h" + "/%20" * 50_000
    for hostile in ("a" * 200_000, "a." * 100_000, "http://" + "a.-" * 60_000 + "\\", long_address + "%"):
        for name in FORMATS:
            assert check_format(name, hostile) is not None


def _changed(name: str) -> st.SearchStrategy[str]:
    """Good ones, with some characters taken out, put in, or replaced."""
    pieces = "".join(sorted({character for value in GOOD[name] + BAD[name] for character in value}))
    change = st.tuples(st.integers(0, 40), st.integers(0, 2), st.sampled_from(["", *pieces]))

    def changed(value: str, changes: list[tuple[int, int, str]]) -> str:
        for at, gone, new in changes:
            at %= len(value) + 1
            value = value[:at] + new + value[at + gone :]
        return value

    return st.builds(changed, st.sampled_from(GOOD[name]), st.lists(change, max_size=3))


@pytest.mark.parametrize("name", GOOD)
def test_what_is_taken_here_ajv_takes_too(ajv: Judge, name: str) -> None:
    @settings(max_examples=25, deadline=None, database=None)
    @given(st.lists(_changed(name), min_size=20, max_size=40))
    def check(values: list[str]) -> None:
        taken = [value for value in values if check_format(name, value) is None]
        assert [value for value, fine in zip(taken, _ajv_takes(ajv, name, taken), strict=True) if not fine] == []

    check()


@pytest.mark.parametrize(
    ("typed", "value"), [("１２３", 123), ("－９", -9), ("＋０", 0), ("２．０", 2), ("−４５", -45), ("６７８", 678)]
)
def test_digits_of_a_wide_keyboard_are_digits(typed: str, value: int) -> None:
    (field,) = read_form({"type": "object", "properties": {"a": {"type": "integer"}}}).fields
    assert field.parse(typed) == value
