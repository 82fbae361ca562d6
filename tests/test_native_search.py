"""Where the library is looked for, in which order, and what is said of each place."""

from __future__ import annotations

import struct
import sys
from pathlib import Path

import pytest

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import ldcache, names, openssl11, packages, search
from gopher_mcp_python.native.names import Platform
from gopher_mcp_python.native.report import Attempt, Report

LINUX, MAC, WINDOWS = Platform("linux", "x64"), Platform("darwin", "arm64"), Platform("win32", "x64")
ELF = Path(_bridge.__file__).read_bytes()  # a whole library of this machine
MACHO = b"\xcf\xfa\xed\xfe" + struct.pack("<I", 0x0100000C) + b"\0" * 24
PE = b"MZ" + b"\0" * 58 + struct.pack("<I", 64) + b"PE\0\0" + struct.pack("<H", 0x8664)
CONTENT = {"linux": ELF, "darwin": MACHO, "win32": PE}
FIRST, SECOND = names.PATH_VARIABLES


@pytest.fixture(autouse=True)
def no_packages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A site folder of the test's own, and a machine without a native package."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site)])
    return site


def fill(folder: Path, platform: Platform, *files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for file in files:
        (folder / file).write_bytes(CONTENT[platform.os])
    return folder


def package(site: Path, platform: Platform, version: str, *files: str) -> Path:
    folder = site / platform.package
    fill(folder / "lib", platform, *files)
    (folder / "__init__.py").write_text("raise AssertionError('the native package must not be imported')\n")
    (site / f"{platform.package}-{version}.dist-info").mkdir()
    return folder


def place(report: Report, via: str) -> Attempt:
    return next(attempt for attempt in report.attempts if attempt.found_via == via)


# ---- Names ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "name", "version"),
    [
        (LINUX, "libgopher-orch.so", None),
        (LINUX, "libgopher-orch.so.0", None),
        (LINUX, "libgopher-orch.so.0.1.39", "0.1.39"),
        (LINUX, "libgopher-orch.so.0.1.2.1", "0.1.2.1"),
        (MAC, "libgopher-orch.dylib", None),
        (MAC, "libgopher-orch.0.dylib", None),
        (MAC, "libgopher-orch.0.1.39.dylib", "0.1.39"),
        (WINDOWS, "libgopher-orch.dll", None),
        (WINDOWS, "gopher-orch.dll", None),
        (WINDOWS, "gopher-orch-0.1.39.dll", "0.1.39"),
        (WINDOWS, "LibGopher-Orch.DLL", None),
    ],
)
def test_library_names_and_their_versions(platform: Platform, name: str, version: str | None) -> None:
    assert names.is_library_name(name, platform)
    assert names.version_in_name(name, platform) == version


@pytest.mark.parametrize(
    ("platform", "name"),
    [
        (LINUX, "libgopher-orch.so.bak"), (LINUX, "libgopher-orch.so.0.1.x"), (LINUX, "libgopher-orch.so."),
        (LINUX, "libgopher-orch.dylib"), (LINUX, "libgopher-mcp.so.0"), (LINUX, "xlibgopher-orch.so"),
        (MAC, "libgopher-orch.so"), (MAC, "libgopher-orch-old.dylib"), (WINDOWS, "libgopher-orch.so"),
        (LINUX, "libgopher-orch.so.\u0661.2"),
    ],
)  # fmt: skip
def test_other_names_are_not_the_library(platform: Platform, name: str) -> None:
    assert not names.is_library_name(name, platform)


def test_versions_are_ordered_by_number() -> None:
    ordered = [None, "0.1.1", "0.1.2", "0.1.2.1", "0.1.9", "0.1.14", "0.1.39", "0.2", "0.10.0"]
    shuffled = ordered[::-1]
    assert sorted(shuffled, key=names.version_key) == ordered


@pytest.mark.parametrize(
    ("machine", "arch"),
    [("x86_64", "x64"), ("AMD64", "x64"), ("aarch64", "arm64"), ("ARM64", "arm64"), ("riscv64", "riscv64")],
)
def test_machine_names(machine: str, arch: str) -> None:
    assert names.normal_arch(machine) == arch


def test_this_platform_is_named_as_the_vendor_names_it() -> None:
    here = names.current()
    assert here.package == f"gopher_mcp_python_native_{here.os}_{here.arch}"
    assert here.distribution == here.package.replace("_", "-")


