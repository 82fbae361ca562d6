"""Text of servers on its way to a terminal, a browser and a log: made harmless, written anew, without its secrets.

Input: text as UTF-8 (lone surrogates are let through); what follows the first U+001E is a second text.
"""

from __future__ import annotations

import unicodedata
from typing import Any
from urllib.parse import urlsplit

from gopher_mcp_python.authorization_text import authorization_url
from gopher_mcp_python.display import quoted_block, rows_of, safe_line, safe_text
from gopher_mcp_python.errors import UnsafeUrlError
from gopher_mcp_python.redaction import redact_headers, redact_text, redact_url
from gopher_mcp_python.weburl import parse_web_url

WORDS: tuple[Any, ...] = ()
LARGEST = 600
SECRET = "s3cr3tS3cr3tS3cr3t9x"
UNFIT = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def one_input(data: bytes) -> None:
    text, _, other = data.decode("utf-8", "surrogatepass" if _is_text(data) else "replace").partition("\x1e")
    check_shown(text)
    check_rows(safe_line(text), 8 + len(other) % 100)
    check_url(text)
    if SECRET not in text and SECRET not in other:
        check_redacted(text, other)


def _is_text(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def check_shown(text: str) -> None:
    shown = safe_text(text)
    assert not [one for one in shown if one != "\n" and unicodedata.category(one) in UNFIT]
    assert shown.encode() and len(shown) <= 10 * min(len(text), 4000) + 60 if text else shown == ""
    assert safe_text(shown[:4000]) == shown[:4000], "what is harmless is shown as it is"
    line = safe_line(text)
    assert "\n" not in line and line == line.strip()
    block = quoted_block(text, columns=40).split("\n")
    assert len(block) <= 21 * 8000 and all(row.startswith("  | ") for row in block)


def check_rows(line: str, columns: int) -> None:
    rows = rows_of(line, columns)
    assert "".join("".join(rows).split()) == "".join(line.split()), "nothing is lost"
    for row in rows:
        width = sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in row)
        assert width <= max(8, columns), (width, columns)


def check_url(text: str) -> None:
    try:
        url = parse_web_url(text)
    except UnsafeUrlError as refused:
        said = str(refused)
        assert len(said) < 200 and (len(text) < 30 or text not in said)
        return
    assert url.href.isascii() and url.href.isprintable() and not set(url.href) & set(' "<>\\^`{|}'), "can be misread"
    parts = urlsplit(url.href)
    assert parts.scheme == url.scheme in ("http", "https")
    host = url.host.strip("[]")
    assert parts.hostname == host.lower() and url.site and url.host.rstrip(".").endswith(url.site.rstrip("."))
    again = parse_web_url(url.href)
    assert (again.href, again.host, again.site) == (url.href, url.host, url.site), "written anew it says the same"
    assert text == url.host or len(text) < 30 or text not in repr(url)
    for warning in url.warnings:
        assert safe_text(warning) == warning


def check_redacted(text: str, other: str) -> None:
    """Wherever a secret stands as the documents say, it is gone."""
    for url in (
        f"https://{text}?{other}={SECRET}",
        f"https://u:{SECRET}@{text}",
        f"https://{text}#{SECRET}",
        f"https://a.test/{text}?access_token={SECRET}&{other}",
    ):
        shown = redact_url(url)
        assert SECRET not in shown, shown
        assert len(shown) <= 2003
    for line in (
        f"{text} access_token={SECRET} {other}",
        f"{text} Authorization: Bearer {SECRET}\n{other}",
        f'{text} "client_secret": "{SECRET}" {other}',
        f"{text} https://a.test/cb?code={SECRET} {other}",
        f"{text} https://a.test/cb?x={SECRET}&y={other}",
    ):
        shown = redact_text(line)
        assert SECRET not in shown, shown
    assert redact_headers({text: SECRET}) == {text: "<redacted>"}
    redact_text(text)
    found = authorization_url(text)
    assert found is None or parse_web_url(found).href == found
