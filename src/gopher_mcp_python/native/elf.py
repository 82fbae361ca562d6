"""A small ELF reader: what a shared library needs, is called and exports, without opening it as code.

Every read is checked against the file's size; a file that is cut short or is no ELF file gives `BadLibrary` with a
sentence for people. Source of the layouts: System V ABI, chapters 4 and 5, and the GNU symbol versioning extension.
"""

from __future__ import annotations

import os
import struct

from .filebytes import BadLibrary as BadLibrary
from .filebytes import Reader, text

TYPE_CHECKING = False  # typing is not imported: this module is read while the package is imported
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    # (vaddr, offset, size in the file) of what is loaded; (offset, size) of the notes; the same of the dynamic section
    _ProgramHeaders = tuple[list[tuple[int, int, int]], list[tuple[int, int]], tuple[int, int] | None]

MAGIC = b"\x7fELF"
MACHINES = {62: "x64", 183: "arm64", 3: "x86", 40: "arm", 243: "riscv64", 22: "s390x", 21: "ppc64"}
_PT_LOAD, _PT_DYNAMIC, _PT_NOTE = 1, 2, 4
_DT_NEEDED, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SONAME, _DT_RPATH, _DT_RUNPATH = 1, 5, 6, 10, 14, 15, 29
_DT_HASH, _DT_GNU_HASH = 4, 0x6FFFFEF5
_DT_VERSYM, _DT_VERDEF, _DT_VERDEFNUM, _DT_VERNEED, _DT_VERNEEDNUM = (
    0x6FFFFFF0,
    0x6FFFFFFC,
    0x6FFFFFFD,
    0x6FFFFFFE,
    0x6FFFFFFF,
)
_MAX_RECORDS = 1000  # of a version table: real ones have dozens; damaged ones must come to an end
_GLOBAL = 1  # symbol bindings: weak is 2, unique is 10
_VISIBLE = (1, 2, 10)
_NT_GNU_BUILD_ID = 3


class _Layout:
    """Where the fields of one ELF class stand."""

    def __init__(
        self,
        header: str,
        program: str,
        program_order: tuple[int, int, int, int],
        dynamic: str,
        symbol: str,
        symbol_order: tuple[int, int, int],
    ) -> None:
        self.header = header
        self.program = program
        self.program_order = program_order  # indices of type, offset, vaddr, filesz
        self.dynamic = dynamic
        self.symbol = symbol
        self.symbol_order = symbol_order  # indices of name, info, section


_LAYOUTS = {
    2: _Layout("HHIQQQIHHHHHH", "IIQQQQQQ", (0, 2, 3, 5), "qQ", "IBBHQQ", (0, 1, 3)),
    1: _Layout("HHIIIIIHHHHHH", "IIIIIIII", (0, 1, 2, 4), "iI", "IIIBBH", (0, 3, 5)),
}


