"""Packages whose names are imported from their modules when somebody uses them.

A package that imports its own modules is a trap for threads: one that imports the package and one that imports a module
of it at the same moment wait for each other, and Python ends that with an ImportError (`_DeadlockError`, a partially
initialized module) in one of them, with the GIL and without. So no package of ours does.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the time that importing typing takes
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["names_of"]


def names_of(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, from its names by the module that has them."""
    home_of = {name: module for module, names in homes.items() for name in names}

    def get(name: str) -> object:
        from importlib import import_module

        module = home_of.get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f".{module}", package), name)
        setattr(sys.modules[package], name, value)
        return value

    def known() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of})

    return get, known
