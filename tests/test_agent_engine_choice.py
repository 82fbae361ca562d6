"""Which engine runs, why, and what is said about a native library that can't be used."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python import AgentError, NativeMismatchWarning, mismatch, native
from gopher_mcp_python.engines import Choice, choose
from gopher_mcp_python.native import search
from gopher_mcp_python.native.report import Attempt, Report
from tests.support import children


class Library:
    """What native.load() gives, for a version of the test's choice. The real libraries are loaded in child processes
    below and in tests/scenarios: one of them can be in a process, and it stays."""

    path = "/opt/lib/libgopher-orch.so"

    def __init__(self, version: str | None, supports_elicitation: bool) -> None:
        self.version, self.supports_elicitation, self.library = version, supports_elicitation, self


@pytest.fixture(autouse=True)
def _unsaid(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test is its own process as far as the one warning is concerned."""
    monkeypatch.setattr(mismatch, "_TO_SAY", [True])
    monkeypatch.delenv("GOPHER_MCP_ENGINE", raising=False)


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(version: str | None, supports_elicitation: bool) -> None:
        monkeypatch.setattr(native, "load", lambda: Library(version, supports_elicitation), raising=False)

    return use


@pytest.fixture
def no_library(monkeypatch: pytest.MonkeyPatch) -> Any:
    def use(report: Report) -> None:
        def load() -> Any:
            raise AgentError("No usable libgopher-orch was found.\nNext: pip install it")

        monkeypatch.setattr(native, "load", load, raising=False)
        monkeypatch.setattr(search, "find", lambda *args: report)

    return use


def chosen(requested: str | None = None, *, explicit: bool = False, enabled: bool = True, **more: Any) -> Choice:
    return choose(requested, explicit_elicitation=explicit, elicitation_enabled=enabled, **more)


# ---- the rules ------------------------------------------------------------------------------------------------------


def test_embedded_on_request_looks_at_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "load", lambda: pytest.fail("loaded"), raising=False)
    assert chosen("embedded").engine == "embedded"
    monkeypatch.setenv("GOPHER_MCP_ENGINE", " Embedded ")
    choice = chosen()
    assert (choice.engine, choice.why) == ("embedded", "asked for by GOPHER_MCP_ENGINE")


