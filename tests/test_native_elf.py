"""The ELF reader against readelf and nm, and against damaged files; platforms told from a file's first bytes."""

from __future__ import annotations

import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.native import binary, elf, names
from gopher_mcp_python.native.names import Platform

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads ELF files of this system")


SMALL = Path(_bridge.__file__)  # a real shared library that is always there
CONTENT = SMALL.read_bytes()


def _readelf(*arguments: str) -> str:
    assert shutil.which("readelf"), "these tests compare with readelf: apt-get install binutils"
    return subprocess.run(("readelf", "-W", *arguments), check=True, capture_output=True, text=True).stdout


def _read_all(path: Path) -> elf.Elf:
    file = elf.read(str(path))
    _ = file.needed, file.soname, file.runpath, file.build_id, file.defined, file.undefined, file.exports("x")
    return file


def test_agrees_with_readelf_on_the_vendor_library(vendor_library: Path) -> None:
    file = elf.read(str(vendor_library))
    dynamic = _readelf("-d", str(vendor_library))
    assert file.needed == [line.split("[")[1].rstrip("]\n ") for line in dynamic.splitlines() if "(NEEDED)" in line]
    assert file.soname == "libgopher-orch.so.0" and f"[{file.soname}]" in dynamic
    assert file.runpath == [str(vendor_library.parent)] and "[$ORIGIN]" in dynamic
    assert file.build_id and file.build_id in _readelf("-n", str(vendor_library))
    assert (file.arch, file.bits) == ("x64", 64)


@pytest.mark.parametrize(
    "name", ["libgopher-orch.so.0", "libsqlite3.so.0", "libkrb5.so.3", "libcurl.so.4", "libgnutls.so.30"]
)
def test_agrees_with_readelf_on_symbols_and_versions(vendor_library: Path, name: str) -> None:
    path = vendor_library.parent / name
    defined, undefined = set(), set()
    for line in _readelf("--dyn-syms", str(path)).splitlines():
        parts = line.split()
        if len(parts) >= 8 and parts[0].rstrip(":").isdigit() and parts[4] in ("GLOBAL", "WEAK", "UNIQUE"):
            symbol, _, version = parts[7].replace("@@", "@").partition("@")
            if parts[6] == "ABS":  # a version's own entry; readelf shows it without its version
                defined.add((symbol, symbol))
            elif parts[6] != "UND":
                defined.add((symbol, version or None))
            elif parts[4] == "GLOBAL":
                undefined.add((symbol, version or None))
    file = elf.read(str(path))
    assert len(defined) > 20
    assert file.defined == defined
    assert file.undefined == undefined


def test_exports_are_sorted_and_by_prefix(vendor_library: Path) -> None:
    exported = elf.read(str(vendor_library)).exports("gopher_orch_")
    assert exported == sorted(exported) and "gopher_orch_agent_run" in exported
    assert all(name.startswith("gopher_orch_") for name in exported)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "empty file"),
        (b"#!/bin/sh\n", "not an ELF file"),
        (b"\x7fELF", "damaged ELF file"),
        (b"\x7fELF\x02\x01" + b"\0" * 10, "cut short"),
        (b"\x7fELF\x07\x01" + b"\0" * 60, "unknown class"),
        (CONTENT[:64], "cut short"),
        (CONTENT[: len(CONTENT) // 3], "cut short|outside|no segment|damaged"),
    ],
)
def test_a_broken_file_is_said_to_be_so(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "libgopher-orch.so"
    path.write_bytes(content)
    with pytest.raises(elf.BadLibrary, match=text) as caught:
        _read_all(path)
    assert str(path) in str(caught.value)


def test_an_object_without_dynamic_section_is_no_shared_library(tmp_path: Path) -> None:
    path = tmp_path / "x.so"
    header = struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, 0, 0, 64, 56, 0, 64, 0, 0)
    path.write_bytes(b"\x7fELF\x02\x01\x01" + b"\0" * 9 + header)
    with pytest.raises(elf.BadLibrary, match="not a shared library"):
        elf.read(str(path))


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(length=st.integers(0, len(CONTENT)))
def test_cut_anywhere_it_never_does_worse_than_bad_library(tmp_path: Path, length: int) -> None:
    path = tmp_path / "cut.so"
    path.write_bytes(CONTENT[:length])
    try:
        _read_all(path)
    except elf.BadLibrary:
        assert length < len(CONTENT)


