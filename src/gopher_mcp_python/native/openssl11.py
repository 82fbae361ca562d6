"""Finds OpenSSL 1.1, which the published Linux libraries need and newer systems no longer have.

The published macOS packages bring OpenSSL 3 and look for it beside themselves; the Windows ones import none. A library
that was built against Homebrew's openssl@1.1, or against its DLLs on Windows, is served here all the same.

Opened first by absolute path (libcrypto, then libssl), it satisfies the vendor's library by its SONAME: no
LD_LIBRARY_PATH is needed, and OpenSSL 3 of the interpreter's own ``ssl`` module stays untouched beside it (their
symbols are versioned).
"""

from __future__ import annotations

import os
import sys

from . import binary
from .ldcache import Resolver, default_folders
from .names import Platform, embedded_command

TYPE_CHECKING = False  # typing is not imported: this module is read while the package is imported
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .report import Attempt

VARIABLE = "GOPHER_MCP_OPENSSL11_PATH"
_NAMES = {
    "linux": ("libcrypto.so.1.1", "libssl.so.1.1"),
    "darwin": ("libcrypto.1.1.dylib", "libssl.1.1.dylib"),
    "win32": ("libcrypto-1_1-{arch}.dll", "libssl-1_1-{arch}.dll"),
}


def library_names(platform: Platform) -> tuple[str, str]:
    """File names of libcrypto and libssl, in the order in which they must be opened."""
    crypto, ssl = _NAMES.get(platform.os, _NAMES["linux"])
    return crypto.format(arch=platform.arch), ssl.format(arch=platform.arch)


def find(
    platform: Platform, *, package_lib: str | None = None, environ: Mapping[str, str] | None = None
) -> list[Attempt]:
    """Every place tried, until one holds both libraries: that one is last and usable, its path is the folder.

    A set ``GOPHER_MCP_OPENSSL11_PATH`` decides: when it names nothing usable no other place is looked at.
    """
    environ = os.environ if environ is None else environ
    from .report import Attempt

    attempts: list[Attempt] = []
    for via, folder in _distinct(_places(platform, package_lib, environ)):
        reason = _unfit(folder, platform)
        attempts.append(
            Attempt(via, folder, reason=reason) if reason else Attempt(via, os.path.abspath(folder), "1.1", "file name")
        )
        if attempts[-1].usable or via == VARIABLE:
            break
    return attempts


def is_somewhere(platform: Platform, environ: Mapping[str, str] | None = None) -> bool:
    """Whether `find` would find it; without a report, for the check at import."""
    places = _places(platform, None, os.environ if environ is None else environ)
    return any(_unfit(folder, platform) is None for _, folder in places)


def folder_of(attempts: list[Attempt]) -> str | None:
    return next((attempt.path for attempt in attempts if attempt.usable), None)


def _places(platform: Platform, package_lib: str | None, environ: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    named = environ.get(VARIABLE)
    if named:
        yield VARIABLE, _folder_named(os.path.expanduser(named), platform)
        return
    if package_lib:
        yield "native package", package_lib
    if platform.os == "linux":
        for folder in environ.get("LD_LIBRARY_PATH", "").split(":"):
            if folder:
                yield "LD_LIBRARY_PATH", folder
        known = Resolver(platform.arch).find_on_system(library_names(platform)[0])
        if known:
            yield "loader", os.path.dirname(known)
        for folder in default_folders(platform.arch):
            yield "system folder", folder
    for folder in _prefixes(platform, environ):
        yield "known folder", folder


def _distinct(places: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each folder once: /lib is /usr/lib on most systems."""
    seen: set[str] = set()
    for via, folder in places:
        real = os.path.realpath(folder)
        if real not in seen:
            seen.add(real)
            yield via, folder


def _prefixes(platform: Platform, environ: Mapping[str, str]) -> list[str]:
    conda = environ.get("CONDA_PREFIX")
    folders = [os.path.join(conda, "lib")] if conda else []
    folders += [os.path.join(sys.prefix, "lib"), os.path.join(sys.base_prefix, "lib")]
    if platform.os == "win32":
        installed = "OpenSSL-Win64-ARM" if platform.arch == "arm64" else "OpenSSL-Win64"
        return [*folders, rf"C:\Program Files\{installed}\bin"]
    brew = ["/opt/homebrew", "/usr/local"] if platform.os == "darwin" else ["/home/linuxbrew/.linuxbrew"]
    folders += [f"{prefix}/opt/openssl@1.1/lib" for prefix in brew]
    folders += [
        "/usr/local/lib",
        "/usr/local/lib64",
        "/usr/local/ssl/lib",
        "/usr/local/openssl-1.1/lib",
        "/opt/openssl-1.1/lib",
        "/usr/lib/openssl-1.1",
        "/usr/lib64/openssl-1.1",
    ]
    return list(dict.fromkeys(folders))


def _folder_named(path: str, platform: Platform) -> str:
    """A file means its folder; a folder means itself, its ``lib`` or the multiarch folder of an unpacked package."""
    if os.path.isfile(path):
        return os.path.dirname(os.path.abspath(path))
    crypto = library_names(platform)[0]
    inner = [path, *(os.path.join(path, sub.lstrip("/")) for sub in ("lib", "lib64", *default_folders(platform.arch)))]
    return next((folder for folder in inner if os.path.exists(os.path.join(folder, crypto))), path)


def _unfit(folder: str, platform: Platform) -> str | None:
    """Why the folder can't serve; None when both libraries are in it and fit the platform."""
    if not os.path.isdir(folder):
        return "no such file or folder"
    for name in library_names(platform):
        path = os.path.join(folder, name)
        try:
            wrong = binary.unfit(path, platform)
        except FileNotFoundError:
            return f"no {name}"
        except OSError as error:
            wrong = f"can't be read: {error.strerror}"
        if wrong:
            return f"{name}: {wrong}"
    return None


def remedy(os_release: str = "/etc/os-release") -> str:
    """The next command where OpenSSL 1.1 is missing: its package, or the engine that does without it."""
    release = _os_release(os_release)
    family = {release.get("ID", ""), *release.get("ID_LIKE", "").split()}
    number = release.get("VERSION_ID", "").split(".")[0]
    major = int(number) if number.isdigit() else 0
    if release.get("ID") == "fedora":
        return "sudo dnf install openssl1.1"
    if "rhel" in family and major >= 9:
        return "sudo dnf install compat-openssl11"
    if (release.get("ID") == "debian" and 0 < major <= 11) or (release.get("ID") == "ubuntu" and 0 < major <= 20):
        return "sudo apt install libssl1.1"
    return embedded_command()


def _os_release(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8") as file:
            pairs = (line.strip().partition("=") for line in file if "=" in line)
            return {key: value.strip("\"'") for key, _, value in pairs}
    except (OSError, UnicodeDecodeError):
        return {}
