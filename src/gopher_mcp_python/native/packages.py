"""The vendor's packages, found by path and by the name of their metadata folder: never imported."""

from __future__ import annotations

import os
from importlib.machinery import PathFinder

from . import names


def package_folder(import_name: str) -> str | None:
    """The folder of an installed package, found by path and never imported."""
    try:
        spec = PathFinder.find_spec(import_name)
    except (ImportError, ValueError):
        return None
    if spec is None:
        return None
    if spec.origin and spec.origin != "namespace":
        return os.path.dirname(spec.origin)
    return next(iter(spec.submodule_search_locations or ()), None)


def package_version(folder: str) -> str | None:
    """The version of the distribution that owns the package folder, told by the name of its metadata folder."""
    parent, name = os.path.split(folder)
    try:
        entries = os.listdir(parent)
    except OSError:
        return None
    prefix, suffix = name + "-", ".dist-info"
    versions = [
        entry[len(prefix) : -len(suffix)] for entry in entries if entry.startswith(prefix) and entry.endswith(suffix)
    ]
    return max(versions, key=names.version_key, default=None)
