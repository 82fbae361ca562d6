"""When and on what kind of machine something was measured. Nothing in it names one machine."""

from __future__ import annotations

import os
import platform
import sysconfig
from datetime import datetime, timezone
from importlib import metadata
from typing import Any

_PACKAGES = ("gopher-mcp-python", "mcp")


def about() -> dict[str, Any]:
    """Date (UTC), system and processor, cores, load before the beginning (mean of a minute), versions."""
    return {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count(),
        "load_before": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
        "versions": {"CPython": python(), **{name: _version(name) for name in _PACKAGES}},
    }


def python() -> str:
    """The version of the interpreter, and whether it has no GIL."""
    return platform.python_version() + (" free-threaded" if sysconfig.get_config_var("Py_GIL_DISABLED") else "")


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
