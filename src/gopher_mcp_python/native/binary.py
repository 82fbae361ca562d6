"""Which platform a library file was built for, told from its first bytes (ELF, Mach-O, PE)."""

from __future__ import annotations

import struct

from . import elf
from .elf import BadLibrary
from .names import Platform

_MACHO_CPUS = {0x01000007: "x64", 0x0100000C: "arm64", 7: "x86", 12: "arm"}
_MACHO_MAGICS = {b"\xcf\xfa\xed\xfe": "<", b"\xce\xfa\xed\xfe": "<", b"\xfe\xed\xfa\xcf": ">", b"\xfe\xed\xfa\xce": ">"}
_FAT_MAGIC = b"\xca\xfe\xba\xbe"
_PE_MACHINES = {0x8664: "x64", 0xAA64: "arm64", 0x014C: "x86"}


def platforms_of(path: str) -> list[Platform]:
    """The platforms that the file serves (a universal Mach-O file serves several).

    Raises:
        BadLibrary: not a library of any known kind, or cut short.
        OSError: the file can't be read.
    """
    with open(path, "rb") as file:
        head = file.read(4096)
    if head[:4] == elf.MAGIC:
        return [Platform("linux", _elf_arch(path, head))]
    if head[:4] in _MACHO_MAGICS:
        return [Platform("darwin", _macho_arch(path, head))]
    if head[:4] == _FAT_MAGIC:
        return [Platform("darwin", arch) for arch in _fat_archs(path, head)]
    if head[:2] == b"MZ":
        return [Platform("win32", _pe_arch(path))]
    raise BadLibrary(
        f"{path}: empty file" if not head else f"{path}: not a shared library (neither ELF, Mach-O nor PE)"
    )


def unfit(path: str, wanted: Platform) -> str | None:
    """Why the file must not be loaded on `wanted`, or None: wrong platform, no library, cut short.

    A file that was cut short (a full disk, a broken download) is no harmless thing to try: the loader dies of it.

    Raises:
        OSError: the file can't be read.
    """
    try:
        found = platforms_of(path)
        if any(platform == wanted for platform in found):
            if wanted.os == "linux":
                elf.read(path)
            return None
    except BadLibrary as error:
        return str(error).removeprefix(f"{path}: ")
    built_for = " and ".join(f"{platform.os} {platform.arch}" for platform in found)
    return f"wrong platform: built for {built_for}, this Python runs on {wanted.os} {wanted.arch}"


def _elf_arch(path: str, head: bytes) -> str:
    if len(head) < 20:
        raise BadLibrary(f"{path}: cut short (an ELF header has 64 bytes, the file {len(head)})")
    (machine,) = struct.unpack_from("<H" if head[5] == 1 else ">H", head, 18)
    return elf.MACHINES.get(machine, f"machine {machine}")


def _macho_arch(path: str, head: bytes) -> str:
    if len(head) < 8:
        raise BadLibrary(f"{path}: cut short (no Mach-O header)")
    (cpu,) = struct.unpack_from(_MACHO_MAGICS[head[:4]] + "I", head, 4)
    return _MACHO_CPUS.get(cpu, f"cpu {cpu:#x}")


def _fat_archs(path: str, head: bytes) -> list[str]:
    count = struct.unpack_from(">I", head, 4)[0] if len(head) >= 8 else 0
    if not 0 < count <= 16 or len(head) < 8 + 20 * count:
        raise BadLibrary(f"{path}: damaged universal Mach-O file")
    cpus = [struct.unpack_from(">I", head, 8 + 20 * index)[0] for index in range(count)]
    return [_MACHO_CPUS.get(cpu, f"cpu {cpu:#x}") for cpu in cpus]


def _pe_arch(path: str) -> str:
    with open(path, "rb") as file:
        head = file.read(64)
        at = struct.unpack_from("<I", head, 60)[0] if len(head) == 64 else 0
        file.seek(at)
        signature = file.read(6)
    if at < 64 or signature[:4] != b"PE\0\0" or len(signature) < 6:
        raise BadLibrary(f"{path}: damaged PE file")
    (machine,) = struct.unpack_from("<H", signature, 4)
    return _PE_MACHINES.get(machine, f"machine {machine:#x}")
