"""Prints the requirements of pyproject.toml, one a line: the build's, the package's and those of the extras named.

`make` installs these without building the package, which it then builds by itself with its own settings.
"""

from __future__ import annotations

import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    from pip._vendor import tomli as tomllib


def _extra(project: dict[str, Any], name: str) -> list[str]:
    """An extra's requirements, with references to the project's own extras replaced by what they stand for."""
    found = []
    for requirement in project["optional-dependencies"][name]:
        own = re.fullmatch(rf"{project['name']}\[(.+)\]", requirement.replace(" ", ""))
        found += [item for part in own[1].split(",") for item in _extra(project, part)] if own else [requirement]
    return found


def _pyproject() -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())


def of_package() -> list[str]:
    """What the package itself requires, without extras."""
    found: list[str] = _pyproject()["project"]["dependencies"]
    return found


def extras() -> list[str]:
    """The names of its extras."""
    return list(_pyproject()["project"]["optional-dependencies"])


def main(extras: list[str]) -> None:
    data = _pyproject()
    project = data["project"]
    listed = [*data["build-system"]["requires"], *project["dependencies"]]
    for name in extras:
        listed += _extra(project, name)
    print("\n".join(dict.fromkeys(filter(None, map(_for_this_python, listed)))))


def _for_this_python(requirement: str) -> str | None:
    """What stands for a requirement on a free-threaded Python, for which PySide6 and psycopg-binary have no wheels."""
    if not sysconfig.get_config_var("Py_GIL_DISABLED"):
        return requirement
    return None if requirement.startswith("PySide6") else requirement.replace("psycopg[binary]", "psycopg[c]")


if __name__ == "__main__":
    main(sys.argv[1:])
