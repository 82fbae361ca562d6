"""What a failed load says: every place with its reason, the overriding variables, the next command."""

from __future__ import annotations

from . import names, openssl11
from .report import Report


def reason(error: OSError, report: Report) -> str:
    said = str(error)
    if report.missing:
        said += f"; shared libraries missing here: {', '.join(report.missing)}"
    return said


def text(report: Report) -> str:
    """Why no library could be loaded: every place with its reason, the overriding variables, the next command."""
    lines = ["No usable libgopher-orch was found. Places tried:"]
    lines += [f"  - {attempt.line()}" for attempt in report.attempts]
    if _lacks_openssl11(report):
        lines.append("OpenSSL 1.1, which it needs, was looked for in:")
        lines += [f"  - {attempt.line()}" for attempt in report.openssl11]
        lines.append(f"{openssl11.VARIABLE} (a file or a folder) names one elsewhere.")
    lines.append(f"{names.PATH_VARIABLES[0]} (a file or a folder) overrides the search.")
    lines.append(f"Next: {remedy(report)}")
    return "\n".join(lines)


def remedy(report: Report) -> str:
    """The next command to type after a failed search."""
    platform = names.current()
    if _lacks_openssl11(report):
        return openssl11.remedy()
    if report.overridden_by:
        return names.set_variable(platform, report.overridden_by, "")
    if report.missing or not platform.published:
        return names.embedded_command(platform)
    return f"pip install {'--force-reinstall ' if report.package else ''}{platform.distribution}"


def _lacks_openssl11(report: Report) -> bool:
    return any(name in report.missing for name in openssl11.library_names(names.current()))
