"""The canary scan itself: a planted leak fails a run, wherever it shows; a clean run passes."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support import canary as plugin
from tests.support.children import ROOT

pytest_plugins = ["pytester"]

CONFTEST = """
from tests.support import canary
def pytest_configure(config):
    config.pluginmanager.register(canary.Plugin(), "canary-plugin")
"""

LEAKS = {
    "stdout": "def test_it(canary): print(canary.authorization_url())",
    "stderr": "import sys\ndef test_it(canary): print(canary.secret('token'), file=sys.stderr)",
    "encoded": "import base64\ndef test_it(canary): print(base64.b64encode(('u:' + canary.secret('p')).encode()))",
    "fixture's stdout": """
        import pytest
        @pytest.fixture
        def noisy(canary):
            yield
            print(canary.secret('token'))
        def test_it(noisy): pass""",
    "log record": """
        import logging
        def test_it(canary):
            logging.getLogger("gopher_mcp_python.x").debug("opening %s", canary.authorization_url())""",
    "traceback in a log": """
        import logging
        def test_it(canary):
            try:
                raise ValueError(canary.secret("state"))
            except ValueError:
                logging.getLogger("some.other").error("failed", exc_info=True)""",
    "exception": """
        import pytest
        def test_it(canary):
            with pytest.raises(ValueError):
                raise ValueError(canary.secret("code"))""",
    "cause of an exception": """
        import pytest
        def test_it(canary):
            with pytest.raises(ValueError):
                try:
                    raise KeyError(canary.secret("code"))
                except KeyError as error:
                    raise ValueError("clean") from error""",
    "capsys": "def test_it(canary, capsys):\\n    print(canary.secret('token'))\\n    capsys.readouterr()",
    "child process": """
        import subprocess, sys
        def test_it(canary):
            subprocess.run([sys.executable, "-c", f"print({canary.secret('token')!r})"], capture_output=True)""",
    "terminal": """
        import pexpect, sys
        def test_it(canary):
            child = pexpect.spawn(sys.executable, ["-c", f"print({canary.secret('token')!r})"])
            child.expect(pexpect.EOF)
            child.close()""",
    "warning": """
        import pytest, warnings
        def test_it(canary):
            with pytest.warns(UserWarning):
                warnings.warn(canary.secret('token'))""",
    "repr of a public object": """
        import gopher_mcp_python as package
        def test_it(canary, monkeypatch):
            monkeypatch.setattr(package.GopherAgentOAuthOptions, "__repr__", lambda made: canary.secret("token"))
            package.GopherAgentOAuthOptions()""",
    "shown URL within other text": """
        def test_it(canary):
            url = canary.authorization_url()
            canary.allow_shown(url)
            print("opening", url)""",
    "shown URL in a log": """
        import logging
        def test_it(canary):
            url = canary.authorization_url()
            canary.allow_shown(url)
            logging.getLogger("x").warning(url)""",
}

CLEAN = """
import logging, subprocess, sys, pytest
def test_prompt(canary):
    url = canary.authorization_url()
    canary.allow_shown(url)
    print("Open this page:")
    print("   " + url)
def test_prompt_of_a_page(canary):
    canary.allow_shown("https://accounts.example.test/", exact=False)
    print("    " + canary.authorization_url())
def test_quiet(canary):
    url = canary.authorization_url(userinfo=True)
    logging.getLogger("gopher_mcp_python").debug("opening %s", url.split("/")[0])
    subprocess.run([sys.executable, "-c", "import sys; sys.argv[1]", url], capture_output=True, check=True)
    with pytest.raises(ValueError):
        raise ValueError("a clean text")
"""


def _suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, sources: dict[str, str]) -> pytest.RunResult:
    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)
    pytester.makeconftest(CONFTEST)
    for name, source in sources.items():
        pytester.makepyfile(**{f"test_{re.sub('[^a-zA-Z]', '_', name)}": source.replace("\\n", "\n")})
    return pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-rA")


@pytest.mark.canary_off
def test_a_planted_leak_fails_the_run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _suite(pytester, monkeypatch, LEAKS)
    text = result.stdout.str()
    assert result.ret == 1, text
    assert text.count("planted secrets leaked") >= len(LEAKS), text
    for place in LEAKS:
        name = f"test_{re.sub('[^a-zA-Z]', '_', place)}.py::test_it"
        assert f"FAILED {name}" in text or f"ERROR {name}" in text, f"{place} went unnoticed\n{text}"


@pytest.mark.canary_off
def test_a_clean_run_passes(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    result = _suite(pytester, monkeypatch, {"clean": CLEAN})
    result.assert_outcomes(passed=3)


@pytest.mark.canary_off
def test_the_exception_for_prompts_ends_with_the_test(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = """
        def test_1(canary):
            canary.allow_shown(canary.authorization_url())
            print(canary.authorization_url())
        def test_2(canary):
            print(canary.authorization_url())
    """
    result = _suite(pytester, monkeypatch, {"prompts": source})
    text = result.stdout.str()
    assert result.ret == 1 and "FAILED test_prompts.py::test_2" in text and "1 passed" in text, text


def test_secrets_are_found_in_every_form() -> None:
    word = plugin.secret("token")
    forms = [word, word.lower(), quote(f"?state={word}"), f'{{"a": "{word}"}}', f"Bearer {word}"]
    forms += [base64.b64encode((pad + word).encode()).decode() for pad in ("", "a", "ab", "abc", "user:")]
    assert [form for form in forms if not plugin.leaks(form)] == []
    assert plugin.leaks("nothing to see: code=***&state=***") == []
    assert all(plugin.MARK not in excerpt for form in forms for excerpt in plugin.leaks(form))


def test_every_sensitive_part_of_the_url_is_planted() -> None:
    url = plugin.authorization_url(userinfo=True)
    for name in plugin.SECRET_PARAMETERS:
        assert f"{name}={plugin.MARK}" in url
    assert f"//{plugin.MARK}" in url and f"#access_token={plugin.MARK}" in url


def test_only_this_module_may_switch_the_scan_off() -> None:
    users = [path.name for path in Path(__file__).parent.rglob("*.py") if "mark.canary_off" in path.read_text()]
    assert users == ["test_canary.py"]
