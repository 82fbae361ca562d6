"""The vendor's native library: where it is, whether it can work here, and opening it.

``quick_check`` is all that an import of the package needs; everything else is loaded on first use.
"""

from __future__ import annotations

from ..lazily import names_of

TYPE_CHECKING = False  # what typing.TYPE_CHECKING is, without the time that importing typing takes
if TYPE_CHECKING:
    from .loading import LoadedLibrary, forget, load, loaded
    from .quick import quick_check

__all__ = ["LoadedLibrary", "forget", "load", "loaded", "quick_check"]

__getattr__, __dir__ = names_of(
    __name__, {"loading": ("LoadedLibrary", "forget", "load", "loaded"), "quick": ("quick_check",)}
)
