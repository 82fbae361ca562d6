"""Opening the library: what is remembered, what a failure says, the log level."""

from __future__ import annotations

import logging
import os
import threading
from pathlib import Path

import pytest

from gopher_mcp_python import native
from gopher_mcp_python.errors import AgentError
from gopher_mcp_python.native import loading, names, search
from tests.support import children, vendor
from tests.support.compiled import functions, shared_library

PATH = names.PATH_VARIABLES[0]
REQUIRED = ("create_by_json", "create_by_api_key", "agent_run", "agent_release", "last_error", "free")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has loaded nothing yet; no test here opens the vendor's library in this process."""
    monkeypatch.setattr(loading, "_loaded", None)
    monkeypatch.setattr(loading, "_failed", None)
    monkeypatch.delenv("LD_LIBRARY_PATH", raising=False)


def failure() -> str:
    with pytest.raises(AgentError) as caught:
        native.load()
    return str(caught.value)


# ---- What a failure says --------------------------------------------------------------------------------------------


def test_nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "package_folder", lambda name: None)
    text = failure()
    package = names.current().distribution
    assert text.splitlines()[0] == "No usable libgopher-orch was found. Places tried:"
    assert "  - GOPHER_MCP_PYTHON_LIBRARY_PATH: -: not set" in text
    assert "  - GOPHER_ORCH_LIBRARY_PATH: -: not set" in text
    assert f"  - package: {package}: not installed" in text
    assert "  - loader: libgopher-orch.so.0 or libgopher-orch.so: the system's loader knows no such library" in text
    assert "GOPHER_MCP_PYTHON_LIBRARY_PATH (a file or a folder) overrides the search." in text
    assert text.splitlines()[-1] == f"Next: pip install {package}"


def test_a_variable_that_names_nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(PATH, str(tmp_path / "nowhere"))
    text = failure()
    assert f"  - {PATH}: {tmp_path / 'nowhere'}: no such file or folder" in text
    assert text.splitlines()[-1] == f"Next: unset {PATH}"


def test_a_library_without_the_required_functions_is_named_with_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = shared_library(tmp_path, "libgopher-orch.so.0.9.9", functions("gopher_orch_agent_run"))
    monkeypatch.setenv(PATH, str(path))
    text = failure()
    assert f"{path} (version 0.9.9)" in text
    assert "gopher_orch_agent_create_by_json" in text


def test_a_missing_shared_library_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    needed = shared_library(tmp_path, "libnever-there.so.7", functions("never"))
    path = shared_library(tmp_path, "libgopher-orch.so.0.9.9", functions("orch", calls=("never",)), needs=(needed,))
    needed.unlink()
    monkeypatch.setenv(PATH, str(path))
    text = failure()
    assert "libnever-there.so.7: cannot open shared object file" in text
    assert "shared libraries missing here: libnever-there.so.7" in text


def test_a_package_without_openssl_says_where_it_looked_and_how_to_go_on(tmp_path: Path, openssl11: Path) -> None:
    code = "from gopher_mcp_python.native import load\nload()"
    done = children.python(code, env={"PYTHONPATH": _with_package(), "GOPHER_MCP_OPENSSL11_PATH": str(tmp_path)})
    text = done.err
    assert done.code == 1 and "AgentError: No usable libgopher-orch was found" in text
    assert "shared libraries missing here: libcrypto.so.1.1, libssl.so.1.1" in text
    assert "OpenSSL 1.1, which it needs, was looked for in:" in text
    assert f"  - GOPHER_MCP_OPENSSL11_PATH: {tmp_path}: no libcrypto.so.1.1" in text
    assert "GOPHER_MCP_OPENSSL11_PATH (a file or a folder) names one elsewhere." in text
    assert text.splitlines()[-1].startswith("Next: ")


def _with_package(version: str = vendor.NEWEST) -> str:
    return os.pathsep.join([str(vendor.package(version)), children.environment()["PYTHONPATH"]])


def test_an_openssl_that_the_loader_refuses_is_reported(tmp_path: Path, vendor_library: Path) -> None:
    """Whole libraries with the right names, of which one needs another that is not there."""
    needed = shared_library(tmp_path, "libnever-there.so.7", functions("never"))
    shared_library(tmp_path, "libssl.so.1.1", functions("ssl"))
    shared_library(tmp_path, "libcrypto.so.1.1", functions("crypto", calls=("never",)), needs=(needed,))
    needed.unlink()
    code = "from gopher_mcp_python.native import load\nload()"
    done = children.python(code, env={PATH: str(vendor_library), "GOPHER_MCP_OPENSSL11_PATH": str(tmp_path)})
    assert done.code == 1
    assert f"GOPHER_MCP_OPENSSL11_PATH: {tmp_path} (version 1.1): could not be opened: libnever-there.so.7" in done.err


