"""Checks what a built wheel holds, against a list: `python tests/support/contents.py WHEEL ...`

Every file of the package but the sources of the extension module; one extension module, which needs nothing but the
system's libraries; type information, the C header, the licence; nothing else. On Linux, that the tag promises no older
glibc than the extension needs. Exit code 1 with what is wrong. Needs no installed package: it reads the source tree's.
"""

from __future__ import annotations

import re
import sys
import tempfile
import zipfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "gopher_mcp_python"
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))

from gopher_mcp_python.native import elf, imports  # noqa: E402

HEADER = "gopher_mcp_python/include/gopher_orch/gopher_orch.h"
MUST = ("gopher_mcp_python/py.typed", "gopher_mcp_python/ffi/_bridge.pyi", HEADER)
EXTENSION = re.compile(r"gopher_mcp_python/ffi/_bridge\.(?P<tag>[\w-]+)\.(?:so|pyd)")
METADATA = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
SOURCES_OF_EXTENSION = {".pyx", ".pxd", ".pxi", ".c", ".h", ".so", ".pyd", ".pyc"}
# What an extension module may need of its surroundings.
SYSTEM = {
    "ELF": r"lib(c|m|dl|pthread|rt)\.so\.\d+|libgcc_s\.so\.1|ld-linux-.*|libc\.musl-.*|ld-musl-.*",
    "Mach-O": r"/usr/lib/.*",
    "PE": r"python\d+t?\.dll|kernel32\.dll|vcruntime\d+(_\d+)?\.dll|ucrtbase\.dll|api-ms-win-.*",
}


def problems(wheel: Path) -> list[str]:
    """What is wrong with the wheel, a sentence each; none for a good one."""
    with zipfile.ZipFile(wheel) as opened, tempfile.TemporaryDirectory() as folder:
        names = [name for name in opened.namelist() if not name.endswith("/")]
        extensions = [name for name in names if name.endswith((".so", ".pyd", ".dylib", ".dll"))]
        found = _names(wheel, names)
        if len(extensions) != 1 or not (match := EXTENSION.fullmatch(extensions[0])):
            return [*found, f"one extension module is wanted, there are: {', '.join(extensions) or 'none'}"]
        abi = wheel.name.split("-")[3]
        if re.sub(r"\D*(\d+t?)\b.*", r"\1", match["tag"]) != abi.removeprefix("cp"):
            found.append(f"{extensions[0]} is not for {abi}")
        return found + _extension(Path(opened.extract(extensions[0], folder)), wheel.name)


def _names(wheel: Path, names: list[str]) -> list[str]:
    """Names that are missing, and those that are too many."""
    info = "-".join(wheel.name.split("-")[:2]) + ".dist-info/"
    wanted = {f"{info}{name}" for name in METADATA} | set(MUST) | package_files()
    have = {name for name in names if not EXTENSION.fullmatch(name)}
    missing, surplus = sorted(wanted - have), sorted(have - wanted)
    return [f"missing: {name}" for name in missing] + [f"does not belong there: {name}" for name in surplus]


def package_files() -> set[str]:
    """The source tree's files that a wheel must hold, as the wheel names them."""
    files = [path.relative_to(SOURCE) for path in SOURCE.rglob("*") if path.is_file()]
    made = re.compile(r"\..*|__pycache__")  # by tools, in the source tree
    return {
        PurePosixPath("gopher_mcp_python", *path.parts).as_posix()
        for path in files
        if path.suffix not in SOURCES_OF_EXTENSION and not any(map(made.fullmatch, path.parts))
    }


def _extension(file: Path, wheel: str) -> list[str]:
    """What the module needs that no system has, and a tag that promises too much."""
    head, path = file.read_bytes()[:4], str(file)
    if head == elf.MAGIC:
        kind, needed = "ELF", elf.read(path).needed
    elif head[:2] == b"MZ":
        kind, needed = "PE", imports.of_dll(path)
    else:
        kind, needed = "Mach-O", imports.of_dylib(path, "arm64" if "arm64" in wheel else "x64").libraries
    strange = [name for name in needed if not re.fullmatch(SYSTEM[kind], name, re.IGNORECASE)]
    found = [f"{file.name} needs {', '.join(strange)}"] if strange else []
    tag = re.search(r"manylinux_(\d+)_(\d+)_", wheel)
    if kind == "ELF" and tag:
        promised, wanted = (int(tag[1]), int(tag[2])), glibc(path)
        if wanted > promised:
            found.append(f"the tag says glibc {promised[0]}.{promised[1]}, {file.name} needs {wanted[0]}.{wanted[1]}")
    elif kind == "ELF" and "musllinux" not in wheel:
        found.append(f"not repaired: {wheel} says nothing of the libc that it needs")
    return found


def glibc(path: str) -> tuple[int, ...]:
    """The newest version of glibc whose symbols the file needs; (0,) for a file that needs none."""
    versions = [re.fullmatch(r"GLIBC_([\d.]+)", version or "") for _, version in elf.read(path).undefined]
    return max((tuple(map(int, version[1].split("."))) for version in versions if version), default=(0,))


def main(wheels: list[str]) -> int:
    wrong = 0
    for name in wheels:
        found = problems(Path(name))
        wrong += len(found)
        print(f"{Path(name).name}: {Path(name).stat().st_size:,} bytes, {'; '.join(found) or 'as it should be'}")
    return 1 if wrong or not wheels else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