# ---- The variables --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "files", "best"),
    [
        (
            LINUX,
            ["libgopher-orch.so", "libgopher-orch.so.0.1.9", "libgopher-orch.so.0.1.39"],
            "libgopher-orch.so.0.1.39",
        ),
        (
            MAC,
            ["libgopher-orch.dylib", "libgopher-orch.0.1.39.dylib", "libgopher-orch.0.2.dylib"],
            "libgopher-orch.0.2.dylib",
        ),
        (WINDOWS, ["gopher-orch.dll", "gopher-orch-0.1.100.dll", "gopher-orch-0.1.99.dll"], "gopher-orch-0.1.100.dll"),
    ],
)
@pytest.mark.parametrize("inner", ["", "lib"])
def test_a_folder_gives_its_newest_version(
    tmp_path: Path, platform: Platform, files: list[str], best: str, inner: str
) -> None:
    folder = fill(tmp_path / "libs" / inner, platform, *files, "unrelated.txt")
    report = search.find(platform, {FIRST: str(tmp_path / "libs")})
    assert report.chosen is not None
    assert report.chosen.path == str(folder / best)
    assert report.chosen.found_via == FIRST
    assert report.chosen.version == names.version_in_name(best, platform)
    assert report.chosen.version_source == "file name"
    older = [attempt for attempt in report.attempts if attempt.reason == f"not looked at, {best} is newer"]
    assert len(older) == len([name for name in files if names.version_in_name(name, platform)]) - 1


def test_a_file_is_taken_as_it_is(tmp_path: Path) -> None:
    path = fill(tmp_path / "a", LINUX, "libgopher-orch.so.0.1.38") / "libgopher-orch.so.0.1.38"
    report = search.find(LINUX, {SECOND: str(path)})
    assert report.chosen == Attempt(SECOND, str(path), "0.1.38", "file name")
    assert place(report, FIRST).reason == "not set"


def test_a_link_has_the_version_of_the_file_it_leads_to(tmp_path: Path) -> None:
    folder = fill(tmp_path / "a", LINUX, "libgopher-orch.so.0.1.38")
    (folder / "current").symlink_to("libgopher-orch.so.0.1.38")
    report = search.find(LINUX, {FIRST: str(folder / "current")})
    assert report.chosen is not None and report.chosen.version == "0.1.38"


def test_the_first_variable_wins_and_the_second_is_reported(tmp_path: Path, no_packages: Path) -> None:
    one = fill(tmp_path / "one", LINUX, "libgopher-orch.so.0.1.38")
    two = fill(tmp_path / "two", LINUX, "libgopher-orch.so.0.1.39")
    package(no_packages, LINUX, "0.1.39", "libgopher-orch.so.0.1.39")
    report = search.find(LINUX, {FIRST: str(one), SECOND: str(two)})
    assert report.chosen is not None and report.chosen.version == "0.1.38"
    for via in (SECOND, "package", "loader"):
        assert place(report, via).reason == f"not looked at, {FIRST} is set"
    assert report.package_version == "0.1.39"


def test_a_variable_that_names_nothing_is_not_passed_over(tmp_path: Path, no_packages: Path) -> None:
    package(no_packages, LINUX, "0.1.39", "libgopher-orch.so.0.1.39")
    report = search.find(LINUX, {FIRST: str(tmp_path / "nowhere")})
    assert report.chosen is None
    assert place(report, FIRST).reason == "no such file or folder"
    assert report.overridden_by == FIRST


def test_an_empty_folder_says_what_it_lacks(tmp_path: Path) -> None:
    report = search.find(LINUX, {FIRST: str(tmp_path)})
    assert place(report, FIRST).reason == "no libgopher-orch.so.0 or libgopher-orch.so in this folder"


