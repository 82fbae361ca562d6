"""Which libraries a Mach-O or PE file imports, without opening it as code; native/elf.py does it for ELF.

Sources of the layouts: Apple's <mach-o/loader.h> and <mach-o/fat.h>; Microsoft's "PE Format". Every read is checked
against the file's size.
"""

from __future__ import annotations

import struct

from .filebytes import BadLibrary, Reader, text

TYPE_CHECKING = False  # typing is not imported: this module may be read while the package is imported
if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST = 1000  # load commands, sections, import records: real libraries have dozens; damaged ones must come to an end
_MACHO_64 = b"\xcf\xfa\xed\xfe"
_FAT = b"\xca\xfe\xba\xbe"
_CPUS = {0x01000007: "x64", 0x0100000C: "arm64"}
# Load commands. A weak import may be absent at run time, so it is none here.
_LC_LOAD, _LC_REEXPORT, _LC_UPWARD, _LC_LAZY, _LC_RPATH = 0x0C, 0x8000001F, 0x80000023, 0x20, 0x8000001C
_PE32, _PE32_PLUS = 0x10B, 0x20B
_IMPORT_TABLE = 1  # its place among the data directories


class MachO:
    """What a dylib names: the libraries it loads, as written (`@loader_path/libssl.3.dylib`), and its LC_RPATHs."""

    __slots__ = ("libraries", "rpaths")

    def __init__(self) -> None:
        self.libraries: list[str] = []
        self.rpaths: list[str] = []


def of_dylib(path: str, arch: str) -> MachO:
    """The imports of a 64-bit dylib; of a universal one, those of `arch` ("x64", "arm64").

    Raises:
        BadLibrary: no such Mach-O file, or cut short.
        OSError: it can't be read.
    """
    data = Reader(path, "Mach-O")
    start = _slice(data, arch)
    if data.read(start, 4) != _MACHO_64:
        raise BadLibrary(f"{path}: no 64-bit Mach-O file")
    number, size = struct.unpack("<II", data.read(start + 16, 8))
    commands = data.read(start + 32, size)
    found, at = MachO(), 0
    for _ in range(min(number, _MOST)):
        command, length = _unpacked("<II", commands, at, path)
        if length < 8 or at + length > size:
            raise BadLibrary(f"{path}: cut short or damaged Mach-O file (a load command of {length} bytes)")
        if command in (_LC_LOAD, _LC_REEXPORT, _LC_UPWARD, _LC_LAZY, _LC_RPATH):
            (name_at,) = _unpacked("<I", commands, at + 8, path)
            name = text(commands[at : at + length], name_at)
            (found.rpaths if command == _LC_RPATH else found.libraries).append(name)
        at += length
    return found


def of_dll(path: str) -> list[str]:
    """The names in a DLL's import table, in order. Delay-loaded ones are left out: they may never be needed.

    Raises:
        BadLibrary: no PE file, or cut short.
        OSError: it can't be read.
    """
    data = Reader(path, "PE")
    if data.read(0, 2) != b"MZ":
        raise BadLibrary(f"{path}: no PE file")
    (start,) = struct.unpack("<I", data.read(60, 4))
    signature, _, sections, optional = struct.unpack("<4sHH12xH2x", data.read(start, 24))
    if signature != b"PE\0\0" or not 0 < optional <= 4096 or sections > _MOST:
        raise BadLibrary(f"{path}: damaged PE file")
    header = data.read(start + 24, optional)
    (magic,) = _unpacked("<H", header, 0, path)
    directories = {_PE32: 96, _PE32_PLUS: 112}.get(magic)
    if directories is None:
        raise BadLibrary(f"{path}: damaged PE file (an optional header of kind {magic:#x})")
    (count,) = _unpacked("<I", header, directories - 4, path)
    if count <= _IMPORT_TABLE:
        return []
    table, _ = _unpacked("<II", header, directories + 8 * _IMPORT_TABLE, path)
    mapped = list(struct.iter_unpack("<8x4I16x", data.read(start + 24 + optional, 40 * sections)))
    return list(_imported(data, table, mapped)) if table else []


def _slice(data: Reader, arch: str) -> int:
    """Where the part for `arch` begins: 0 in a file that has one part only."""
    if data.read(0, 4) != _FAT:
        return 0
    (number,) = struct.unpack(">I", data.read(4, 4))
    for index in range(min(number, 16)):
        cpu, _, offset = struct.unpack(">III", data.read(8 + 20 * index, 12))
        if _CPUS.get(cpu) == arch:
            return int(offset)
    raise BadLibrary(f"{data.path}: holds nothing for {arch}")


def _imported(data: Reader, table: int, mapped: list[tuple[int, ...]]) -> Iterator[str]:
    at = _offset(data, table, mapped)
    for index in range(_MOST):  # a record of zeros ends the table
        name = struct.unpack("<5I", data.read(at + 20 * index, 20))[3]
        if not name:
            return
        yield text(data.read_up_to(_offset(data, name, mapped), 256), 0)


def _offset(data: Reader, address: int, mapped: list[tuple[int, ...]]) -> int:
    """Where the file holds what is loaded at `address`. `mapped`: virtual size, address, size and offset of each."""
    for virtual_size, start, size, offset in mapped:
        if start <= address < start + max(virtual_size, size):
            return offset + address - start
    raise BadLibrary(f"{data.path}: damaged PE file (nothing lies at address {address:#x})")


def _unpacked(form: str, content: bytes, at: int, path: str) -> tuple[int, ...]:
    try:
        return struct.unpack_from(form, content, at)
    except struct.error:
        raise BadLibrary(f"{path}: cut short or damaged library file") from None
