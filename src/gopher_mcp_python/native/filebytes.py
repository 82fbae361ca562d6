"""Pieces of a library file, each read checked against the file's size."""

from __future__ import annotations

import os

_MAX_TABLE = 64 << 20  # no table of a real library is larger; a garbage size must not take all memory


class BadLibrary(ValueError):
    """A file that is no usable shared library; the text says what is wrong with it."""


class Reader:
    """Reads pieces of a file, each checked against its size. The file is open as long as this object lives."""

    def __init__(self, path: str, kind: str = "ELF") -> None:
        """`kind`: what the errors call the file."""
        self.path = path
        self._kind = kind
        self._file = open(path, "rb", buffering=0)
        self._size = os.fstat(self._file.fileno()).st_size
        self._head = self._file.read(4096) or b""  # all headers of a usual library: saves system calls at import

    def __del__(self) -> None:
        file = getattr(self, "_file", None)
        if file is not None:
            file.close()

    def check(self, offset: int, size: int) -> None:
        """Whether the file has these bytes."""
        if offset < 0 or size < 0 or offset + size > self._size:
            raise BadLibrary(
                f"{self.path}: cut short or damaged {self._kind} file "
                f"({size} bytes at {offset} wanted, the file has {self._size})"
            )

    def read(self, offset: int, size: int) -> bytes:
        self.check(offset, min(size, _MAX_TABLE + 1))
        if size > _MAX_TABLE:
            raise BadLibrary(f"{self.path}: damaged {self._kind} file (a table of {size} bytes)")
        end = offset + size
        if end <= len(self._head):
            return self._head[offset:end]
        self._file.seek(offset)
        data = self._file.read(size)
        if data is None or len(data) != size:
            raise BadLibrary(f"{self.path}: cut short while it was read")
        return data

    def read_up_to(self, offset: int, size: int) -> bytes:
        if offset < 0 or offset > self._size:
            raise BadLibrary(f"{self.path}: cut short or damaged {self._kind} file")
        return self.read(offset, min(size, self._size - offset))


def text(table: bytes, start: int) -> str:
    end = table.find(b"\0", start)
    return table[start : end if end >= 0 else len(table)].decode("utf-8", "replace")
