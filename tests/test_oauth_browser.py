"""Opening a page: which command, when none, never through a shell, never with the URL in an error."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import UnsafeUrlError, oauth_browser
from gopher_mcp_python.oauth_browser import Unavailable, browser_command, open_authorization_url
from tests.support import children

URL = "https://provider.test/authorize?response_type=code&client_id=a&redirect_uri=b&scope=c&state=d"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing but what a test puts there."""
    monkeypatch.setenv("PATH", str(tmp_path))
    for name in (
        "BROWSER",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "SSH_CONNECTION",
        "SSH_TTY",
        "WSL_DISTRO_NAME",
        "WSL_INTEROP",
    ):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def program(folder: Path, name: str, body: str) -> Path:
    """A script that a browser command can be; `body` sees the arguments as `argv`."""
    file = folder / name
    file.write_text(f"#!{sys.executable}\nimport sys, json, time\nargv = sys.argv[1:]\n{body}\n")
    file.chmod(0o755)
    return file


def recorder(folder: Path, name: str) -> Path:
    out = folder / f"{name}.seen"
    program(folder, name, f"open({str(out)!r}, 'a').write(json.dumps(argv) + chr(10))")
    return out


# ---- the published shape --------------------------------------------------------------------------------------------


def test_an_opener_gets_the_url_and_its_word_counts() -> None:
    seen: list[str] = []

    def opener(url: str) -> bool:
        seen.append(url)
        return True

    result = open_authorization_url(URL, None, opener)
    assert (result["opened"], result["url"], seen) == (True, URL, [URL])
    assert result["command"]
    refused = open_authorization_url(URL, True, lambda url: False)
    assert (refused["opened"], refused["url"], "command" in refused) == (False, URL, False)


def test_switched_off_opens_nothing() -> None:
    result = open_authorization_url(URL, False, lambda url: pytest.fail("opened"))
    assert (result["opened"], result["url"]) == (False, URL)


def test_an_opener_that_raises_is_told_without_the_url(canary: Any) -> None:
    url = canary.authorization_url()

    def broken(url: str) -> bool:
        raise OSError(f"no browser for {url}")

    result = open_authorization_url(url, True, broken)
    assert result["opened"] is False
    canary.check("reason", result["reason"])
    assert "OSError" in result["reason"]


def test_unsafe_urls_are_refused_before_anything(canary: Any) -> None:
    with pytest.raises(UnsafeUrlError) as caught:
        open_authorization_url(f"javascript:{canary.secret('code')}", True, lambda url: pytest.fail("opened"))
    canary.check_exception("refused", caught.value)


def test_the_opener_gets_the_url_written_anew() -> None:
    seen: list[str] = []
    open_authorization_url("HTTPS://A.test/x y?q=`id`", True, lambda url: seen.append(url) or True)
    assert seen == ["https://a.test/x%20y?q=%60id%60"]


# ---- which command --------------------------------------------------------------------------------------------------


def reason(environ: dict[str, str], platform: str = "linux") -> str:
    with pytest.raises(Unavailable) as caught:
        browser_command(environ, platform)
    return str(caught.value)


@pytest.mark.parametrize(
    "name", ["lynx", "w3m", "links", "links2", "elinks", "/usr/bin/lynx", "lynx -accept_all_cookies"]
)
def test_text_browsers_are_not_started(name: str) -> None:
    assert "text browser" in reason({"BROWSER": name, "DISPLAY": ":0"})


@pytest.mark.parametrize(
    ("environ", "word"),
    [
        ({}, "no display"),
        ({"SSH_CONNECTION": "1 2 3 4"}, "SSH"),
        ({"SSH_TTY": "/dev/pts/0", "DISPLAY": ":10"}, "SSH"),
        ({"WSL_DISTRO_NAME": "Ubuntu", "DISPLAY": ":0"}, "WSL"),
        ({"WSL_INTEROP": "/run/WSL/1", "DISPLAY": ":0"}, "WSL"),
        ({"BROWSER": "true", "DISPLAY": ":0"}, "opens nothing"),
        ({"BROWSER": "no-such-program", "DISPLAY": ":0"}, "not installed"),
        ({"BROWSER": "'", "DISPLAY": ":0"}, "can't be read"),
    ],
)
def test_no_browser_is_guessed_at(environ: dict[str, str], word: str) -> None:
    assert word in reason(environ)


