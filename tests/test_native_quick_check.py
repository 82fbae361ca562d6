"""The check at import: what it says, that it opens nothing, and that it takes no time."""

from __future__ import annotations

import json
import os
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import names, openssl11, packages, quick_check
from tests.support import children, vendor

PACKAGE = "gopher-mcp-python-native-linux-x64"
FOLDER = PACKAGE.replace("-", "_")


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A site folder of the test's own, on a Linux x86-64 without OpenSSL 1.1."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setattr(names, "current", lambda: names.Platform("linux", "x64"))
    monkeypatch.setattr(openssl11, "is_somewhere", lambda platform: False)
    return folder


def install(site: Path, version: str) -> Path:
    """Puts the vendor's package of that version into the site folder."""
    (site / FOLDER).symlink_to(vendor.package(version) / FOLDER)
    (site / f"{FOLDER}-{version}.dist-info").mkdir()
    return site / FOLDER / "lib"


def test_without_a_native_package_there_is_nothing_to_say(site: Path) -> None:
    assert quick_check() is None


def test_missing_shared_libraries_are_named_with_the_next_command(site: Path, vendor_library: Path) -> None:
    install(site, vendor.NEWEST)
    assert quick_check() == (
        f"The installed native package {PACKAGE} can't load here: shared libraries are missing: libcrypto.so.1.1, "
        "libssl.so.1.1 (a folder that has them can be named in GOPHER_MCP_OPENSSL11_PATH). Next: " + openssl11.remedy()
    )


def test_with_an_openssl_in_a_known_place_all_is_well(
    site: Path, vendor_library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(site, vendor.NEWEST)
    monkeypatch.setattr(openssl11, "is_somewhere", lambda platform: True)
    assert quick_check() is None


def test_another_missing_library_is_named(site: Path, vendor_library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lib = site / FOLDER / "lib"
    shutil.copytree(vendor_library.parent, lib, ignore=shutil.ignore_patterns("libgopher-mcp-logging.so"))
    monkeypatch.setattr(openssl11, "is_somewhere", lambda platform: True)
    assert quick_check() == (
        f"The installed native package {PACKAGE} can't load here: shared libraries are missing: "
        "libgopher-mcp-logging.so. Next: export GOPHER_MCP_ENGINE=embedded"
    )


def test_a_damaged_file_beside_it_is_named(site: Path, vendor_library: Path) -> None:
    lib = site / FOLDER / "lib"
    shutil.copytree(vendor_library.parent, lib)
    os.truncate(lib / "libgopher-mcp.so.0", 100_000)
    text = quick_check()
    assert text and "can't be used: libgopher-mcp.so.0: cut short or damaged ELF file" in text


@pytest.mark.parametrize("version", ["0.1.1", "0.1.34"])
def test_a_version_too_old_for_elicitation_is_said_so(
    site: Path, vendor_library_of: Callable[[str], Path], version: str
) -> None:
    vendor_library_of(version)
    install(site, version)
    assert quick_check() == (
        f"The installed native package {PACKAGE} has version {version}, too old for elicitation (0.1.35 or newer is "
        f"needed). Next: pip install --upgrade '{PACKAGE}>=0.1.38'"
    )


def test_the_version_comes_from_the_metadata_where_the_file_has_none(site: Path) -> None:
    (site / FOLDER / "lib").mkdir(parents=True)
    (site / FOLDER / "lib" / "libgopher-orch.so").write_bytes(Path(_bridge.__file__).read_bytes())
    (site / f"{FOLDER}-0.1.30.dist-info").mkdir()
    said = quick_check()
    assert said and "has version 0.1.30, too old for elicitation" in said


def test_a_package_for_another_platform_is_said_so(site: Path) -> None:
    (site / "gopher_mcp_python_native_darwin_arm64").mkdir()
    assert quick_check() == (
        "The installed native package gopher-mcp-python-native-darwin-arm64 is for another platform: this Python runs "
        "on linux x64. Next: pip uninstall gopher-mcp-python-native-darwin-arm64"
    )


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"MZ" + b"\0" * 58 + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", 0x8664),
         "can't be used: wrong platform: built for win32 x64, this Python runs on linux x64"),
        (b"", "empty file"),
        (Path(_bridge.__file__).read_bytes()[:5000], "can't be used: cut short or damaged ELF file"),
        (b"<html>a proxy's error page</html>", "not a shared library (neither ELF, Mach-O nor PE)"),
    ],
)  # fmt: skip
def test_a_file_that_can_not_serve_is_said_so(site: Path, content: bytes, said: str) -> None:
    (site / FOLDER / "lib").mkdir(parents=True)
    (site / FOLDER / "lib" / "libgopher-orch.so.0.1.39").write_bytes(content)
    text = quick_check()
    assert text and said in text and text.endswith(f"Next: pip install --force-reinstall {PACKAGE}")