def test_an_empty_variable_is_no_variable(no_packages: Path) -> None:
    package(no_packages, LINUX, "0.1.39", "libgopher-orch.so.0.1.39")
    report = search.find(LINUX, {FIRST: "", SECOND: ""})
    assert report.chosen is not None and report.chosen.found_via == "package"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (MACHO, "wrong platform: built for darwin arm64, this Python runs on linux x64"),
        (PE, "wrong platform: built for win32 x64, this Python runs on linux x64"),
        (ELF[:5000], "cut short or damaged ELF file"),
        (b"", "empty file"),
        (b"not a library", "not a shared library (neither ELF, Mach-O nor PE)"),
    ],
)
def test_a_file_that_can_not_serve_says_why(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "libgopher-orch.so.0.1.39"
    path.write_bytes(content)
    report = search.find(LINUX, {FIRST: str(path)})
    assert report.chosen is None
    said = place(report, FIRST).reason
    assert said and said.startswith(reason)


# ---- Packages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("platform", "file", "version"),
    [
        (LINUX, "libgopher-orch.so.0.1.39", "0.1.39"),
        (MAC, "libgopher-orch.0.1.39.dylib", "0.1.39"),
        (WINDOWS, "libgopher-orch.dll", None),
    ],
)
def test_the_package_is_found_and_never_imported(
    no_packages: Path, platform: Platform, file: str, version: str | None
) -> None:
    folder = package(no_packages, platform, "0.1.39", file)
    report = search.find(platform, {})
    assert report.chosen is not None
    assert report.chosen.path == str(folder / "lib" / file) and report.chosen.found_via == "package"
    assert report.chosen.version == "0.1.39"
    assert report.chosen.version_source == ("file name" if version else "native package")
    assert (report.package, report.package_version) == (platform.distribution, "0.1.39")
    assert platform.package not in sys.modules


def test_without_a_package_it_says_what_is_not_installed() -> None:
    report = search.find(LINUX, {})
    assert place(report, "package").path == "gopher-mcp-python-native-linux-x64"
    assert place(report, "package").reason == "not installed"


def test_a_package_without_its_library_says_so(no_packages: Path) -> None:
    package(no_packages, LINUX, "0.1.39", "other.so")
    report = search.find(LINUX, {})
    assert place(report, "package").reason == "no libgopher-orch.so.0 or libgopher-orch.so in this folder"


def test_a_package_for_another_platform_is_reported(no_packages: Path) -> None:
    package(no_packages, MAC, "0.1.39", "libgopher-orch.dylib")
    report = search.find(LINUX, {})
    assert report.chosen is None
    (wrong,) = [attempt for attempt in report.attempts if attempt.path.endswith(MAC.package)]
    assert wrong.reason == "wrong platform: built for darwin arm64, this Python runs on linux x64"


def test_a_platform_without_a_package_says_so() -> None:
    report = search.find(Platform("linux", "riscv64"), {})
    assert place(report, "package").reason == "the vendor publishes none for linux riscv64"


def test_the_newest_metadata_counts(no_packages: Path) -> None:
    folder = package(no_packages, LINUX, "0.1.9", "libgopher-orch.so")
    (no_packages / f"{LINUX.package}-0.1.39.dist-info").mkdir()
    assert packages.package_version(str(folder)) == "0.1.39"


# ---- The loader -----------------------------------------------------------------------------------------------------


def test_the_loader_is_asked_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = fill(tmp_path / "ld", LINUX, "libgopher-orch.so.0")
    monkeypatch.setenv("LD_LIBRARY_PATH", str(folder))
    report = search.find(LINUX, {})
    assert report.attempts[-1].found_via == "loader"
    assert report.chosen is not None and report.chosen.path == str(folder / "libgopher-orch.so.0")
    assert report.chosen.version is None and report.chosen.version_source is None


def test_a_known_build_is_recognised_without_a_version_in_its_name(vendor_library: Path, tmp_path: Path) -> None:
    renamed = tmp_path / "libgopher-orch.so"
    renamed.symlink_to(vendor_library.with_name("libgopher-orch.so.0"))
    report = search.find(LINUX, {FIRST: str(renamed)})
    assert report.chosen is not None
    assert (report.chosen.version, report.chosen.version_source) == ("0.1.39", "build id")


def test_the_cache_agrees_with_ldconfig() -> None:
    import shutil
    import subprocess

    tool = shutil.which("ldconfig") or "/sbin/ldconfig"
    listed = {}
    for line in subprocess.run([tool, "-p"], check=True, capture_output=True, text=True).stdout.splitlines():
        name, arrow, path = line.strip().partition(" => ")
        if arrow and f"({'libc6,x86-64'})" in name:
            listed.setdefault(name.split(" ")[0], path)
    assert "libc.so.6" in listed
    assert ldcache.read_cache("x64") == listed


