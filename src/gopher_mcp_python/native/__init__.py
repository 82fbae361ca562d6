"""The vendor's native library: where it is, whether it can work here, and opening it.

``quick_check`` is all that an import of the package needs; everything else is loaded on first use.
"""

from __future__ import annotations

from .quick import quick_check

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the time that importing typing takes
if TYPE_CHECKING:
    from .loading import LoadedLibrary, forget, load, loaded

__all__ = ["LoadedLibrary", "forget", "load", "loaded", "quick_check"]


def __getattr__(name: str) -> object:
    if name in ("LoadedLibrary", "forget", "load", "loaded"):
        from . import loading

        return getattr(loading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
