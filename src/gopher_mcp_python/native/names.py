"""Names under which the vendor publishes its library, and the versions that they carry.

Linux ``libgopher-orch.so[.X.Y.Z]``, macOS ``libgopher-orch[.X.Y.Z].dylib``, Windows ``[lib]gopher-orch[-X.Y.Z].dll``.
A name such as ``libgopher-orch.so.0`` carries the SONAME's number, which is not a version.
"""

from __future__ import annotations

import os
import sys

# Read while the package is imported: no module is imported here that the interpreter has not loaded by itself.

PATH_VARIABLES = ("GOPHER_MCP_PYTHON_LIBRARY_PATH", "GOPHER_ORCH_LIBRARY_PATH")
ELICITATION_SINCE = "0.1.35"  # the vendor's word; no version between 0.1.34 and 0.1.38 was published for Linux
RETRY_FIX_SINCE = "0.1.38"  # tool call retried after sign-in over streamable HTTP
PACKAGE_PREFIX = "gopher_mcp_python_native_"
PACKAGES = tuple(
    PACKAGE_PREFIX + tag
    for tag in ("linux_x64", "linux_arm64", "darwin_x64", "darwin_arm64", "win32_x64", "win32_arm64")
)

_NAMES = {  # per system: what a name begins with, what it ends with before the version, and after it
    "linux": (("libgopher-orch.so",), "", "."),
    "darwin": (("libgopher-orch",), ".dylib", "."),
    "win32": (("libgopher-orch", "gopher-orch"), ".dll", "-."),
}
_LOADER_NAMES = {
    "linux": ("libgopher-orch.so.0", "libgopher-orch.so"),
    "darwin": ("libgopher-orch.0.dylib", "libgopher-orch.dylib"),
    "win32": ("libgopher-orch.dll", "gopher-orch.dll"),
}
_ARCHITECTURES = {
    "x86_64": "x64",
    "amd64": "x64",
    "x64": "x64",
    "aarch64": "arm64",
    "arm64": "arm64",
    "i386": "x86",
    "i486": "x86",
    "i586": "x86",
    "i686": "x86",
    "x86": "x86",
}


class Platform:
    """An operating system (``linux``, ``darwin``, ``win32``) and an architecture (``x64``, ``arm64``, ...)."""

    __slots__ = ("arch", "os")

    def __init__(self, os: str, arch: str) -> None:
        self.os = os
        self.arch = arch

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Platform) and self.tag == other.tag

    def __hash__(self) -> int:
        return hash(self.tag)

    def __repr__(self) -> str:
        return f"Platform({self.os!r}, {self.arch!r})"

    @property
    def tag(self) -> str:
        return f"{self.os}_{self.arch}"

    @property
    def package(self) -> str:
        """The import name of the vendor's package for this platform."""
        return PACKAGE_PREFIX + self.tag

    @property
    def distribution(self) -> str:
        """The name to give to pip."""
        return self.package.replace("_", "-")

    @property
    def published(self) -> bool:
        return self.package in PACKAGES


def current() -> Platform:
    """The platform of this interpreter: a 32-bit Python on a 64-bit machine loads 32-bit libraries."""
    arch = normal_arch(_machine())
    if sys.maxsize <= 2**32:
        arch = {"x64": "x86", "arm64": "arm"}.get(arch, arch)
    return Platform("linux" if sys.platform.startswith("linux") else sys.platform, arch)


def _machine() -> str:
    if hasattr(os, "uname"):  # platform.machine() says the same after importing much more
        return os.uname().machine
    return os.environ.get("PROCESSOR_ARCHITECTURE", "")


def normal_arch(machine: str) -> str:
    return _ARCHITECTURES.get(machine.lower(), machine.lower() or "unknown")


def set_variable(platform: Platform, name: str, value: str) -> str:
    """The command that sets an environment variable in the platform's usual shell; an empty value removes it."""
    if platform.os == "win32":
        return f"set {name}={value}"
    return f"export {name}={value}" if value else f"unset {name}"


def embedded_command(platform: Platform | None = None) -> str:
    """The command after which the engine that needs no library is used."""
    return set_variable(platform or current(), "GOPHER_MCP_ENGINE", "embedded")


def loader_names(platform: Platform) -> tuple[str, ...]:
    """What to ask the system's own loader for, best first."""
    return _LOADER_NAMES.get(platform.os, _LOADER_NAMES["linux"])


def is_library_name(name: str, platform: Platform) -> bool:
    return _version_part(name, platform) is not None


def version_in_name(name: str, platform: Platform) -> str | None:
    """The version in a file name: ``libgopher-orch.so.0.1.39`` -> ``0.1.39``; ``.so`` and ``.so.0`` -> None."""
    version = _version_part(name, platform)
    return version if version and "." in version else None


def version_key(version: str | None) -> tuple[int, ...]:
    """Orders versions by number, not by letter: 0.1.9 < 0.1.39; an unknown one is the lowest."""
    digits = "".join(character if character in "0123456789" else " " for character in version or "")
    return tuple(int(part) for part in digits.split())


def best_in_folder(names: list[str], platform: Platform) -> list[str]:
    """The library's names among `names`, newest version first, an unversioned one last."""
    found = [name for name in names if is_library_name(name, platform)]
    return sorted(found, key=lambda name: (version_key(version_in_name(name, platform)), name), reverse=True)


def _version_part(name: str, platform: Platform) -> str | None:
    """What stands for the version in a library's name, "" for nothing; None when it is no such name."""
    starts, end, separators = _NAMES.get(platform.os, _NAMES["linux"])
    if platform.os == "win32":
        name = name.lower()
    for start in starts:
        if name.startswith(start) and name.endswith(end) and len(name) >= len(start) + len(end):
            version = name[len(start) : len(name) - len(end)]
            if not version:
                return ""
            if version[0] in separators and all(_is_number(part) for part in version[1:].split(".")):
                return version[1:]
    return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
