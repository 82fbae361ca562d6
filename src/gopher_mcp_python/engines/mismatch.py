"""One NativeMismatchWarning a process: said at import or on first use, whichever notices first."""

from __future__ import annotations

_said = False


def warn_once(reason: str, *, stacklevel: int = 3) -> None:
    """Warns that an installed native package can't be used, unless this process has said so already."""
    global _said
    if _said:
        return
    _said = True
    import warnings

    from ..errors import NativeMismatchWarning

    warnings.warn(reason, NativeMismatchWarning, stacklevel=stacklevel + 1)