@pytest.mark.parametrize("broken", ["libgopher-orch.so.0.1.39", "libgopher-mcp.so.0", "libcurl.so.4"])
def test_a_library_that_was_cut_short_is_refused_and_not_opened(
    tmp_path: Path, vendor_library: Path, openssl11: Path, broken: str
) -> None:
    """The loader would end the process with a bus error."""
    lib = tmp_path / "lib"
    lib.mkdir()
    for file in vendor_library.parent.iterdir():
        (lib / file.name).symlink_to(file)
    content = (lib / broken).read_bytes()
    (lib / broken).unlink()
    (lib / broken).write_bytes(content[: len(content) // 2])
    code = "from gopher_mcp_python.native import load\nload()"
    environ = {PATH: str(lib / "libgopher-orch.so.0.1.39"), "GOPHER_MCP_OPENSSL11_PATH": str(openssl11)}
    done = children.python(code, env=environ)
    assert done.code == 1
    assert "AgentError" in done.err and "cut short or damaged ELF file" in done.err


def test_the_remedy_on_a_platform_without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(names, "current", lambda: names.Platform("linux", "riscv64"))
    assert failure().splitlines()[-1] == "Next: export GOPHER_MCP_ENGINE=embedded"


# ---- Remembered -----------------------------------------------------------------------------------------------------


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Counts searches, which find nothing."""
    monkeypatch.setenv(PATH, str(tmp_path / "nowhere"))
    made: list[int] = []
    real = search.find

    def find() -> object:
        made.append(1)
        return real()

    monkeypatch.setattr(search, "find", find)
    return made


def test_a_failed_load_is_remembered(searches: list[int]) -> None:
    assert failure() == failure()
    assert len(searches) == 1
    assert native.loaded() is None


def test_a_failed_load_can_be_forgotten(searches: list[int]) -> None:
    failure()
    native.forget()
    failure()
    assert len(searches) == 2


def test_an_interrupted_load_is_not_remembered(searches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    real, interrupts = loading._open_first_usable, [KeyboardInterrupt()]

    def interrupted(report: loading.Report) -> loading.LoadedLibrary | None:
        if interrupts:
            raise interrupts.pop()
        return real(report)

    monkeypatch.setattr(loading, "_open_first_usable", interrupted)
    with pytest.raises(KeyboardInterrupt):
        native.load()
    assert "no such file or folder" in failure()
    assert len(searches) == 2


def test_threads_that_load_together_search_once(searches: list[int]) -> None:
    texts: list[str] = []
    threads = [threading.Thread(target=lambda: texts.append(failure())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(texts) == 8 and len(set(texts)) == 1 and len(searches) == 1


def test_a_good_load_is_remembered(native_environment: dict[str, str]) -> None:
    code = """
from gopher_mcp_python import native
first = native.load()
assert native.load() is first is native.loaded()
native.forget()
assert native.load() is first
print(first.library.path, first.version, first.report.chosen.found_via, first.report.missing)
"""
    done = children.python(code, env=native_environment).check()
    assert done.out.split() == [native_environment[PATH], "0.1.39", PATH, "[]"]


def test_a_child_of_a_process_that_is_loading_does_not_wait_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    code = """
import os
from gopher_mcp_python.native import loading
loading._lock.acquire()
child = os.fork()
if child == 0:
    os._exit(0 if loading._lock.acquire(timeout=5) else 1)
print(os.waitpid(child, 0)[1])
"""
    assert children.python(code).check().out == "0\n"


# ---- A library of unknown version -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "guess"), [('"No MCP elicitation callback configured"', True), ('"something else"', False)]
)
def test_a_file_without_version_is_judged_by_a_guess_that_is_said_to_be_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, guess: bool, caplog: pytest.LogCaptureFixture
) -> None:
    exported = [f"gopher_orch_agent_{name}" if "create" in name else f"gopher_orch_{name}" for name in REQUIRED]
    source = functions(*exported, "gopher_orch_agent_create_by_json_with_options") + f"\nconst char *said = {text};\n"
    path = shared_library(tmp_path, "libgopher-orch.so", source)
    monkeypatch.setenv(PATH, str(path))
    with caplog.at_level(logging.WARNING):
        opened = native.load()
    assert "a guess" in caplog.text and "Next: name the file with its version" in caplog.text
    assert opened.version is None and opened.verdict.status == "unknown" and not opened.verdict.certain
    assert opened.supports_elicitation is guess and opened.retry_fix is False
    assert "a guess" in opened.verdict.summary


# ---- Log level ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "level"),
    [
        ({}, 4), ({"DEBUG": ""}, 4), ({"DEBUG": "0"}, 4), ({"DEBUG": "false"}, 4), ({"DEBUG": "1"}, 1),
        ({"GOPHER_MCP_LOG_LEVEL": "0"}, 0), ({"GOPHER_MCP_LOG_LEVEL": "8"}, 8), ({"GOPHER_MCP_LOG_LEVEL": "99"}, 8),
        ({"GOPHER_MCP_LOG_LEVEL": "Warning"}, 3), ({"GOPHER_MCP_LOG_LEVEL": " off "}, 8),
        ({"GOPHER_MCP_LOG_LEVEL": "info", "DEBUG": "1"}, 2),
    ],
)  # fmt: skip
def test_the_log_level(environ: dict[str, str], level: int) -> None:
    assert loading.log_level(environ) == level


def test_an_unknown_log_level_is_said_and_errors_stay_the_default(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert loading.log_level({"GOPHER_MCP_LOG_LEVEL": "chatty"}) == 4
    assert "GOPHER_MCP_LOG_LEVEL: 'chatty' is neither 0 to 8 nor one of trace, debug" in caplog.text