def test_the_option_wins_over_the_variable(library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    library("0.1.39", True)
    monkeypatch.setenv("GOPHER_MCP_ENGINE", "embedded")
    assert chosen("native").engine == "native"
    assert chosen("auto").engine == "native"


@pytest.mark.parametrize("name", ["quick", "Native!"])
def test_unknown_names(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPHER_MCP_ENGINE", name)
    with pytest.raises(AgentError, match="must be auto, native or embedded"):
        chosen()


@pytest.mark.parametrize("requested", [None, "auto", "native"])
@pytest.mark.parametrize("explicit", [True, False])
def test_a_new_library_is_preferred(requested: str | None, explicit: bool, library: Any) -> None:
    library("0.1.39", True)
    choice = chosen(requested, explicit=explicit)
    assert (choice.engine, choice.elicitation) == ("native", True)
    assert "0.1.39" in choice.why


def test_old_library_auto_takes_the_embedded_engine_and_warns_once(library: Any) -> None:
    library("0.1.34", False)
    with pytest.warns(
        NativeMismatchWarning, match=r"0\.1\.34.*no elicitation support.*0\.1\.35.*pip install"
    ) as caught:
        choices = [chosen(explicit=explicit).engine for explicit in (True, False)]
    assert choices == ["embedded", "embedded"]
    assert len(caught) == 1


def test_old_library_native_by_name_and_default_elicitation(library: Any, caplog: pytest.LogCaptureFixture) -> None:
    library("0.1.34", False)
    with caplog.at_level("DEBUG", "gopher_mcp_python.engines"):
        choice = chosen("native")
    assert (choice.engine, choice.elicitation) == ("native", False)
    assert "without it" in caplog.text


def test_old_library_native_by_name_and_explicit_elicitation(library: Any) -> None:
    library("0.1.34", False)
    with pytest.raises(AgentError) as caught:
        chosen("native", explicit=True)
    for word in ("0.1.34", "0.1.35", "0.1.38", "Upgrade", 'engine="embedded"'):
        assert word in str(caught.value)


@pytest.mark.parametrize("requested", [None, "native"])
def test_old_library_is_good_enough_without_elicitation(requested: str | None, library: Any) -> None:
    library("0.1.34", False)
    assert chosen(requested, enabled=False).engine == "native"


def test_nothing_installed_is_no_reason_to_warn(no_library: Any) -> None:
    no_library(Report(attempts=[Attempt("package", "gopher", reason="not installed")]))
    choice = chosen()
    assert (choice.engine, choice.why) == ("embedded", "no native library is installed")


@pytest.mark.parametrize(
    "report",
    [
        Report(package="gopher-mcp-python-native-linux-x64"),
        Report(overridden_by="GOPHER_ORCH_LIBRARY_PATH"),
        Report(attempts=[Attempt("loader", "/usr/lib/libgopher-orch.so", reason="wrong platform")]),
    ],
)
def test_an_installed_library_that_can_not_be_used_is_told_with_its_remedy(report: Report, no_library: Any) -> None:
    no_library(report)
    with pytest.warns(NativeMismatchWarning) as caught:
        choices = [chosen().engine for _ in range(2)]
    assert choices == ["embedded", "embedded"]
    (warning,) = caught
    assert "Next: pip install it" in str(warning.message)
    assert "GOPHER_MCP_ENGINE=embedded silences this" in str(warning.message)


def test_native_by_name_that_can_not_be_loaded_is_an_error(no_library: Any) -> None:
    no_library(Report())
    with pytest.raises(AgentError, match="Next: pip install it"):
        chosen("native")


def test_what_only_the_embedded_engine_can_do_goes_there(library: Any) -> None:
    library("0.1.39", True)
    assert chosen(embedded_only="it is so").why == "it is so"
    with pytest.raises(AgentError, match="it is so"):
        chosen("native", embedded_only="it is so")


# ---- in a process of its own ----------------------------------------------------------------------------------------

CREATE = """
import sys, warnings
import gopher_mcp_python as g
try:
    agent = g.GopherAgent.create_with_server_config("AnthropicProvider", "m", '{"servers": []}', eval(sys.argv[1]))
    print(agent.engine, "|", agent.engine_reason)
    agent.dispose()
except g.AgentError as error:
    print("error |", error)
"""


@pytest.fixture
def old_library(vendor_library_of: Any, openssl11: Path) -> dict[str, str]:
    return {
        "GOPHER_MCP_PYTHON_LIBRARY_PATH": str(vendor_library_of("0.1.34")),
        "GOPHER_MCP_OPENSSL11_PATH": str(openssl11),
        "ANTHROPIC_API_KEY": "none",
    }


def test_a_really_old_library(old_library: dict[str, str]) -> None:
    done = children.python(CREATE, '{"engine": "native"}', env=old_library).check()
    assert done.out.startswith("native | asked for by the engine option, libgopher-orch 0.1.34")
    assert "without elicitation" in done.out
    done = children.python(CREATE, '{"engine": "native", "elicitation": {"timeout_ms": 5}}', env=old_library).check()
    assert done.out.startswith("error | Elicitation options were given, but libgopher-orch 0.1.34")
    done = children.python(CREATE, '{"engine": "native", "elicitation": False}', env=old_library).check()
    assert done.out.startswith("native |")


def test_a_really_old_library_on_auto_warns_once(old_library: dict[str, str]) -> None:
    code = CREATE.replace("eval(sys.argv[1])", "None").replace(
        "import gopher_mcp_python as g", "import gopher_mcp_python as g; g.GopherAgent.init()"
    )
    done = children.python(code, env=old_library)
    assert done.err.count("NativeMismatchWarning") == 1
    assert "libgopher-orch 0.1.34" in done.err


def test_a_broken_library_on_auto_is_told(tmp_path: Path) -> None:
    broken = tmp_path / "libgopher-orch.so.0.1.39"
    broken.write_bytes(b"\x7fELF" + bytes(60))
    code = "import gopher_mcp_python as g; g.GopherAgent.init(); g.GopherAgent.init()"
    done = children.python(code, env={"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(broken)}).check()
    assert done.err.count("NativeMismatchWarning") == 1
    assert str(broken) in done.err
    quiet = children.python(
        code, env={"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(broken), "GOPHER_MCP_ENGINE": "embedded"}
    ).check()
    assert quiet.err == ""


def test_the_warning_is_an_error_where_warnings_are_errors(library: Any) -> None:
    library("0.1.34", False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NativeMismatchWarning):
            chosen()
    assert issubclass(NativeMismatchWarning, RuntimeWarning)


def test_the_warning_points_at_the_programs_own_line(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import gopher_mcp_python as g\n\ng.GopherAgent.init()\n")
    broken = tmp_path / "libgopher-orch.so.0.1.39"
    broken.write_bytes(b"no library")
    done = children.run([sys.executable, str(program)], env={"GOPHER_MCP_PYTHON_LIBRARY_PATH": str(broken)}).check()
    assert f"{program}:3: NativeMismatchWarning" in done.err
