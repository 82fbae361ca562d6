"""Where the Linux loader would find a shared library, without asking it to load one.

Follows ld.so(8): LD_LIBRARY_PATH, the library's own RUNPATH, /etc/ld.so.cache, the default folders. The cache's layout
is glibc's "glibc-ld.so.cache1.1"; a system without it (musl) is served by the default folders alone.
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False  # typing is not imported: this module is read while the package is imported
if TYPE_CHECKING:
    from collections.abc import Iterable

CACHE = "/etc/ld.so.cache"
_NEW_MAGIC = b"glibc-ld.so.cache1.1"
_MULTIARCH = {
    "x64": "x86_64-linux-gnu",
    "arm64": "aarch64-linux-gnu",
    "x86": "i386-linux-gnu",
    "arm": "arm-linux-gnueabihf",
}
_FLAGS = {"x64": 0x0303, "arm64": 0x0A03, "x86": 0x0003, "arm": 0x0903}  # ELF, libc6, architecture


def default_folders(arch: str) -> list[str]:
    """The folders that a Linux loader looks into by itself, multiarch ones first."""
    multiarch = _MULTIARCH.get(arch)
    wide = "lib64" if arch in ("x64", "arm64") else "lib"
    folders = [f"/lib/{multiarch}", f"/usr/lib/{multiarch}"] if multiarch else []
    return [*folders, f"/{wide}", f"/usr/{wide}", "/lib", "/usr/lib"]


_read: dict[
    tuple[str, str, int], dict[str, str]
] = {}  # several questions are asked in a row: path, arch, time -> entries


def read_cache(arch: str, path: str = CACHE) -> dict[str, str]:
    """soname -> path of the first entry for this architecture; empty when there is no cache or it is damaged."""
    try:
        with open(path, "rb") as file:
            key = (path, arch, os.fstat(file.fileno()).st_mtime_ns)
            if key not in _read:
                _read[key] = _parsed(file.read(16 << 20), arch)
            return _read[key]
    except OSError:
        return {}


def _parsed(data: bytes, arch: str) -> dict[str, str]:
    start = data.find(_NEW_MAGIC)
    if start < 0:
        return {}
    try:
        return _entries(data, start, _FLAGS.get(arch))
    except (struct.error, ValueError):
        return {}


def _entries(data: bytes, start: int, wanted: int | None) -> dict[str, str]:
    # 20 bytes magic, u32 count, u32 string bytes, 20 bytes of flags and reserve; entries of i32 flags, u32 key, u32
    # value, u32 OS version, u64 hardware capabilities. Offsets count from the new header.
    (count,) = struct.unpack_from("<I", data, start + 20)
    found: dict[str, str] = {}
    for flags, key, value, _, _ in struct.iter_unpack("<iIIIQ", data[start + 48 : start + 48 + 24 * count]):
        if wanted is None or flags == wanted:
            name = data[start + key : data.index(b"\0", start + key)].decode("utf-8", "replace")
            if name not in found:
                found[name] = data[start + value : data.index(b"\0", start + value)].decode("utf-8", "replace")
    return found


def in_process(soname: str) -> str | None:
    """The path of a library that this process has open under that file name (where no cache lists it, as on NixOS)."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            return next((line.split(None, 5)[5].rstrip("\n") for line in maps if line.endswith(f"/{soname}\n")), None)
    except OSError:
        return None


class Resolver:
    """Finds libraries by soname as the loader of this process would. Made for one question; reads the cache once."""

    def __init__(self, arch: str, *, cache: str = CACHE, hurry: bool = False) -> None:
        """`hurry`: look into the default folders first and read the cache only for what is not there: whether a library
        is there stays true, which copy the loader would take may not."""
        self._arch = arch
        self._hurry = hurry
        self._library_path = [part for part in os.environ.get("LD_LIBRARY_PATH", "").split(":") if part]
        self._cache_path = cache
        self._cache: dict[str, str] | None = None

    def find(self, soname: str, runpath: Iterable[str] = ()) -> str | None:
        """The path of `soname`, or None. `runpath`: the folders of the library that needs it."""
        for folder in (*self._library_path, *runpath):
            path = os.path.join(folder, soname)
            if os.path.exists(path):
                return path
        return self.find_on_system(soname)

    def find_on_system(self, soname: str) -> str | None:
        """The system's own copy: loader's cache, then default folders."""
        if self._hurry:
            return self._in_folders(soname) or self._in_cache(soname)
        return self._in_cache(soname) or self._in_folders(soname)

    def _in_cache(self, soname: str) -> str | None:
        if self._cache is None:
            self._cache = read_cache(self._arch, self._cache_path)
        path = self._cache.get(soname)
        return path if path is not None and os.path.exists(path) else None

    def _in_folders(self, soname: str) -> str | None:
        paths = (os.path.join(folder, soname) for folder in default_folders(self._arch))
        return next(filter(os.path.exists, paths), None)
