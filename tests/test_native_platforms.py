"""The vendor's six published packages as they are: the loader looks for the files that are in them, and what it says of
OpenSSL and of missing libraries is what the files import. Two readers by others are the judges of ours."""

from __future__ import annotations

import os
import re
import shutil
import struct
import zipfile
from pathlib import Path, PureWindowsPath

import pytest
from macholib.MachO import MachO
from pefile import PE

from gopher_mcp_python.native import binary, elf, imports, loading, names, needs, needs_elsewhere, openssl11, search
from gopher_mcp_python.native.filebytes import BadLibrary
from gopher_mcp_python.native.ldcache import Resolver
from gopher_mcp_python.native.names import Platform
from gopher_mcp_python.native.report import Attempt, Report
from tests.support import vendor

PLATFORMS = [Platform(os, arch) for os in ("linux", "darwin", "win32") for arch in ("x64", "arm64")]
NEWEST = {
    "linux": f"libgopher-orch.so.{vendor.NEWEST}",
    "darwin": f"libgopher-orch.{vendor.NEWEST}.dylib",
    "win32": "libgopher-orch.dll",
}
ASKED_FOR = {  # of those that the loader asks the system for, best first, what the package holds
    "linux": ["libgopher-orch.so.0", "libgopher-orch.so"],
    "darwin": ["libgopher-orch.0.dylib", "libgopher-orch.dylib"],
    "win32": ["libgopher-orch.dll"],
}
# Imported by the published DLLs, in no package and on no fresh Windows.
NOWHERE = {
    "x64": {
        "gopher-mcp.dll", "gopher-mcp-event.dll", "gopher-mcp-logging.dll",
        "libwinpthread-1.dll", "libgcc_s_seh-1.dll", "libstdc++-6.dll",
    },
    "arm64": {"gopher-mcp.dll", "gopher-mcp-logging.dll", "libc++.dll", "libunwind.dll"},
}  # fmt: skip
WINDOWS_OWN = {"advapi32.dll", "bcrypt.dll", "crypt32.dll", "kernel32.dll", "msvcrt.dll", "user32.dll", "ws2_32.dll"}
OPENSSL = re.compile(r"lib(crypto|ssl|eay)|ssleay", re.IGNORECASE)


def only(*systems: str) -> pytest.MarkDecorator:
    """Runs a test for the packages of these systems alone."""
    chosen = [platform for platform in PLATFORMS if platform.os in systems]
    return pytest.mark.parametrize("platform", chosen, indirect=True, ids=lambda platform: platform.tag)


@pytest.fixture(scope="module", params=PLATFORMS, ids=lambda platform: platform.tag)
def platform(request: pytest.FixtureRequest) -> Platform:
    value: Platform = request.param
    return value


