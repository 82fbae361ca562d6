"""What works on this machine, which engine runs and why, and what to do about the rest."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import subprocess
import sys
import warnings
from dataclasses import asdict, dataclass, field
from typing import Any

from . import sdk_version

_PROBE = "from gopher_mcp_python.diagnostics import _probe; _probe()"
_PROBE_SECONDS = 60
_REINSTALL = "pip install --force-reinstall --no-deps gopher-mcp-python"
_PROVIDER_EXTRAS = {"AnthropicProvider": "anthropic", "OpenAIProvider": "openai"}


@dataclass(slots=True)
class Diagnosis:
    """The whole report; `as_dict` gives it as plain data. `ok` says whether the main job can run."""

    ok: bool
    engine: str | None
    why: str
    requested: str
    remedy: str | None
    python: dict[str, Any]
    package: dict[str, Any]
    native: dict[str, Any]
    embedded: dict[str, Any]
    providers: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def diagnose() -> Diagnosis:
    """Looks at everything that decides whether agents can run here.

    The vendor's library is opened in a child process, so that the calling program stays as it is; a program that has it
    open already is told about its own.

    Returns:
        A Diagnosis. Nothing is raised for what does not work: the report says it.
    """
    probe = _probe_result() if _is_loaded() else _probe_in_child()
    native, embedded = probe["native"], _embedded()
    requested, package = _requested(), _package()
    engine, why = probe["engine"], probe["why"]
    if package["extension_error"]:  # both engines need it
        engine, why = None, f"the extension module can't be imported: {package['extension_error']}"
    elif engine == "embedded" and not embedded["usable"]:
        engine, why = None, f"{why}; the built-in engine can't run: {embedded['reason']}"
    return Diagnosis(
        ok=engine is not None,
        engine=engine,
        why=why,
        requested=requested,
        remedy=_REINSTALL if package["extension_error"] else _remedy(engine, requested, native, embedded),
        python=_python(),
        package=package,
        native=native,
        embedded=embedded,
        providers=_providers(),
    )


def _python() -> dict[str, Any]:
    return {
        "version": platform.python_version(),
        "implementation": platform.python_implementation(),
        "executable": sys.executable,
        "platform": sys.platform,
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()).strip() or None,
    }


def _package() -> dict[str, Any]:
    from . import __version__

    found: dict[str, Any] = {"version": __version__, "extension": None, "extension_error": None, "struct_sizes": {}}
    try:
        from .ffi import _bridge
    except ImportError as error:
        found["extension_error"] = str(error)
        return found
    found["extension"] = getattr(_bridge, "__file__", None)
    found["struct_sizes"] = _bridge.struct_sizes()
    return found


def _embedded() -> dict[str, Any]:
    reason = None
    if not _has_sdk():
        reason = "the package mcp is not installed"
    elif (old := sdk_version.trouble()) is not None:
        reason = f"it {old}"
    return {"usable": reason is None, "mcp": _installed("mcp"), "reason": reason}


def _has_sdk() -> bool:
    return importlib.util.find_spec("mcp") is not None


def _installed(distribution: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def _providers() -> dict[str, dict[str, Any]]:
    """What the built-in engine can use; the native library has its providers in itself."""
    result: dict[str, dict[str, Any]] = {"DirectProvider": {"available": True, "version": None, "remedy": None}}
    for provider, extra in _PROVIDER_EXTRAS.items():
        there = importlib.util.find_spec(extra) is not None
        result[provider] = {
            "available": there,
            "version": _installed(extra) if there else None,
            "remedy": None if there else f"pip install 'gopher-mcp-python[{extra}]'",
        }
    return result


def _is_loaded() -> bool:
    from .native import loaded

    try:
        return loaded() is not None
    except ImportError:
        return False


def _probe() -> None:
    """The child process: one line of JSON on standard output, after whatever the library prints."""
    warnings.simplefilter("ignore")
    print("\n" + json.dumps(_probe_result()), flush=True)


def _probe_result() -> dict[str, Any]:
    native = _native()
    engine, why = _choice(native)
    return {"native": native, "engine": engine, "why": why}


def _probe_in_child() -> dict[str, Any]:
    environ = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "PYTHONWARNINGS": "ignore",
    }
    try:
        done = subprocess.run(
            [sys.executable, "-c", _PROBE],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            timeout=_PROBE_SECONDS,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return _untried(f"the native library could not be tried in a child process: {error}")
    lines = done.stdout.strip().splitlines()
    if done.returncode == 0 and lines:
        result: dict[str, Any] = json.loads(lines[-1])
        return result
    end = "was killed by signal" if done.returncode < 0 else "ended with exit code"
    said = (done.stderr.strip().splitlines() or ["nothing was printed"])[-1]
    return _killed(f"the process that opened it {end} {abs(done.returncode)}: {said}")


def _killed(error: str) -> dict[str, Any]:
    """Opening the library ended the child process: it would end this one, too, unless nobody opens it."""
    native = _native(open_it=False)
    native["error"] = error
    if _requested() == "embedded":
        return {"native": native, "engine": "embedded", "why": "asked for by GOPHER_MCP_ENGINE"}
    from .native.names import embedded_command

    native["remedy"] = embedded_command()
    return {"native": native, "engine": None, "why": f"the native library can't be opened: {error}"}


def _untried(error: str) -> dict[str, Any]:
    """No child process could be had: what the files say is all there is."""
    native = _native(open_it=False)
    native["error"] = error
    usable = native["path"] and native["elicitation"] and not native["missing"] and not native["damaged"]
    engine = "native" if usable and _requested() != "embedded" else "embedded"
    return {"native": native, "engine": engine, "why": f"judged by the files alone, {error}"}


def _requested() -> str:
    return os.environ.get("GOPHER_MCP_ENGINE", "").strip().lower() or "auto"


def _native(*, open_it: bool = True) -> dict[str, Any]:
    from .native import failure, loading, search

    report, library, verdict, error = search.find(), None, None, None
    found = report.chosen  # before opening: a failure takes the place out of the choice
    if open_it:
        try:
            library, report, error = loading.attempt()
        except ImportError as reason:
            error = f"the extension module can't be imported: {reason}"
    if library is not None:
        verdict = library.verdict
    elif found is not None:  # what the file itself says
        if not report.clashes:
            loading.prepare(found, report)
        verdict = loading.judge(found, _exports(found.path), _required())
    return {
        "opened": library is not None,
        "error": error,
        "path": found.path if found else None,
        "version": found.version if found else None,
        "version_source": found.version_source if found else None,
        "found_via": found.found_via if found else None,
        "package": report.package,
        "package_version": report.package_version,
        "symbols": _symbols(library, found.path if found else None),
        "elicitation": verdict.elicitation if verdict else False,
        "retry_fix": verdict.retry_fix if verdict else None,
        "events": verdict.events if verdict else False,
        "verdict": verdict.as_dict() if verdict else None,
        "remedy": failure.remedy(report) if library is None else verdict.remedy if verdict else None,
        **report.as_dict(),
    }


def _symbols(library: Any, path: str | None) -> dict[str, bool]:
    if library is not None:
        return dict(library.library.symbols())
    if path is None:
        return {}
    exported = _exports(path)
    try:
        from .ffi import _bridge

        known = [symbol.name for symbol in _bridge.symbol_table()]
    except ImportError:
        known = sorted(exported)
    return {name: name in exported for name in known}


def _required() -> list[str]:
    try:
        from .ffi import _bridge
    except ImportError:
        return []
    return [symbol.name for symbol in _bridge.symbol_table() if symbol.required]


def _exports(path: str) -> set[str]:
    from .native import elf

    try:
        return set(elf.read(path).exports("gopher_orch_"))
    except (elf.BadLibrary, OSError):
        return set()


def _choice(native: dict[str, Any]) -> tuple[str | None, str]:
    """What `create_*` would choose now for an agent with default options, asked of the same function."""
    from . import engines
    from .errors import AgentError

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            choice = engines.choose(None, explicit_elicitation=False, elicitation_enabled=True)
    except (AgentError, ValueError) as error:
        return None, str(error).splitlines()[0].removesuffix(" Places tried:")
    except ImportError as error:
        return None, f"the extension module can't be imported: {error}"
    if choice.engine == "embedded" and _requested() == "auto" and native["path"] and not native["opened"]:
        reason = next((place["reason"] for place in native["attempts"] if place["path"] == native["path"]), None)
        return choice.engine, f"the installed native library can't be used here: {reason}"
    if choice.engine == "embedded" and _requested() == "auto" and not native["path"]:
        return choice.engine, _passed_over(native) or choice.why
    return choice.engine, choice.why


def _passed_over(native: dict[str, Any]) -> str | None:
    """What became of the one place that counts, where it holds no library that can be used: the one that a variable
    names, else the installed package."""
    variable = native["overridden_by"]
    if not variable and not native["package"]:
        return None
    for place in native["attempts"]:
        if place["found_via"] == (variable or "package") and place["reason"]:
            where = f"{variable} names no library" if variable else f"{native['package']} holds no library"
            return f"{where} that can be used ({place['path']}: {place['reason']})"
    return None


def _remedy(engine: str | None, requested: str, native: dict[str, Any], embedded: dict[str, Any]) -> str | None:
    """The one next command; None when nothing needs doing."""
    if engine is None and requested not in ("auto", "native", "embedded"):
        return "unset GOPHER_MCP_ENGINE"
    if engine is None and not embedded["usable"] and requested != "native":
        return sdk_version.REMEDY if _has_sdk() else "pip install --upgrade gopher-mcp-python"
    if engine == "native" or requested == "embedded" or (native["package"] is None and not native["overridden_by"]):
        return None if engine else "unset GOPHER_MCP_ENGINE"
    remedy: str | None = native["remedy"]
    return remedy