def test_a_package_without_its_library_is_said_so(site: Path) -> None:
    (site / FOLDER).mkdir()
    assert quick_check() == (
        f"The installed native package {PACKAGE} holds no libgopher-orch.so.0. "
        f"Next: pip install --force-reinstall {PACKAGE}"
    )


@pytest.mark.parametrize("variable", [{"GOPHER_MCP_ENGINE": "embedded"}, {"GOPHER_MCP_ENGINE": " Embedded "},
                                      {names.PATH_VARIABLES[0]: "/x"}, {names.PATH_VARIABLES[1]: "/x"}])  # fmt: skip
def test_it_is_silent_when_the_package_is_not_wanted(
    site: Path, monkeypatch: pytest.MonkeyPatch, variable: dict[str, str]
) -> None:
    (site / FOLDER).mkdir()
    assert quick_check() is not None
    for name, value in variable.items():
        monkeypatch.setenv(name, value)
    assert quick_check() is None


def test_it_never_makes_an_import_fail(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(name: str) -> str:
        raise RuntimeError("something unforeseen")

    monkeypatch.setattr(packages, "package_folder", broken)
    assert quick_check() == "The native package could not be checked (something unforeseen). Next: gopher-mcp doctor"


# ---- In a real import -----------------------------------------------------------------------------------------------

_IMPORT = """
import json, sys, time, warnings
before = set(sys.modules)
with warnings.catch_warnings(record=True) as said:
    warnings.simplefilter("always")
    import gopher_mcp_python
    import gopher_mcp_python as again
loaded = sorted(set(sys.modules) - before)
from gopher_mcp_python.native import quick_check
times = []
for _ in range(20):
    start = time.thread_time()  # of this thread alone: a busy machine is no slow check
    quick_check()
    times.append(time.thread_time() - start)
with open("/proc/self/maps") as maps:
    opened = any("gopher-orch" in line for line in maps)
print(json.dumps({"said": [[type(one.message).__name__, str(one.message)] for one in said], "loaded": loaded,
                  "milliseconds": min(times) * 1000, "opened": opened}))
"""


def import_with(version: str | None, **variables: str) -> dict[str, object]:
    folders = [str(vendor.package(version))] if version else []
    path = os.pathsep.join([*folders, children.environment()["PYTHONPATH"]])
    result: dict[str, object] = json.loads(children.python(_IMPORT, env={"PYTHONPATH": path, **variables}).check().out)
    return result


def test_an_import_warns_once_and_opens_nothing(vendor_library: Path, tmp_path: Path) -> None:
    found = import_with(vendor.NEWEST, GOPHER_MCP_OPENSSL11_PATH=str(tmp_path))
    ((category, text),) = found["said"]  # type: ignore[misc]
    assert category == "NativeMismatchWarning" and "libcrypto.so.1.1, libssl.so.1.1" in text
    assert not found["opened"]
    assert found["milliseconds"] < 3  # type: ignore[operator]


def test_a_package_that_works_is_imported_in_silence(vendor_library: Path, openssl11: Path) -> None:
    found = import_with(vendor.NEWEST, GOPHER_MCP_OPENSSL11_PATH=str(openssl11))
    assert found["said"] == [] and not found["opened"]
    assert found["milliseconds"] < 3  # type: ignore[operator]


def test_the_embedded_engine_silences_it(vendor_library: Path, tmp_path: Path) -> None:
    assert (
        import_with(vendor.NEWEST, GOPHER_MCP_ENGINE="embedded", GOPHER_MCP_OPENSSL11_PATH=str(tmp_path))["said"] == []
    )


def test_without_a_package_the_check_imports_next_to_nothing() -> None:
    found = import_with(None)
    loaded: list[str] = found["loaded"]  # type: ignore[assignment]
    mine = [name for name in loaded if name.startswith("gopher_mcp_python.native")]
    assert mine == [f"gopher_mcp_python.native{part}" for part in ("", ".names", ".packages", ".quick")]
    assert found["said"] == []
    assert found["milliseconds"] < 1  # type: ignore[operator]


@pytest.mark.parametrize(("kind", "why"), [("folder", "Is a directory"), ("link", "No such file or directory")])
def test_a_library_that_is_no_file_is_told_with_its_remedy(site: Path, kind: str, why: str) -> None:
    lib = site / FOLDER / "lib"
    lib.mkdir(parents=True)
    (lib.parent / "__init__.py").touch()
    library = lib / "libgopher-orch.so.0.1.39"
    library.mkdir() if kind == "folder" else library.symlink_to(site / "nowhere")
    assert quick_check() == (
        f"The installed native package {PACKAGE} can't be used: libgopher-orch.so.0.1.39 can't be read ({why}). "
        f"Next: pip install --force-reinstall {PACKAGE}"
    )
