"""The check at import: an installed native package that can't work here is said so, within milliseconds.

Nothing is opened as code and nothing heavy is imported: path look-ups, the file's name, and the few bytes of the ELF
header and dynamic section. What takes longer is said when the library is loaded.
"""

from __future__ import annotations

import os

from . import names


def quick_check() -> str | None:
    """One sentence on why the installed native package can't serve and the next command; None when all is well.

    None, too, when no native package is installed, when a variable overrides the search, or when
    ``GOPHER_MCP_ENGINE=embedded`` says that nobody wants it.
    """
    environ = os.environ
    if environ.get("GOPHER_MCP_ENGINE", "").strip().lower() == "embedded":
        return None
    if any(environ.get(name) for name in names.PATH_VARIABLES):
        return None
    try:
        return _check(names.current())
    except Exception as error:
        return f"The native package could not be checked ({error}). Next: gopher-mcp doctor"


def _check(platform: names.Platform) -> str | None:
    from .packages import package_folder

    folder = package_folder(platform.package) if platform.published else None
    if folder is None:
        return _wrong_platform(platform)
    lib = os.path.join(folder, "lib")
    try:
        found = names.best_in_folder(os.listdir(lib), platform)
    except OSError:
        found = []
    if not found:
        return _say(
            platform,
            f"holds no {names.loader_names(platform)[0]}",
            f"pip install --force-reinstall {platform.distribution}",
        )
    return _check_library(os.path.join(lib, found[0]), folder, platform)


def _wrong_platform(platform: names.Platform) -> str | None:
    from .packages import package_folder

    for package in names.PACKAGES:
        if package != platform.package and package_folder(package) is not None:
            name = package.replace("_", "-")
            return (
                f"The installed native package {name} is for another platform: this Python runs on {platform.os} "
                f"{platform.arch}. Next: pip uninstall {name}"
            )
    return None


def _check_library(path: str, folder: str, platform: names.Platform) -> str | None:
    from . import binary
    from .packages import package_version

    try:
        wrong = binary.unfit(path, platform)
    except OSError as error:  # a link to nothing, a folder, a file of somebody else's
        wrong = f"{os.path.basename(path)} can't be read ({error.strerror or error})"
    if wrong:
        return _say(platform, f"can't be used: {wrong}", f"pip install --force-reinstall {platform.distribution}")
    version = names.version_in_name(os.path.basename(path), platform) or package_version(folder)
    if version and names.version_key(version) < names.version_key(names.ELICITATION_SINCE):
        return _say(
            platform,
            f"has version {version}, too old for elicitation ({names.ELICITATION_SINCE} or newer is needed)",
            f"pip install --upgrade '{platform.distribution}>={names.RETRY_FIX_SINCE}'",
        )
    return _check_needs(path, platform)


def _check_needs(path: str, platform: names.Platform) -> str | None:
    from . import needs, openssl11

    found = needs.find(path, platform, quick=True)
    if found.damaged:
        return _say(
            platform, f"can't be used: {found.damaged[0]}", f"pip install --force-reinstall {platform.distribution}"
        )
    missing = found.missing
    old = [name for name in missing if name in openssl11.library_names(platform)]
    if old and openssl11.is_somewhere(platform):
        missing = [name for name in missing if name not in old]
        old = []
    if not missing:
        return None
    hint = f" (a folder that has them can be named in {openssl11.VARIABLE})" if old else ""
    return _say(
        platform,
        f"can't load here: shared libraries are missing: {', '.join(missing)}{hint}",
        openssl11.remedy() if old else names.embedded_command(platform),
    )


def _say(platform: names.Platform, what: str, command: str) -> str:
    return f"The installed native package {platform.distribution} {what}. Next: {command}"
