"""Colour where a person sees it: on a terminal, unless NO_COLOR says no; FORCE_COLOR says yes anywhere.

Both count when they are not empty, and NO_COLOR is the stronger one (https://no-color.org, https://force-color.org).
"""

from __future__ import annotations

import os
import sys
from typing import Literal, TextIO

__all__ = ["has_colour", "paint"]

_CODES = {"failure": "1;31", "good": "32", "bad": "31", "title": "1"}


def has_colour(stream: TextIO | None) -> bool:
    """Whether this stream is written to in colour."""
    if stream is None or os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    if sys.platform == "win32" and not (os.environ.get("WT_SESSION") or os.environ.get("TERM")):
        return False  # the old console shows the codes themselves
    try:
        return stream.isatty() and os.environ.get("TERM") != "dumb"
    except ValueError:  # it is closed
        return False


def paint(text: str, style: Literal["failure", "good", "bad", "title"], stream: TextIO | None) -> str:
    """`text` in the colour of what it says, where the stream has colours. It must be harmless already."""
    return f"\x1b[{_CODES[style]}m{text}\x1b[0m" if has_colour(stream) else text
