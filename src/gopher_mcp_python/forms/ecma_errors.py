"""What can be wrong with a pattern, or with a search for it."""

from __future__ import annotations


class PatternError(ValueError):
    """The text is no regular expression of ECMA-262. Says what is wrong and where, with a piece of it."""


class PropertyUnknownHere(PatternError):
    """ECMA-262 has the property of a `\\p{...}`, and the installed `regex` library has not."""


class PatternTimeout(ValueError):
    """The search was given up: it takes too many steps. Holds neither the pattern nor the text."""

    def __init__(self) -> None:
        super().__init__("the pattern takes too long on this text")
