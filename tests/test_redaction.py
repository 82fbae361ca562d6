"""Secrets never reach a log: in URLs, headers and free text."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gopher_mcp_python.elicitation_runtime import redact_elicitation_url
from gopher_mcp_python.redaction import is_sensitive_name, redact_headers, redact_text, redact_url

SENSITIVE = ["code", "token", "access_token", "refresh_token", "id_token", "client_secret", "state", "Client_Secret"]


@pytest.mark.parametrize("name", SENSITIVE)
def test_sensitive_query_values_are_hidden(name: str) -> None:
    shown = redact_elicitation_url(f"https://a.test/cb?{name}=s3cret&scope=mail")
    assert "s3cret" not in shown
    assert parse_qs(urlsplit(shown).query) == {name: ["<redacted>"], "scope": ["<present>"]}
    assert shown.startswith("https://a.test/cb?")


def test_everything_at_once(canary: Any) -> None:
    url = canary.authorization_url(userinfo=True, fragment=True)
    shown = redact_url(url)
    canary.check("redacted", shown)
    assert shown.startswith("https://<redacted>@accounts.example.test/o/oauth2/auth?response_type=")
    assert shown.endswith("#<redacted>")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://a.test/x", "https://a.test/x"),
        ("", ""),
        ("not a url", "not a url"),
        ("http://[bad", "<invalid-url>"),
        ("data:text/html,s3cret", "data:<redacted>"),
        ("javascript:steal('s3cret')", "javascript:<redacted>"),
        ("https://a.test/?code", "https://a.test/?code=%3Credacted%3E"),
        ("https://a.test/?redirect=https%3A%2F%2Fb.test%3Fcode%3Ds3cret", "https://a.test/?redirect=%3Cpresent%3E"),
        ("https://a.test/?s3cr3t", "https://a.test/?%3Credacted%3E=%3Cpresent%3E"),
        ("https://a.test/?code%3Ds3cret", "https://a.test/?%3Credacted%3E=%3Cpresent%3E"),
        ("https://a.test/?accessToken=s3cret", "https://a.test/?accessToken=%3Credacted%3E"),
        ("https://a.test/x;code=s3cret/y", "https://a.test/x;<redacted>/y"),
        ("code=s3cret&state=s3cret", "code=<redacted>"),
        ("https://a.test/?\ud800_token=s3cret", "https://a.test/?%3F_token=%3Credacted%3E"),
        ("https://a.test/verify/9f86d081884c7d659a2feaa0c55ad015", "https://a.test/verify/<redacted>"),
        ("https://a.test/guide/rate-limits-2024-updated", "https://a.test/guide/rate-limits-2024-updated"),
    ],
)
def test_odd_urls(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_headers_keep_their_names_only(canary: Any) -> None:
    headers = canary.headers()
    shown = redact_headers(headers)
    canary.check("redacted", repr(shown))
    assert shown == dict.fromkeys(headers, "<redacted>")
    assert redact_headers([("A", "1"), ("B", "2")]) == {"A": "<redacted>", "B": "<redacted>"}


@pytest.mark.parametrize(
    "template",
    [
        "GET {url} failed",
        "Authorization: Bearer {secret}",
        "sent bearer {secret} to it",
        "access_token={secret}&x=1",
        '{{"refresh_token": "{secret}", "x": 1}}',
        "{{'client_secret': '{secret}'}}",
        "password: {secret}, again",
        "state={secret}",
        "X-Api-Key: {secret}",
        "key sk-{secret} was refused",
        "accessToken: {secret}",
        '{{"clientSecret":"{secret}"}}',
        '"{{\\"access_token\\": \\"{secret}\\"}}"',
        "Cookie: a={secret}; b={secret}",
        "Authorization: Digest username=x, response={secret}",
        "Authorization: Token {secret}",
        "the code: 4/0A{secret}",
        "AIza{secret}00000000000000000000",
        "error: access_token={secret}",
        "code: access_token={secret}",
        "bad token: client_secret: {secret}",
        'code= "client_secret": "{secret}"',
        "state:password={secret}",
        "message=client_secret={secret}",
        '{{"message": "it failed with access_token={secret}"}}',
        "note: 'see password: {secret}'",
        '{{"refresh_token": "{secret}',
        "password: '{secret} and more",
        '"{{\\"access_token\\": \\"{secret}',
    ],
)
def test_free_text(template: str, canary: Any) -> None:
    text = template.format(url=canary.authorization_url(), secret=canary.secret("free"))
    shown = redact_text(text)
    canary.check("redacted", shown)
    assert "<redacted>" in shown or "%3Credacted%3E" in shown


@pytest.mark.parametrize(
    "unit",
    [
        "a",
        "a-",
        "http://",
        "eyJ-",
        "sk-",
        "Bearer ",
        'a="',
        'ab:\\"',
        "cookie" + " " * 1000,
        "ab:\n",
        "code:",
        "code: ",
        "token=\\'",
        'token:"\\',
        "code:'",
        "code: a://",
    ],
)
def test_time_grows_with_the_length_of_a_text_and_not_with_its_square(unit: str) -> None:
    began = time.process_time()
    redact_text(unit * (300_000 // len(unit)))
    assert time.process_time() - began < 5  # with searches from each character on: many minutes


def test_the_log_line_of_a_huge_url_stays_short() -> None:
    assert len(redact_url("https://a.test/" + "x" * 1_000_000 + "?a=b")) < 2100


@pytest.mark.parametrize("text", ["error code: 500", "the state: closed", "HTTP 404 at /x", "key: value", "a = b"])
def test_harmless_text_is_left_alone(text: str) -> None:
    assert redact_text(text) == text


def test_json_stays_readable() -> None:
    shown = redact_text(json.dumps({"error": "bad", "access_token": "s3cret"}))
    assert '"error": "bad"' in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize(
    ("name", "expected"), [("Set-Cookie", True), ("my_secret", True), ("scope", False), ("q", False)]
)
def test_names(name: str, expected: bool) -> None:
    assert is_sensitive_name(name) is expected