@pytest.mark.parametrize(
    "content", [b"", b"glibc-ld.so.cache1.1", b"glibc-ld.so.cache1.1" + b"\xff" * 60, b"junk" * 100]
)
def test_a_damaged_cache_is_no_cache(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "cache"
    path.write_bytes(content)
    assert ldcache.read_cache("x64", str(path)) == {}


# ---- OpenSSL 1.1 ----------------------------------------------------------------------------------------------------


def openssl(folder: Path, platform: Platform = LINUX) -> Path:
    return fill(folder, platform, *openssl11.library_names(platform))


@pytest.mark.parametrize("inner", ["", "lib", "usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu", "usr/lib64"])
def test_openssl_is_found_in_a_folder_or_an_unpacked_package(tmp_path: Path, inner: str) -> None:
    folder = openssl(tmp_path / "given" / inner)
    (found,) = openssl11.find(LINUX, environ={openssl11.VARIABLE: str(tmp_path / "given")})
    assert (found.path, found.found_via, found.reason) == (str(folder), openssl11.VARIABLE, None)


def test_a_file_of_openssl_means_its_folder(tmp_path: Path) -> None:
    folder = openssl(tmp_path / "given")
    (found,) = openssl11.find(LINUX, environ={openssl11.VARIABLE: str(folder / "libssl.so.1.1")})
    assert found.path == str(folder) and found.usable


@pytest.mark.parametrize(
    ("prepare", "reason"),
    [
        (lambda folder: None, "no such file or folder"),
        (lambda folder: folder.mkdir(), "no libcrypto.so.1.1"),
        (lambda folder: fill(folder, LINUX, "libcrypto.so.1.1"), "no libssl.so.1.1"),
        (lambda folder: [fill(folder, LINUX, "libssl.so.1.1"), (folder / "libcrypto.so.1.1").write_bytes(b"x")],
         "libcrypto.so.1.1: not a shared library (neither ELF, Mach-O nor PE)"),
        (lambda folder: [fill(folder, LINUX, "libssl.so.1.1"), (folder / "libcrypto.so.1.1").write_bytes(MACHO)],
         "libcrypto.so.1.1: wrong platform: built for darwin arm64, this Python runs on linux x64"),
        (lambda folder: [fill(folder, LINUX, "libssl.so.1.1"), (folder / "libcrypto.so.1.1").write_bytes(ELF[:5000])],
         "libcrypto.so.1.1: cut short or damaged ELF file"),
    ],
)  # fmt: skip
def test_a_named_openssl_that_can_not_serve_ends_the_search(tmp_path: Path, prepare: object, reason: str) -> None:
    folder = tmp_path / "given"
    prepare(folder)  # type: ignore[operator]
    (only,) = openssl11.find(
        LINUX, package_lib=str(openssl(tmp_path / "elsewhere")), environ={openssl11.VARIABLE: str(folder)}
    )
    assert only.reason and only.reason.startswith(reason)


@pytest.mark.parametrize("via", ["native package", "LD_LIBRARY_PATH", "known folder"])
def test_known_places_of_openssl(tmp_path: Path, via: str) -> None:
    folder = openssl(tmp_path / "prefix" / "lib")
    environ = {
        "LD_LIBRARY_PATH": {"LD_LIBRARY_PATH": str(folder)},
        "known folder": {"CONDA_PREFIX": str(tmp_path / "prefix")},
    }
    package_lib = str(folder) if via == "native package" else None
    found = openssl11.find(LINUX, package_lib=package_lib, environ=environ.get(via, {}))
    assert openssl11.folder_of(found) == str(folder)
    assert found[-1].found_via == via and all(attempt.reason for attempt in found[:-1])
    assert openssl11.is_somewhere(LINUX, environ=environ.get(via, {})) is (via != "native package")


def test_homebrew_is_a_known_place_on_macos() -> None:
    tried = [attempt.path for attempt in openssl11.find(MAC, environ={})]
    assert "/opt/homebrew/opt/openssl@1.1/lib" in tried and "/usr/local/opt/openssl@1.1/lib" in tried


@pytest.mark.parametrize(
    ("release", "command"),
    [
        ('ID=debian\nVERSION_ID="12"\n', "export GOPHER_MCP_ENGINE=embedded"),
        ('ID=debian\nVERSION_ID="11"\n', "sudo apt install libssl1.1"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="20.04"\n', "sudo apt install libssl1.1"),
        ('ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n', "export GOPHER_MCP_ENGINE=embedded"),
        ("ID=fedora\nVERSION_ID=39\n", "sudo dnf install openssl1.1"),
        ('ID="rocky"\nID_LIKE="rhel centos fedora"\nVERSION_ID="9.3"\n', "sudo dnf install compat-openssl11"),
        ("", "export GOPHER_MCP_ENGINE=embedded"),
    ],
)
def test_the_remedy_fits_the_system(tmp_path: Path, release: str, command: str) -> None:
    path = tmp_path / "os-release"
    path.write_text(release)
    assert openssl11.remedy(str(path)) == command
