"""Every published version: the extracted table, the verdicts, and some of the libraries opened for real."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import compat, names, versions
from tests.support import children, vendor

ROOT = Path(__file__).resolve().parent.parent
# What stands here is the expectation; the facts that it is compared with come from the wheels.
EXPECTED = {
    # package     file       status     elicit retry  options events by_url openssl 1.1 from the host
    "0.1.1": ("0.1.1", "too_old", False, False, False, False, False, False),
    "0.1.2": ("0.1.2", "too_old", False, False, False, False, False, False),
    "0.1.2.1": ("0.1.2", "too_old", False, False, False, False, False, False),
    "0.1.14": ("0.1.2", "too_old", False, False, False, False, False, False),
    "0.1.15": ("0.1.15", "too_old", False, False, False, False, False, False),
    "0.1.16": ("0.1.16", "too_old", False, False, False, False, False, False),
    "0.1.21": ("0.1.21", "too_old", False, False, False, False, False, False),
    "0.1.23": ("0.1.23", "too_old", False, False, False, False, True, False),
    "0.1.30": ("0.1.30", "too_old", False, False, True, False, True, False),
    "0.1.34": ("0.1.34", "too_old", False, False, True, True, True, True),
    "0.1.38": ("0.1.38", "good", True, True, True, True, True, True),
    "0.1.39": ("0.1.39", "good", True, True, True, True, True, True),
}


def test_the_table_has_all_twelve() -> None:
    assert list(versions.table()) == list(EXPECTED)
    assert versions.newest() == compat.HEADER_VERSION


@pytest.mark.parametrize("version", EXPECTED)
def test_the_verdict_on_each_published_version(version: str) -> None:
    entry = versions.table()[version]
    found = compat.verdict(
        compat.HEADER_VERSION,
        entry.file_version,
        None,
        "0.2.0",
        symbols=entry.symbols,
        source="file name",
        required=[symbol.name for symbol in _bridge.symbol_table() if symbol.required],
    )
    assert (
        entry.file_version,
        found.status,
        found.elicitation,
        found.retry_fix,
        found.options,
        found.events,
        found.create_by_url,
        "libcrypto.so.1.1" in entry.from_host,
    ) == EXPECTED[version]
    assert found.usable and found.certain
    # Independent evidence: the messages that the library sends when there is no callback.
    assert found.elicitation == entry.elicitation_text


def test_no_published_version_says_itself_whether_it_supports_elicitation() -> None:
    assert not any(name.endswith(compat.SUPPORT) for entry in versions.table().values() for name in entry.symbols)


def test_the_bridges_table_has_the_right_since_versions() -> None:
    for symbol in _bridge.symbol_table():
        assert (symbol.since or None) == versions.first_version_with(symbol.name), symbol.name


def test_the_bridge_knows_every_function_of_the_newest_version() -> None:
    known = {symbol.name for symbol in _bridge.symbol_table()}
    assert versions.table()[versions.newest()].symbols <= known


def test_required_functions_are_in_every_published_version() -> None:
    for symbol in _bridge.symbol_table():
        if symbol.required:
            assert all(symbol.name in entry.symbols for entry in versions.table().values()), symbol.name


@pytest.mark.source_tree
def test_the_header_states_the_same_since_versions() -> None:
    header = (ROOT / "include" / "gopher_orch" / "gopher_orch.h").read_text()
    event = re.search(r"/\* One event of a run\.[^/]*Since (\d+\.\d+\.\d+)", header)
    assert event and event[1] == versions.first_version_with("gopher_orch_agent_set_event_callback")


@pytest.mark.parametrize("version", ["0.1.2", "0.1.39"])
def test_a_build_id_tells_the_version(version: str) -> None:
    assert versions.version_of_build(versions.table()[version].build_id) == version
    assert versions.version_of_build("0" * 40) is None and versions.version_of_build(None) is None


# ---- The wheels themselves ------------------------------------------------------------------------------------------

OPENED = ["0.1.1", "0.1.34", "0.1.38", "0.1.39"]

_OPEN = """
import json, sys
from gopher_mcp_python.native import load
opened = load()
import sqlite3
sqlite3.connect(":memory:").execute("select 1")
print(json.dumps({"version": opened.version, "elicitation": opened.supports_elicitation,
    "events": opened.supports_events, "retry_fix": opened.retry_fix, "status": opened.verdict.status,
    "symbols": sorted(name for name, there in opened.library.symbols().items() if there)}))
"""


def _libraries_of_the_host_for(version: str, openssl11: Path, tmp_path: Path) -> dict[str, str]:
    """0.1.1 brings nothing along; the libevent_pthreads that it wants is taken from the newest wheel."""
    environ = {"GOPHER_MCP_OPENSSL11_PATH": str(openssl11)}
    if version == "0.1.1":
        name = "libevent_pthreads-2.1.so.7"
        (tmp_path / name).symlink_to(vendor.library(vendor.NEWEST).with_name(name))
        environ["LD_LIBRARY_PATH"] = str(tmp_path)
    return environ


@pytest.mark.parametrize("version", OPENED)
def test_a_published_version_opens_for_real(
    vendor_library_of: Callable[[str], Path], openssl11: Path, version: str, tmp_path: Path
) -> None:
    path = vendor_library_of(version)
    environ = _libraries_of_the_host_for(version, openssl11, tmp_path)
    done = children.python(_OPEN, env={**environ, names.PATH_VARIABLES[0]: str(path)}).check()
    assert done.err == "", "errors only by default"
    entry, found = versions.table()[version], json.loads(done.out)
    assert found["symbols"] == sorted(entry.symbols)
    _, status, elicitation, retry_fix, _, events, _, _ = EXPECTED[version]
    assert found["version"] == version and found["status"] == status
    assert (found["elicitation"], found["retry_fix"], found["events"]) == (elicitation, retry_fix, events)


@pytest.mark.source_tree
@pytest.mark.parametrize("version", OPENED)
def test_the_table_is_what_the_wheel_holds(vendor_library_of: Callable[[str], Path], version: str) -> None:
    vendor_library_of(version)
    script = ROOT / "scripts" / "native_versions.py"
    code = (
        f"import sys, json; sys.path.insert(0, {str(script.parent)!r}); import native_versions as script\n"
        f"print(json.dumps(script.extract({version!r})))"
    )
    row = json.loads(children.python(code, env={"GOPHER_MCP_TEST_CACHE": str(vendor.cache())}).check().out)
    entry = versions.table()[version]
    for name, value in row.items():
        mine = getattr(entry, name)
        assert (sorted(mine) if isinstance(mine, (frozenset, tuple)) else mine) == (
            sorted(value) if isinstance(value, list) else value
        ), name


@pytest.mark.long
@pytest.mark.source_tree
def test_the_whole_table_is_what_the_package_index_offers() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "native_versions.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        env=children.environment(),
    )
    assert done.returncode == 0, done.stdout + done.stderr