class Elf:
    """One ELF file. Names are read when they are asked for."""

    def __init__(
        self,
        path: str,
        machine: int,
        data: Reader,
        layout: _Layout,
        endian: str,
        headers: _ProgramHeaders,
        tags: dict[int, int],
        needed: list[int],
    ) -> None:
        self.path = path
        self.arch = MACHINES.get(machine, f"machine {machine}")
        self.bits = 64 if layout is _LAYOUTS[2] else 32
        self._data = data
        self._layout = layout
        self._endian = endian
        self._segments, self._notes, _ = headers
        self._dynamic = tags
        self._needed = needed
        self._defined: set[tuple[str, str | None]] | None = None
        self._undefined: set[tuple[str, str | None]] | None = None
        self._table: tuple[list[tuple[int, ...]], bytes, list[str | None]] | None = None

    @property
    def needed(self) -> list[str]:
        """DT_NEEDED, in order."""
        return [self._string(offset) for offset in self._needed]

    @property
    def soname(self) -> str | None:
        return self._string(self._dynamic[_DT_SONAME]) if _DT_SONAME in self._dynamic else None

    @property
    def runpath(self) -> list[str]:
        """Folders of DT_RUNPATH (else DT_RPATH), $ORIGIN replaced by the file's folder."""
        tag = _DT_RUNPATH if _DT_RUNPATH in self._dynamic else _DT_RPATH
        if tag not in self._dynamic:
            return []
        origin = os.path.dirname(os.path.abspath(self.path))
        text = self._string(self._dynamic[tag]).replace("${ORIGIN}", origin).replace("$ORIGIN", origin)
        return [os.path.normpath(part) for part in text.split(":") if part]

    @property
    def build_id(self) -> str | None:
        """The linker's fingerprint of this very build, in hex."""
        for offset, size in self._notes:
            for kind, name, content in self._each_note(self._data.read(offset, size)):
                if kind == _NT_GNU_BUILD_ID and name == b"GNU\0":
                    return content.hex()
        return None

    def exports(self, prefix: str = "") -> list[str]:
        """Defined dynamic symbols whose name begins with `prefix`, sorted, each once."""
        return sorted({name for name, _ in self.defined if name.startswith(prefix)})

    @property
    def defined(self) -> set[tuple[str, str | None]]:
        """(name, version) of every defined dynamic symbol."""
        if self._defined is None:
            self._defined = self._select(lambda section, binding: section != 0 and binding in _VISIBLE)
        return self._defined

    @property
    def undefined(self) -> set[tuple[str, str | None]]:
        """(name, wanted version) of every symbol that another library must bring; weak ones are left out."""
        if self._undefined is None:
            self._undefined = self._select(lambda section, binding: section == 0 and binding == _GLOBAL)
        return self._undefined

    def _select(self, wanted: Callable[[int, int], bool]) -> set[tuple[str, str | None]]:
        # A C++ library has tens of thousands of symbols: names are decoded for the wanted ones alone.
        if self._table is None:
            self._table = self._symbol_table()
        entries, names, versions = self._table
        name_at, info_at, section_at = self._layout.symbol_order
        return {
            (text(names, entry[name_at]), versions[index])
            for index, entry in enumerate(entries)
            if entry[name_at] and wanted(entry[section_at], entry[info_at] >> 4)
        }

    def _symbol_table(self) -> tuple[list[tuple[int, ...]], bytes, list[str | None]]:
        count, form = self._symbol_count(), self._endian + self._layout.symbol
        if not count:
            return [], b"", []
        data = self._data.read(self._offset(self._dynamic[_DT_SYMTAB]), count * struct.calcsize(form))
        strings = self._data.read(self._offset(self._dynamic.get(_DT_STRTAB, 0)), self._dynamic.get(_DT_STRSZ, 0))
        return list(struct.iter_unpack(form, data)), strings, self._symbol_versions(count, strings)

    def _symbol_versions(self, count: int, strings: bytes) -> list[str | None]:
        """The version of each dynamic symbol, None for those without."""
        if _DT_VERSYM not in self._dynamic:
            return [None] * count
        table = struct.unpack(
            f"{self._endian}{count}H", self._data.read(self._offset(self._dynamic[_DT_VERSYM]), 2 * count)
        )
        names = {index & 0x7FFF: text(strings, name) for index, name in (*self._definitions(), *self._needs())}
        return [names.get(index & 0x7FFF) for index in table]

    def _definitions(self) -> Iterator[tuple[int, int]]:
        """(index, offset of the name) of each version that this file defines."""
        for at in self._chain(*self._start(_DT_VERDEF, _DT_VERDEFNUM), step_at=16):
            _, _, index, _, _, aux = struct.unpack(self._endian + "HHHHII", self._data.read(at, 16))
            if index > 1:  # 1 is the file itself
                yield index, struct.unpack(self._endian + "I", self._data.read(at + aux, 4))[0]

    def _needs(self) -> Iterator[tuple[int, int]]:
        """(index, offset of the name) of each version that this file wants of another."""
        for at in self._chain(*self._start(_DT_VERNEED, _DT_VERNEEDNUM), step_at=12):
            _, number, _, aux = struct.unpack(self._endian + "HHII", self._data.read(at, 12))
            for inner in self._chain(at + aux, number, step_at=12):
                _, _, index, name = struct.unpack(self._endian + "IHHI", self._data.read(inner, 12))
                yield index, name

    def _start(self, table: int, number: int) -> tuple[int, int]:
        if table not in self._dynamic:
            return 0, 0
        return self._offset(self._dynamic[table]), self._dynamic.get(number, 0)

    def _chain(self, at: int, number: int, *, step_at: int) -> Iterator[int]:
        """The places of up to `number` records, each of which holds the distance to the next at `step_at`."""
        for _ in range(min(number, _MAX_RECORDS)):
            yield at
            (step,) = struct.unpack(self._endian + "I", self._data.read(at + step_at, 4))
            if not step:
                return
            at += step

    def _symbol_count(self) -> int:
        """The dynamic symbol table has no length of its own: it is told by the hash tables."""
        if _DT_SYMTAB not in self._dynamic:
            return 0
        if _DT_HASH in self._dynamic:
            at = self._offset(self._dynamic[_DT_HASH])
            return int(struct.unpack(self._endian + "II", self._data.read(at, 8))[1])
        return self._gnu_hash_count() if _DT_GNU_HASH in self._dynamic else 0

    def _gnu_hash_count(self) -> int:
        at = self._offset(self._dynamic[_DT_GNU_HASH])
        buckets, first, bloom, _ = struct.unpack(self._endian + "IIII", self._data.read(at, 16))
        at += 16 + bloom * (self.bits // 8)
        table = self._data.read(at, 4 * buckets)
        last = max(struct.unpack(f"{self._endian}{buckets}I", table), default=0)
        if last < first:
            return int(first)
        at += 4 * buckets + 4 * (last - first)
        while not struct.unpack(self._endian + "I", self._data.read(at, 4))[0] & 1:
            last, at = last + 1, at + 4
        return int(last) + 1

    def _string(self, index: int) -> str:
        """One string, without reading the whole table (a C++ library's has megabytes)."""
        if _DT_STRTAB not in self._dynamic or not 0 <= index < self._dynamic.get(_DT_STRSZ, 0):
            raise BadLibrary(f"{self.path}: damaged ELF file (a name lies outside its string table)")
        start = self._offset(self._dynamic[_DT_STRTAB]) + index
        data = self._data.read_up_to(start, 128)
        return text(data if b"\0" in data else self._data.read_up_to(start, 4096), 0)

    def _offset(self, address: int) -> int:
        for start, offset, size in self._segments:
            if start <= address < start + size:
                return address - start + offset
        raise BadLibrary(f"{self.path}: damaged ELF file (address {address:#x} lies in no segment)")

    def _each_note(self, data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
        at = 0
        while at + 12 <= len(data):
            name_size, size, kind = struct.unpack_from(self._endian + "III", data, at)
            start = at + 12
            content = start + (name_size + 3 & ~3)
            yield kind, data[start : start + name_size], data[content : content + size]
            at = content + (size + 3 & ~3)


def read(path: str) -> Elf:
    """Reads the headers of an ELF file.

    Raises:
        BadLibrary: no ELF file, cut short, or damaged.
        OSError: the file can't be read.
    """
    data = Reader(path)
    ident = data.read_up_to(0, 16)
    if ident[:4] != MAGIC:
        raise BadLibrary(f"{path}: not an ELF file" if ident else f"{path}: empty file")
    if len(ident) < 16 or ident[4] not in _LAYOUTS or ident[5] not in (1, 2):
        raise BadLibrary(f"{path}: damaged ELF file (unknown class or byte order)")
    layout, endian = _LAYOUTS[ident[4]], "<" if ident[5] == 1 else ">"
    header = struct.unpack(endian + layout.header, data.read(16, struct.calcsize(endian + layout.header)))
    headers = _program_headers(data, layout, endian, table=header[4], size=header[8], count=header[9])
    tags, needed = _dynamic_section(data, layout, endian, headers[2])
    return Elf(path, header[1], data, layout, endian, headers, tags, needed)


def _program_headers(
    data: Reader, layout: _Layout, endian: str, *, table: int, size: int, count: int
) -> _ProgramHeaders:
    entry_size = struct.calcsize(endian + layout.program)
    if count and size != entry_size:
        raise BadLibrary(f"{data.path}: damaged ELF file (program header of {size} bytes)")
    kind, offset, address, length = layout.program_order
    segments, notes = [], []
    dynamic: tuple[int, int] | None = None
    for entry in struct.iter_unpack(endian + layout.program, data.read(table, count * entry_size)):
        if entry[kind] == _PT_LOAD:
            data.check(entry[offset], entry[length])  # the loader would map it all and die of a bus error
            segments.append((entry[address], entry[offset], entry[length]))
        elif entry[kind] == _PT_NOTE:
            notes.append((entry[offset], entry[length]))
        elif entry[kind] == _PT_DYNAMIC:
            dynamic = (entry[offset], entry[length])
    return segments, notes, dynamic


def _dynamic_section(
    data: Reader, layout: _Layout, endian: str, where: tuple[int, int] | None
) -> tuple[dict[int, int], list[int]]:
    if where is None:
        raise BadLibrary(f"{data.path}: not a shared library (no dynamic section)")
    tags: dict[int, int] = {}
    needed: list[int] = []
    size = where[1] - where[1] % struct.calcsize(endian + layout.dynamic)
    for tag, value in struct.iter_unpack(endian + layout.dynamic, data.read(where[0], size)):
        if tag == 0:
            break
        if tag == _DT_NEEDED:
            needed.append(value)
        else:
            tags.setdefault(tag, value)
    return tags, needed