def test_xdg_open_where_there_is_a_display(path: Path) -> None:
    assert "xdg-open is not installed" in reason({"DISPLAY": ":0"})
    recorder(path, "xdg-open")
    for display in ("DISPLAY", "WAYLAND_DISPLAY"):
        assert browser_command({display: "x"}, "linux") == [str(path / "xdg-open")]


def test_other_platforms() -> None:
    assert browser_command({}, "darwin") == ["/usr/bin/open"]
    assert browser_command({}, "win32") == ["startfile"]


def test_a_named_graphical_browser_is_taken_even_over_ssh(path: Path) -> None:
    recorder(path, "helper")
    command = browser_command({"BROWSER": "helper --new:other", "SSH_CONNECTION": "1"}, "linux")
    assert command[0] == str(path / "helper")


def test_the_next_browser_of_the_list_is_taken_where_the_first_is_missing(path: Path) -> None:
    recorder(path, "helper")
    named = os.pathsep.join(["no-such-program", "lynx", "", "helper"])
    assert browser_command({"BROWSER": named}, "linux") == [str(path / "helper")]


# ---- really started -------------------------------------------------------------------------------------------------


def wait_for(file: Path, seconds: float = 10) -> str:
    end = time.monotonic() + seconds
    while not (file.exists() and file.read_text().endswith("\n")):
        assert time.monotonic() < end, f"{file.name} was not written"
        time.sleep(0.02)
    return file.read_text()


def test_the_program_gets_one_argument_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = recorder(path, "xdg-open")
    monkeypatch.setenv("DISPLAY", ":0")
    result = open_authorization_url(URL)
    assert (result["opened"], result["command"]) == (True, "xdg-open")
    assert wait_for(seen) == f'["{URL}"]\n'


def test_no_shell_reads_the_url(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = recorder(path, "viewer")
    monkeypatch.setenv("BROWSER", "viewer --url=%s --flag")
    marker = path / "marker"
    open_authorization_url(f"https://a.test/$(touch {marker})?x=;touch${{IFS}}{marker}&y=`touch {marker}`")
    arguments = wait_for(seen)
    assert arguments.startswith('["--url=https://a.test/')
    assert arguments.endswith('"--flag"]\n')
    assert not marker.exists()


def test_a_program_that_fails_at_once_is_noticed(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "xdg-open", "sys.exit(3)")
    monkeypatch.setenv("DISPLAY", ":0")
    result = open_authorization_url(URL)
    assert result["opened"] is False
    assert "exit code 3" in result["reason"]


def test_a_program_that_stays_is_not_waited_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(path, "xdg-open", f"open({str(path / 'pid')!r}, 'w').write(str(__import__('os').getpid())); time.sleep(60)")
    monkeypatch.setenv("DISPLAY", ":0")
    begin = time.monotonic()
    assert open_authorization_url(URL)["opened"] is True
    assert time.monotonic() - begin < 3
    (process,) = oauth_browser._HELD
    process.kill()
    process.wait()
    oauth_browser._HELD.clear()


def test_a_browser_that_outlives_the_program_is_no_news(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = program(path, "stays", "time.sleep(3)")
    code = f"from gopher_mcp_python.oauth_browser import *; assert open_authorization_url({URL!r})['opened']"
    done = children.run([sys.executable, "-X", "dev", "-c", code], env={"BROWSER": str(file)})
    assert (done.code, done.err) == (0, "")


def test_a_program_that_can_not_be_started_is_told_without_the_url(
    path: Path, monkeypatch: pytest.MonkeyPatch, canary: Any
) -> None:
    (path / "xdg-open").write_text("not a program")
    os.chmod(path / "xdg-open", 0o755)
    monkeypatch.setenv("DISPLAY", ":0")
    result = open_authorization_url(canary.authorization_url())
    assert result["opened"] is False
    canary.check("reason", result["reason"])