@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 4095) | st.integers(0, len(CONTENT) - 1), st.integers(0, 255)), min_size=1, max_size=12
    )
)
def test_with_garbage_inside_it_never_does_worse_than_bad_library(
    tmp_path: Path, changes: list[tuple[int, int]]
) -> None:
    content = bytearray(CONTENT)
    for at, value in changes:
        content[at] = value
    path = tmp_path / "garbage.so"
    path.write_bytes(content)
    try:
        file = _read_all(path)
        assert isinstance(file.needed, list)
    except elf.BadLibrary:
        pass
    try:
        assert binary.platforms_of(str(path))
    except elf.BadLibrary:
        assert content[:4] != CONTENT[:4]


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.binary(max_size=600),
    magic=st.sampled_from([b"\x7fELF\x02\x01", b"MZ", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe"]),
)
def test_random_bytes_after_any_magic_never_do_worse_than_bad_library(
    tmp_path: Path, content: bytes, magic: bytes
) -> None:
    path = tmp_path / "random"
    path.write_bytes(magic + content)
    for read in (lambda: elf.read(str(path)), lambda: binary.platforms_of(str(path))):
        try:
            read()
        except elf.BadLibrary:
            pass


# ---- Platforms ------------------------------------------------------------------------------------------------------


def macho(cpu: int) -> bytes:
    return b"\xcf\xfa\xed\xfe" + struct.pack("<I", cpu) + b"\0" * 24


def universal(*cpus: int) -> bytes:
    return (
        b"\xca\xfe\xba\xbe"
        + struct.pack(">I", len(cpus))
        + b"".join(struct.pack(">5I", cpu, 0, 0, 0, 0) for cpu in cpus)
    )


def pe(machine: int) -> bytes:
    return b"MZ" + b"\0" * 58 + struct.pack("<I", 128) + b"\0" * 64 + b"PE\0\0" + struct.pack("<H", machine)


def test_a_library_for_this_platform_fits() -> None:
    assert binary.unfit(str(SMALL), names.current()) is None


X64, ARM64 = 0x01000007, 0x0100000C


@pytest.mark.parametrize(
    ("content", "platforms"),
    [
        (macho(X64), [("darwin", "x64")]),
        (macho(ARM64), [("darwin", "arm64")]),
        (universal(X64, ARM64), [("darwin", "x64"), ("darwin", "arm64")]),
        (pe(0x8664), [("win32", "x64")]),
        (pe(0xAA64), [("win32", "arm64")]),
        (pe(0x014C), [("win32", "x86")]),
        (b"\x7fELF\x02\x01\x01" + b"\0" * 9 + struct.pack("<HH", 3, 183) + b"\0" * 44, [("linux", "arm64")]),
        (CONTENT, [("linux", elf.read(str(SMALL)).arch)]),
    ],
)
def test_the_platform_is_told_from_the_first_bytes(
    tmp_path: Path, content: bytes, platforms: list[tuple[str, str]]
) -> None:
    path = tmp_path / "library"
    path.write_bytes(content)
    assert binary.platforms_of(str(path)) == [Platform(*pair) for pair in platforms]
    wrong = binary.unfit(str(path), Platform("plan9", "x64"))
    assert wrong and wrong.startswith(f"wrong platform: built for {platforms[0][0]} {platforms[0][1]}")
    assert wrong.endswith("this Python runs on plan9 x64")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"", "empty file"),
        (b"hello, world", "neither ELF, Mach-O nor PE"),
        (macho(X64)[:6], "cut short"),
        (universal()[:8], "damaged universal"),
        (pe(0x8664)[:70], "damaged PE"),
        (b"MZ", "damaged PE"),
        (b"\x7fELF\x02", "cut short"),
    ],
)
def test_what_is_no_library_is_said_to_be_none(tmp_path: Path, content: bytes, text: str) -> None:
    path = tmp_path / "library"
    path.write_bytes(content)
    with pytest.raises(elf.BadLibrary, match=text):
        binary.platforms_of(str(path))
