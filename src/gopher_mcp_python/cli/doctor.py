"""`gopher-mcp doctor`: what works on this machine, which engine runs and why, what to do about the rest."""

from __future__ import annotations

import argparse
import json
import sys
import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .colour import has_colour, paint
from .failures import EXIT_FAILED, EXIT_OK

if TYPE_CHECKING:
    from ..diagnostics import Diagnosis

WIDTH = 80


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `doctor` to the command line."""
    parser = commands.add_parser(
        "doctor",
        help="what works on this machine, and what to do about the rest",
        description="Looks at all that decides whether agents can run here. Exit code 1 when they can't.",
    )
    parser.add_argument("--json", action="store_true", help="print the whole report as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Print the report. Returns 1 when no engine can run the main job, else 0."""
    from ..diagnostics import diagnose
    from .status import waiting

    with waiting("looking at this machine"):
        found = diagnose()
    print(json.dumps(found.as_dict(), indent=2) if args.json else _coloured(render(found), found.ok))
    return EXIT_OK if found.ok else EXIT_FAILED


def _coloured(report: str, ok: bool) -> str:
    """Titles stand out, and so does whether agents run, where standard output is a terminal."""
    if not has_colour(sys.stdout):
        return report
    lines = report.split("\n")
    shown = [line if line.startswith(" ") or not line else paint(line, "title", sys.stdout) for line in lines]
    return "\n".join([shown[0], paint(lines[1], "good" if ok else "bad", sys.stdout), *shown[2:]])


def render(found: Diagnosis) -> str:
    """The report for people, no line wider than 80 columns (paths that are longer are not cut)."""
    sections = [
        ("Verdict", _verdict(found)),
        ("Python", _python(found)),
        ("Native library", _native(found.native)),
        ("Places tried", _places(found.native["attempts"])),
        ("OpenSSL 1.1", _openssl(found.native)),
        ("Shared names", _clashes(found.native["clashes"])),
        ("Built-in engine", _embedded(found)),
    ]
    blocks = [
        "\n".join([title, *(line for text in lines for line in _wrap(text))])
        for title, generator in sections
        if (lines := list(generator))
    ]
    return "\n\n".join(blocks)


def _verdict(found: Diagnosis) -> Iterator[str]:
    if found.ok:
        yield f"agents run, on the {_name(found.engine)}"
    else:
        yield "agents can't run here"
    yield f"why: {found.why}"
    if found.requested != "auto":
        yield f"GOPHER_MCP_ENGINE={found.requested}"
    if found.remedy:
        yield f"next: {found.remedy}"


def _name(engine: str | None) -> str:
    return "native library" if engine == "native" else "built-in (embedded) engine"


def _python(found: Diagnosis) -> Iterator[str]:
    python, package = found.python, found.package
    yield f"{python['implementation']} {python['version']} on {python['platform']} {python['machine']}" + (
        f", {python['libc']}" if python["libc"] else ""
    )
    yield python["executable"]
    yield f"gopher-mcp-python {package['version']}"
    if package["extension"]:
        yield f"extension module: {package['extension']}"
        sizes = ", ".join(
            f"{name.removeprefix('gopher_orch_')} {size}" for name, size in package["struct_sizes"].items()
        )
        yield f"struct sizes in bytes: {sizes}"
    else:
        yield f"extension module can't be imported: {package['extension_error']}"


def _native(native: dict[str, Any]) -> Iterator[str]:
    if native["path"] is None and not native["opened"]:
        yield f"{native['package'] or 'no native package'}: not usable" if native["package"] else "not installed"
    else:
        version = native["version"] or "unknown version"
        yield f"libgopher-orch {version}" + (
            f" (told by the {native['version_source']})" if native["version_source"] else ""
        )
        yield f"{native['path']} (found via {native['found_via']})"
        yield "opens: " + ("yes" if native["opened"] else f"no, {_why_not(native)}")
    verdict = native["verdict"]
    if verdict:
        yield f"elicitation: {_yes(verdict['elicitation'], verdict['certain'])}, {verdict['evidence']}"
        yield f"retry after sign-in: {_yes(verdict['retry_fix'])}; run events: {_yes(verdict['events'])}"
        yield f"verdict: {verdict['summary']}"
        yield from (f"note: {note}" for note in verdict["notes"])
        lacking = [name for name, there in native["symbols"].items() if not there]
        have = len(native["symbols"]) - len(lacking)
        yield f"functions: {have} of {len(native['symbols'])}" + (f"; missing: {', '.join(lacking)}" if lacking else "")
    if native["missing"]:
        yield f"shared libraries missing: {', '.join(native['missing'])}"


def _why_not(native: dict[str, Any]) -> str:
    reasons = (place["reason"] for place in native["attempts"] if place["path"] == native["path"])
    return next(filter(None, reasons), None) or (native["error"] or "not tried").splitlines()[0]


def _yes(value: bool | None, certain: bool = True) -> str:
    if value is None:
        return "not known"
    return ("yes" if value else "no") if certain else ("probably" if value else "probably not")


def _places(attempts: list[dict[str, Any]]) -> Iterator[str]:
    for attempt in attempts:
        version = f" ({attempt['version']})" if attempt["version"] else ""
        place = "" if attempt["path"] == "-" else f" {attempt['path']}{version}"
        yield f"{attempt['found_via']}:{place} - {attempt['reason'] or 'usable'}"


def _openssl(native: dict[str, Any]) -> Iterator[str]:
    """Only where it matters: one that serves, or every place in which it was looked for."""
    serving = [attempt for attempt in native["openssl11"] if attempt["reason"] is None]
    if serving:
        yield f"{serving[0]['path']} (found via {serving[0]['found_via']})"
    elif native["openssl11"]:
        yield "not found in:"
        there = [attempt for attempt in native["openssl11"] if "no such file or folder" not in attempt["reason"]]
        yield from (f"  {attempt['path']} - {attempt['reason']}" for attempt in there)
        if len(there) < len(native["openssl11"]):
            yield f"  {len(native['openssl11']) - len(there)} more folders, which do not exist"
        yield "GOPHER_MCP_OPENSSL11_PATH (a file or a folder) names one elsewhere"


def _clashes(clashes: list[dict[str, Any]]) -> Iterator[str]:
    """Libraries that the native package and this machine both have under one name."""
    first = sorted(clash["soname"] for clash in clashes if clash["opened_first"])
    kept = [clash for clash in clashes if not clash["opened_first"] and not clash["reason"].startswith("both copies")]
    if first:
        yield f"this machine's copies are opened first, so that other modules keep working: {', '.join(first)}"
    yield from (f"{clash['soname']}: {clash['reason']}" for clash in kept)


def _embedded(found: Diagnosis) -> Iterator[str]:
    embedded = found.embedded
    yield f"usable, mcp {embedded['mcp']}" if embedded["usable"] else f"not usable: {embedded['reason']}"
    for name, provider in found.providers.items():
        version = f" {provider['version']}" if provider["version"] else ""
        yield f"{name}: " + (f"available{version}" if provider["available"] else f"not installed; {provider['remedy']}")


def _wrap(text: str) -> list[str]:
    indent = "  " + " " * (len(text) - len(text.lstrip()))
    return textwrap.wrap(
        text.strip(),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent + "  ",
        break_long_words=False,
        break_on_hyphens=False,
    ) or [indent]
