"""Finds the vendor's library: small find steps, tried in order, each place reported.

The order: ``GOPHER_MCP_PYTHON_LIBRARY_PATH``, ``GOPHER_ORCH_LIBRARY_PATH`` (a file or a folder; the newest version in
it wins), the vendor's package for this platform, the system's loader. A variable that is set decides: what it names is
used or reported, never passed over for another copy. Nothing is opened as code here.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping

from . import binary, elf, names
from .ldcache import Resolver
from .packages import package_folder, package_version
from .report import Attempt, Report

FindStep = Callable[[Report], Iterator[Attempt]]


def find(platform: names.Platform | None = None, environ: Mapping[str, str] | None = None) -> Report:
    """Looks in every place and says what is there.

    Returns:
        A Report; `chosen` is the library to load, None when no place can serve.
    """
    platform = platform or names.current()
    environ = os.environ if environ is None else environ
    report = Report(overridden_by=next((name for name in names.PATH_VARIABLES if environ.get(name)), None))
    steps = [_from_variable(name, platform, environ) for name in names.PATH_VARIABLES]
    steps += [_from_package(platform), _from_other_packages(platform), _from_loader(platform)]
    for step in steps:
        report.attempts.extend(step(report))
    return report


def _from_variable(variable: str, platform: names.Platform, environ: Mapping[str, str]) -> FindStep:
    def step(report: Report) -> Iterator[Attempt]:
        value = environ.get(variable)
        if not value:
            yield Attempt(variable, "-", reason="not set")
        elif report.overridden_by != variable:
            yield Attempt(variable, value, reason=f"not looked at, {report.overridden_by} is set")
        else:
            yield from _file_or_folder(variable, os.path.expanduser(value), platform)

    return step


def _from_package(platform: names.Platform) -> FindStep:
    def step(report: Report) -> Iterator[Attempt]:
        if not platform.published:
            yield Attempt("package", "-", reason=f"the vendor publishes none for {platform.os} {platform.arch}")
            return
        folder = package_folder(platform.package)
        if folder is None:
            yield Attempt("package", platform.distribution, reason="not installed")
            return
        report.package, report.package_version = platform.distribution, package_version(folder)
        if report.overridden_by:
            yield Attempt(
                "package",
                folder,
                report.package_version,
                "native package",
                f"not looked at, {report.overridden_by} is set",
            )
            return
        yield from _folder("package", os.path.join(folder, "lib"), platform, report.package_version)

    return step


def _from_other_packages(platform: names.Platform) -> FindStep:
    def step(report: Report) -> Iterator[Attempt]:
        for package in names.PACKAGES:
            folder = package_folder(package) if package != platform.package else None
            if folder is not None:
                built_for = package[len(names.PACKAGE_PREFIX) :].replace("_", " ")
                yield Attempt(
                    "package",
                    folder,
                    package_version(folder),
                    "native package",
                    f"wrong platform: built for {built_for}, this Python runs on {platform.os} {platform.arch}",
                )

    return step


def _from_loader(platform: names.Platform) -> FindStep:
    def step(report: Report) -> Iterator[Attempt]:
        wanted = " or ".join(names.loader_names(platform))
        if report.overridden_by:
            yield Attempt("loader", wanted, reason=f"not looked at, {report.overridden_by} is set")
            return
        path = _loader_path(platform)
        if path is None:
            yield Attempt("loader", wanted, reason="the system's loader knows no such library")
        else:
            yield identify(Attempt("loader", path), platform)

    return step


def _loader_path(platform: names.Platform) -> str | None:
    if platform.os == "linux" and sys.platform.startswith("linux"):
        resolver = Resolver(platform.arch)
        return next(filter(None, (resolver.find(name) for name in names.loader_names(platform))), None)
    if platform.os != sys.platform:
        return None
    folders = (
        os.environ.get("PATH", "").split(os.pathsep)
        if platform.os == "win32"
        else [*filter(None, os.environ.get("DYLD_LIBRARY_PATH", "").split(":")), "/usr/local/lib", "/opt/homebrew/lib"]
    )
    paths = (os.path.join(folder, name) for folder in folders if folder for name in names.loader_names(platform))
    return next(filter(os.path.isfile, paths), None)


def _file_or_folder(via: str, path: str, platform: names.Platform) -> Iterator[Attempt]:
    if os.path.isdir(path):
        yield from _folder(via, path, platform, None)
    elif os.path.isfile(path):
        yield identify(Attempt(via, os.path.abspath(path)), platform)
    else:
        yield Attempt(via, path, reason="no such file or folder")


def _folder(via: str, folder: str, platform: names.Platform, owner_version: str | None) -> Iterator[Attempt]:
    """The newest library of the folder, or of its ``lib``; the older ones are listed as passed over."""
    for place in (folder, os.path.join(folder, "lib")):
        found = names.best_in_folder(_listing(place), platform)
        if found:
            best, *others = found
            yield identify(
                Attempt(
                    via,
                    os.path.join(os.path.abspath(place), best),
                    owner_version,
                    "native package" if owner_version else None,
                ),
                platform,
            )
            for other in others:
                version = names.version_in_name(other, platform)
                if version:
                    yield Attempt(
                        via,
                        os.path.join(os.path.abspath(place), other),
                        version,
                        "file name",
                        f"not looked at, {best} is newer",
                    )
            return
    wanted = " or ".join(names.loader_names(platform))
    yield Attempt(
        via,
        folder,
        owner_version,
        "native package" if owner_version else None,
        f"no {wanted} in this folder" if os.path.isdir(folder) else "no such folder",
    )


def _listing(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def identify(attempt: Attempt, platform: names.Platform) -> Attempt:
    """Adds the file's version and, where it can't serve on this platform, the reason.

    The version comes from the build id where the file is one of the published ones, else from its (real) name, else
    from the package that it lies in.
    """
    try:
        reason = binary.unfit(attempt.path, platform)
        version, source = _version(attempt, platform)
    except OSError as error:
        return attempt.failed(f"can't be read: {error.strerror or error}")
    return Attempt(attempt.found_via, attempt.path, version, source, reason)


def _version(attempt: Attempt, platform: names.Platform) -> tuple[str | None, str | None]:
    for name in (attempt.path, os.path.realpath(attempt.path)):
        version = names.version_in_name(os.path.basename(name), platform)
        if version:
            return version, "file name"
    known = _version_by_build_id(attempt.path)
    if known:
        return known, "build id"
    return attempt.version, attempt.version_source


def _version_by_build_id(path: str) -> str | None:
    from .versions import version_of_build  # reads a JSON table: only for a file that has no version in its name

    try:
        return version_of_build(elf.read(path).build_id)
    except elf.BadLibrary:
        return None  # Mach-O and PE files have none