@pytest.fixture(scope="module")
def site(platform: Platform, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site folder with the vendor's package for the platform, as pip would leave it."""
    try:
        archive = vendor.wheel_of(platform.distribution)
    except vendor.Unavailable as why:
        vendor.absent(str(why))
    folder = tmp_path_factory.mktemp(platform.tag)
    with zipfile.ZipFile(archive) as opened:
        opened.extractall(folder)
    return folder


@pytest.fixture(scope="module")
def lib(platform: Platform, site: Path) -> Path:
    return site / platform.package / "lib"


@pytest.fixture
def windows(tmp_path: Path) -> dict[str, str]:
    """The variables of a fresh Windows, with its own libraries as empty files."""
    (tmp_path / "System32").mkdir()
    for name in WINDOWS_OWN:
        (tmp_path / "System32" / name).touch()
    return {"SystemRoot": str(tmp_path), "PATH": ""}


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def imported(file: Path, platform: Platform) -> list[str]:
    """Names that the file imports, read by our readers."""
    if platform.os == "linux":
        return elf.read(str(file)).needed
    if platform.os == "darwin":
        return imports.of_dylib(str(file), platform.arch).libraries
    return imports.of_dll(str(file))


# ---- Names ----------------------------------------------------------------------------------------------------------


def test_the_library_is_found_under_its_name(platform: Platform, lib: Path) -> None:
    assert names.best_in_folder(listing(lib), platform)[0] == NEWEST[platform.os]
    assert [name for name in names.loader_names(platform) if (lib / name).is_file()] == ASKED_FOR[platform.os]
    orch = [name for name in listing(lib) if "gopher-orch" in name]
    assert orch and all(names.is_library_name(name, platform) for name in orch)
    assert binary.platforms_of(str(lib / NEWEST[platform.os])) == [platform]


def test_the_search_takes_it_out_of_the_package(
    platform: Platform, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(site))
    report = search.find(platform, {})
    chosen = report.chosen
    assert chosen and chosen.version == vendor.NEWEST
    assert Path(chosen.path) == site / platform.package / "lib" / NEWEST[platform.os]
    assert (report.package, report.package_version) == (platform.distribution, vendor.NEWEST)
    # Windows' file has no version in its name: its package tells.
    assert chosen.version_source == ("native package" if platform.os == "win32" else "file name")


# ---- Imports --------------------------------------------------------------------------------------------------------


@only("darwin", "win32")
def test_imports_are_read_as_others_read_them(platform: Platform, lib: Path) -> None:
    files = [path for path in sorted(lib.iterdir()) if path.suffix in (".dylib", ".dll")]
    assert files
    for file in files:
        if platform.os == "darwin":
            found = imports.of_dylib(str(file), platform.arch)
            (header,) = MachO(str(file)).headers
            judged = [name for _, kind, name in header.walkRelocatables() if kind != "load_weak_dylib"]
            rpaths = [text.rstrip(b"\0").decode() for command, _, text in header.commands if command.cmd == 0x8000001C]
            assert (found.libraries, found.rpaths) == (judged, rpaths), file.name
        else:
            judged = [entry.dll.decode() for entry in PE(str(file), fast_load=False).DIRECTORY_ENTRY_IMPORT]
            assert imports.of_dll(str(file)) == judged


def test_openssl_is_looked_for_in_the_version_that_is_imported(platform: Platform, lib: Path) -> None:
    """Linux packages import 1.1 and do not bring it: so that is searched. macOS' bring 3; Windows' need none."""
    wanted = {Path(name).name for file in lib.iterdir() for name in imported(file, platform)}
    openssl = {name for name in wanted if OPENSSL.match(name)}
    if platform.os == "linux":
        assert openssl == set(openssl11.library_names(platform))
        assert not openssl & set(listing(lib))
    elif platform.os == "darwin":
        assert openssl == {"libcrypto.3.dylib", "libssl.3.dylib"}
        assert openssl <= set(listing(lib))
    else:
        assert openssl == set()


def test_what_is_missing_beside_it_is_named(platform: Platform, lib: Path, windows: dict[str, str]) -> None:
    library = str(lib / NEWEST[platform.os])
    if platform.os == "linux":
        found = needs.of(library, Resolver("no such architecture", cache="/nowhere"))
        assert set(openssl11.library_names(platform)) <= found.seen
        assert "libgopher-mcp.so.0" not in found.missing and not found.damaged
    elif platform.os == "darwin":
        found = needs_elsewhere.of_dylib(library, platform.arch, {})
        assert (found.missing, found.damaged) == ([], [])
        assert {"libcrypto.3.dylib", "libssl.3.dylib", "libcurl.4.dylib", "libSystem.B.dylib"} <= found.seen
    else:
        found = needs_elsewhere.of_dll(library, windows)
        assert set(found.missing) == NOWHERE[platform.arch] and not found.damaged


# ---- What is said ---------------------------------------------------------------------------------------------------


@pytest.fixture
def as_platform(monkeypatch: pytest.MonkeyPatch, platform: Platform, site: Path, windows: dict[str, str]) -> Platform:
    """This process takes itself for one on the platform, with the native package installed."""
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.setattr(names, "current", lambda: platform)
    for variable in (*names.PATH_VARIABLES, "GOPHER_MCP_ENGINE", "CONDA_PREFIX"):
        monkeypatch.delenv(variable, raising=False)
    if platform.os == "win32":
        for variable, value in windows.items():
            monkeypatch.setenv(variable, value)
    return platform


@only("darwin", "win32")
def test_the_check_at_import_says_it(as_platform: Platform) -> None:
    from gopher_mcp_python.native import quick_check

    said = quick_check()
    if as_platform.os == "darwin":
        assert said is None
    else:
        assert said and all(name in said for name in NOWHERE[as_platform.arch]) and "OPENSSL" not in said
        assert said.endswith("Next: set GOPHER_MCP_ENGINE=embedded")


@only("darwin")
def test_a_package_that_lost_a_library_is_to_be_installed_again(
    as_platform: Platform, lib: Path, tmp_path: Path
) -> None:
    """Only macOS' packages name what lies beside them by its place."""
    broken = shutil.copytree(lib, tmp_path / "lib")
    (broken / "libssl.3.dylib").unlink()
    (broken / "libcurl.4.dylib").write_bytes((lib / "libcurl.4.dylib").read_bytes()[:600])
    library = str(broken / NEWEST["darwin"])
    found = needs.find(library, as_platform)
    assert f"libssl.3.dylib: not in {broken}" in found.damaged
    assert any(text.startswith("libcurl.4.dylib: cut short or damaged Mach-O file") for text in found.damaged)
    elsewhere = needs_elsewhere.of_dylib(library, as_platform.arch, {"DYLD_LIBRARY_PATH": str(lib)})
    assert not [text for text in elsewhere.damaged if text.startswith("libssl")]


def test_windows_folders_are_added_before_the_library_is_opened(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, windows: dict[str, str]
) -> None:
    """The library's own folder and OpenSSL's, as os.add_dll_directory takes them, before anything is opened."""
    for variable, value in windows.items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setattr(names, "current", lambda: Platform("win32", "x64"))
    steps: list[str] = []
    monkeypatch.setattr(os, "add_dll_directory", lambda folder: steps.append(f"add {folder}"), raising=False)
    (tmp_path / "openssl").mkdir()
    (tmp_path / "lib").mkdir()
    crypto, ssl = openssl11.library_names(Platform("win32", "x64"))
    assert (crypto, ssl) == ("libcrypto-1_1-x64.dll", "libssl-1_1-x64.dll")
    for name in (crypto, ssl):
        (tmp_path / "openssl" / name).write_bytes(dll())
    library = tmp_path / "lib" / "gopher-orch.dll"
    library.write_bytes(dll("KERNEL32.dll", crypto, ssl))
    monkeypatch.setenv(openssl11.VARIABLE, str(tmp_path / "openssl"))
    report = Report()
    loading.prepare(Attempt("package", str(library)), report, lambda path: steps.append(f"open {path}"))
    assert report.missing == []
    folder = tmp_path / "openssl"
    assert steps == [f"add {tmp_path / 'lib'}", f"add {folder}", f"open {folder / crypto}", f"open {folder / ssl}"]


def test_openssl_11_of_homebrew_is_looked_for_where_it_was() -> None:
    for arch, prefix in (("arm64", "/opt/homebrew"), ("x64", "/usr/local")):
        tried = [attempt.path for attempt in openssl11.find(Platform("darwin", arch), environ={})]
        assert f"{prefix}/opt/openssl@1.1/lib" in tried
    assert openssl11.library_names(Platform("darwin", "arm64")) == ("libcrypto.1.1.dylib", "libssl.1.1.dylib")


def test_openssl_11_of_windows_is_named_by_its_processor() -> None:
    assert openssl11.library_names(Platform("win32", "arm64")) == ("libcrypto-1_1-arm64.dll", "libssl-1_1-arm64.dll")
    for arch, folder in (("x64", "OpenSSL-Win64"), ("arm64", "OpenSSL-Win64-ARM")):
        tried = [attempt.path for attempt in openssl11.find(Platform("win32", arch), environ={})]
        assert PureWindowsPath(tried[-1]) == PureWindowsPath(rf"C:\Program Files\{folder}\bin")


# ---- Damaged files --------------------------------------------------------------------------------------------------


def dll(*imported: str) -> bytes:
    """A PE file for x64 of one section, which holds its import table."""
    base, table = 0x1000, b""
    names_at = base + 20 * (len(imported) + 1)
    for name in imported:
        table += struct.pack("<5I", 0, 0, 0, names_at, 0)
        names_at += len(name) + 1
    section = table + bytes(20) + b"".join(name.encode() + b"\0" for name in imported)
    optional = struct.pack("<H106xI", 0x20B, 16) + struct.pack("<4I", 0, 0, base if imported else 0, len(table))
    optional += bytes(112 + 128 - len(optional))
    coff = struct.pack("<4sHH12xHH", b"PE\0\0", 0x8664, 1, len(optional), 0)
    at = 64 + len(coff) + len(optional) + 40
    mapped = struct.pack("<8s4I16x", b".idata", len(section), base, len(section), at)
    return b"MZ" + bytes(58) + struct.pack("<I", 64) + coff + optional + mapped + section


def test_no_damage_does_more_than_say_so(tmp_path: Path) -> None:
    """Cut anywhere, or with any byte of its headers changed, a file is read or refused with a sentence."""
    whole = dll("KERNEL32.dll", "gopher-mcp.dll")
    file = tmp_path / "a.dll"
    file.write_bytes(whole)
    assert imports.of_dll(str(file)) == ["KERNEL32.dll", "gopher-mcp.dll"]
    refused = []
    damaged = [whole[:size] for size in range(len(whole) - len("gopher-mcp.dll") - 1)]
    damaged += [whole[:at] + b"\xff" + whole[at + 1 :] for at in range(len(whole))]
    for content in damaged:
        file.write_bytes(content)
        try:
            imports.of_dll(str(file))
        except BadLibrary as error:
            refused.append(str(error))
    assert len(refused) > len(whole) // 2
    assert all(text.startswith(f"{file}: ") for text in refused)


def test_a_damaged_dylib_is_said_to_be_one(tmp_path: Path) -> None:
    header = b"\xcf\xfa\xed\xfe" + struct.pack("<7I", 0x0100000C, 0, 6, 1, 24, 0, 0)
    load = struct.pack("<6I", 0xC, 24, 24, 0, 0, 0)
    file = tmp_path / "a.dylib"
    for content in (
        header,
        header[:20],
        header + struct.pack("<6I", 0xC, 4, 0, 0, 0, 0),
        b"\xca\xfe\xba\xbe" + bytes(4),
    ):
        file.write_bytes(content)
        with pytest.raises(BadLibrary, match=r"a\.dylib: "):
            imports.of_dylib(str(file), "arm64")
    file.write_bytes(header + load)
    assert imports.of_dylib(str(file), "arm64").libraries == [""]
    fat = struct.pack(">II5I", 0xCAFEBABE, 1, 0x0100000C, 0, 28, len(header + load), 0)
    file.write_bytes(fat + header + load)
    assert imports.of_dylib(str(file), "arm64").libraries == [""]
    with pytest.raises(BadLibrary, match="holds nothing for x64"):
        imports.of_dylib(str(file), "x64")
