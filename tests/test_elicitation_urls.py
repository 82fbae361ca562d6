"""URLs that a server wants a person to open: what is refused, what is warned of, what the browser gets."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import pytest

from gopher_mcp_python import UnsafeUrlError
from gopher_mcp_python.hostnames import ascii_host, site_of
from gopher_mcp_python.weburl import parse_web_url


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JavaScript:alert(1)",
        "data:text/html,<script>1</script>",
        "file:///etc/passwd",
        "vscode://vscode.git/clone?url=x",
        "ftp://a.test/",
        "mailto:a@b.test",
        " http://a.test/",
        "\x01http://a.test/",
        "\thttps://a.test/",
        "https://a.test/ ",
        "https://a.test/\n",
        "https://a.\ttest/",
        "https://a.test/\x1b[2J",
        "https://a.test/\x85",
        "\u200bhttps://a.test/",
        "//a.test/",
        "a.test/x",
        "https:a.test",
        "https:/a.test",
        "https://",
        "https:///path",
        "https://@/",
        "https://[bad/",
        "https://[::1",
        "https://a.test:99999/",
        "https://a.test:port/",
        "https://a.test\\@evil.test/",
        "https:\\\\evil.test\\",
        "https://exa%6dple.test/",
        "https://exa mple.test/",
        "https://-a.test/",
        "https://a..test/",
        "https://" + "a" * 64 + ".test/",
        "https://[::1]evil.test/",
        "https://[v1.x]/",
        "https://a@[::1].evil.test/",
        "https://a.1/",
        "https://1.2.3.4.5/",
        "",
    ],
)
def test_refused(url: str) -> None:
    with pytest.raises(UnsafeUrlError) as caught:
        parse_web_url(url)
    assert "evil.test" not in str(caught.value)


def test_the_reason_never_holds_the_url(canary: Any) -> None:
    for url in (
        f"javascript:{canary.secret('code')}",
        f"https://[{canary.secret('code')}",
        "x:" + canary.secret("code"),
    ):
        with pytest.raises(UnsafeUrlError) as caught:
            parse_web_url(url)
        canary.check_exception("refused", caught.value)


@pytest.mark.parametrize(
    "url",
    [
        "https://accounts.example.com/o/oauth2/auth?response_type=code&client_id=x&scope=a%20b&state=1&nonce=2",
        "https://a.test",
        "http://127.0.0.1:8123/authorize?x=1#frag",
        "https://[::1]:8443/x",
        "https://a.test/p;v=1/(x)/~u?q='1'&r=a+b&s=[1]",
        "https://a.test/%E2%82%AC?x=%2F",
    ],
)
def test_ordinary_urls_pass_unchanged(url: str) -> None:
    page = parse_web_url(url)
    assert page.href == url
    assert not page.is_misleading


@pytest.mark.parametrize(
    ("url", "href"),
    [
        ("HTTPS://A.Test/Path", "https://a.test/Path"),
        ("https://a.test/a b?c d#e f", "https://a.test/a%20b?c%20d#e%20f"),
        ("https://a.test/€?ü=ß", "https://a.test/%E2%82%AC?%C3%BC=%C3%9F"),
        (
            'https://a.test/?a="1"&b=<x>&c=`id`&d={x}|^\\',
            "https://a.test/?a=%221%22&b=%3Cx%3E&c=%60id%60&d=%7Bx%7D%7C%5E%5C",
        ),
        ("https://bücher.test/", "https://xn--bcher-kva.test/"),
        ("https://a.test/\u202egnp", "https://a.test/%E2%80%AEgnp"),
        ("https://a.test/\u200b", "https://a.test/%E2%80%8B"),
    ],
)
def test_what_could_mislead_is_written_anew(url: str, href: str) -> None:
    page = parse_web_url(url)
    assert page.href == href
    assert page.href.isascii()
    assert page.href.isprintable()
    assert " " not in page.href
    assert parse_web_url(href).href == href


def test_a_url_of_5000_characters_stays_whole() -> None:
    url = "https://a.test/?x=" + "y" * 5000
    assert parse_web_url(url).href == url


@pytest.mark.parametrize(
    ("url", "host", "word"),
    [
        ("https://accounts.google.com@evil.example/x", "evil.example", "@"),
        ("https://user:pass@evil.example/", "evil.example", "@"),
        ("https://xn--pple-43d.com/", "xn--pple-43d.com", "Cyrillic and Latin"),
        ("https://\u0430pple.com/", "xn--pple-43d.com", "Cyrillic and Latin"),
        ("https://\u0440\u0430\u0443.com/", "xn--80a5ak.com", "beyond a to z"),
        ("https://login.example.com.evil.test/", "login.example.com.evil.test", "belongs to evil.test"),
        ("https://paypal.com.account.evil.co.uk/", "paypal.com.account.evil.co.uk", "belongs to evil.co.uk"),
        ("https://2130706433/", "2130706433", "unusual spelling"),
        ("https://0x7f.1/", "0x7f.1", "unusual spelling"),
    ],
)
def test_look_alikes_are_warned_of(url: str, host: str, word: str) -> None:
    page = parse_web_url(url)
    assert page.host == host
    assert page.is_misleading
    assert word in " ".join(page.warnings)


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("https://accounts.google.com/", False),
        ("https://docs.python.org/", False),
        ("https://login.dev.example.com/", False),
        ("https://mail.example.co.uk/", False),
        ("https://10.0.0.5/", True),
        ("http://a.test/", True),
        ("http://localhost:3000/", False),
        ("http://127.0.0.1/", False),
        ("http://[::1]/", False),
        ("http://app.localhost/", False),
    ],
)
def test_plain_warnings_do_not_make_a_page_misleading(url: str, warned: bool) -> None:
    page = parse_web_url(url)
    assert bool(page.warnings) is warned
    assert not page.is_misleading


@pytest.mark.parametrize(
    ("host", "site"),
    [
        ("accounts.google.com", "google.com"),
        ("a.b.example.co.uk", "example.co.uk"),
        ("me.github.io", "me.github.io"),
        ("x.me.github.io", "me.github.io"),
        ("localhost", "localhost"),
        ("127.0.0.1", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("example.de", "example.de"),
        ("co.uk", "co.uk"),
    ],
)
def test_the_registered_part(host: str, site: str) -> None:
    assert site_of(host) == site


@pytest.mark.parametrize("host", ["", "a b", "-a.test", "a-.test", "a" * 254, "a/b", "a:b", "a@b"])
def test_what_is_no_host(host: str) -> None:
    with pytest.raises(ValueError):
        ascii_host(host)


def test_python_agrees_about_the_host() -> None:
    for url in ("https://a.test:8443/x", "https://b\u00fccher.test/", "http://[::1]:1/"):
        page = parse_web_url(url)
        assert urlsplit(page.href).hostname == page.host.strip("[]")


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/", "127.0.0.1"),
        ("https://\uff43\uff4f\uff4d.test/", "com.test"),
        ("https://accounts.google.com-sign-in.evil.test/", "accounts.google.com-sign-in.evil.test"),
        ("https://2130706433./", "2130706433."),
    ],
)
def test_more_hosts_that_are_not_what_they_seem(url: str, host: str) -> None:
    page = parse_web_url(url)
    assert page.host == host and page.is_misleading and page.warnings


def test_a_lone_surrogate_does_not_begin_a_query() -> None:
    assert parse_web_url("https://a.test/\ud800x").href == "https://a.test/%EF%BF%BDx"


def test_an_address_in_odd_spelling_is_shown_whole() -> None:
    assert site_of("0177.0.0.1") == "0177.0.0.1"


def test_this_machine_with_a_dot_at_its_end_is_still_this_machine() -> None:
    assert parse_web_url("http://localhost./x").warnings == ()
