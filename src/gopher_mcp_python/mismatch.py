"""One NativeMismatchWarning a process: said at import or on first use, whichever notices first."""

from __future__ import annotations

import sys

_TO_SAY = [True]  # once: taking it out is atomic


def warn_once(reason: str) -> None:
    """Warns that an installed native package can't be used, unless this process has said so already. The warning points
    at the line outside of this package that brought it about."""
    try:
        _TO_SAY.pop()
    except IndexError:
        return
    import warnings

    from .errors import NativeMismatchWarning

    warnings.warn(reason, NativeMismatchWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The stack level of the first frame that is not ours, as `warnings.warn` in our caller counts it: without the
    frames of the import system."""
    package = __name__.partition(".")[0]
    level, frame = 0, sys._getframe(1)
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if not name.startswith("importlib"):
            level += 1
            if name.partition(".")[0] != package:
                return level
        frame = frame.f_back  # type: ignore[assignment]
    return level
