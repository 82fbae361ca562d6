"""Secrets never reach a log: in URLs, headers and free text."""

from __future__ import annotations

import json
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
    ],
)
def test_free_text(template: str, canary: Any) -> None:
    text = template.format(url=canary.authorization_url(), secret=canary.secret("free"))
    shown = redact_text(text)
    canary.check("redacted", shown)
    assert "<redacted>" in shown or "%3Credacted%3E" in shown


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
