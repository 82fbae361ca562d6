"""Reading a pattern character by character, and its escapes and classes (ECMA-262 22.2.1 and Annex B.1.2)."""

from __future__ import annotations

import re
from typing import NoReturn

from .ecma_errors import PatternError
from .ecma_sets import CLASS_ESCAPES, Members, property_members

_SHOWN = 12  # characters of the pattern in an error, before and after the place
_CONTROLS = {"f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_SYNTAX = frozenset("^$\\.*+?()[]{}|/")
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_DIGITS = frozenset("0123456789")
_HEX = re.compile("[0-9a-fA-F]+")
_OCTAL = re.compile("[0-3][0-7]{0,2}|[4-7][0-7]?")
_PROPERTY = re.compile(r"\{(?:([A-Za-z_]+)=)?([A-Za-z0-9_]+)\}")


class Scanner:
    """A place in a pattern.

    Args:
        source: the pattern: code points where `unicode`, otherwise UTF-16 code units.
        unicode: the grammar of the u flag; otherwise that of Annex B without the flag.
        named: `\\k` stands for a group's name only (always so with the u flag).
    """

    def __init__(self, source: str, *, unicode: bool, named: bool) -> None:
        self.source = source
        self.at = 0
        self.unicode = unicode
        self.named = named or unicode

    def peek(self, ahead: int = 0) -> str:
        """The character there; empty at the end."""
        return self.source[self.at + ahead : self.at + ahead + 1]

    def eat(self, text: str) -> bool:
        """Steps over `text`, if it is next."""
        if not self.source.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    def next(self) -> str:
        """Steps over one character, which is there."""
        self.at += 1
        return self.source[self.at - 1]

    def fail(self, what: str, at: int | None = None) -> NoReturn:
        """Raises PatternError: `what`, at the place or here."""
        place = self.at if at is None else at
        piece = self.source[max(0, place - _SHOWN) : place + _SHOWN]
        raise PatternError(f"{what} at position {place + 1}, near {piece!a}")

    # ---- escapes: self.at is behind the backslash

    def class_escape(self) -> Members | None:
        """The set of `\\d`, `\\w`, `\\s`, `\\p{...}` and their opposites, if that is next."""
        letter = self.peek()
        if letter and letter in CLASS_ESCAPES:
            self.at += 1
            return CLASS_ESCAPES[letter]
        return self._property() if self.unicode and letter and letter in "pP" else None

    def _property(self) -> Members:
        start = self.at - 1
        negated = self.next() == "P"
        found = _PROPERTY.match(self.source, self.at)
        if found is None:
            self.fail("\\p without a property, as in \\p{L},", start)
        self.at = found.end()
        name, value = (found[1], found[2]) if found[1] else (found[2], None)
        members = property_members(name, value, negated=negated)
        if members is None:
            self.fail("a Unicode property that does not exist", start)
        return members

    def character_escape(self, *, in_class: bool) -> int:
        """The code of an escape that stands for one character."""
        letter = self.peek()
        if not letter:
            self.fail("a backslash with nothing behind it")
        if letter in _CONTROLS:
            self.at += 1
            return _CONTROLS[letter]
        if letter == "c":
            return self._control(in_class)
        if letter in _DIGITS:
            return self._octal()
        if letter == "x" or letter == "u":
            self.at += 1
            code = self._hex(2) if letter == "x" else self.unicode_escape(braces=self.unicode, join=self.unicode)
            if code is None and self.unicode:
                self.fail(f"an incomplete \\{letter}")
            return ord(letter) if code is None else code
        return self._identity(in_class)

    def _identity(self, in_class: bool) -> int:
        letter = self.peek()
        if self.unicode:
            allowed = letter in _SYNTAX or (in_class and letter == "-")
        else:
            allowed = not (self.named and letter == "k")
        if not allowed:
            self.fail("an escape that does not exist")
        return ord(self.next())

    def _control(self, in_class: bool) -> int:
        letter = self.peek(1)
        annex_b = not self.unicode and in_class and letter and (letter in _DIGITS or letter == "_")
        if letter in _LETTERS or annex_b:
            self.at += 2
            return ord(letter) % 32
        if self.unicode:
            self.fail("\\c without a letter")
        return ord("\\")  # the c is read as a character of its own

    def _octal(self) -> int:
        if self.peek() == "0" and self.peek(1) not in _DIGITS:
            self.at += 1
            return 0
        if self.unicode:
            self.fail("an octal escape")
        found = _OCTAL.match(self.source, self.at)
        if found is None:  # \8 and \9
            return ord(self.next())
        self.at = found.end()
        return int(found[0], 8)

    def _hex(self, digits: int) -> int | None:
        piece = self.source[self.at : self.at + digits]
        if len(piece) < digits or not _HEX.fullmatch(piece):
            return None
        self.at += digits
        return int(piece, 16)

    def unicode_escape(self, *, braces: bool, join: bool) -> int | None:
        """What follows `\\u`: four digits (two surrogates are one character if `join`), or `{...}` if `braces`."""
        if braces and self.peek() == "{":
            found = _HEX.match(self.source, self.at + 1)
            if found is None or self.source[found.end() : found.end() + 1] != "}":
                return None
            digits = found[0].lstrip("0") or "0"
            if len(digits) > 6 or int(digits, 16) > 0x10FFFF:
                return None
            self.at = found.end() + 1
            return int(digits, 16)
        code = self._hex(4)
        if code is None or not (join and 0xD800 <= code <= 0xDBFF and self.source.startswith("\\u", self.at)):
            return code
        behind = self.at
        self.at += 2
        low = self._hex(4)
        if low is not None and 0xDC00 <= low <= 0xDFFF:
            return 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00)
        self.at = behind
        return code

    # ---- classes: self.at is behind the bracket

    def character_class(self) -> Members:
        """A class, up to and with its closing bracket."""
        start = self.at - 1
        negated = self.eat("^")
        ranges: list[tuple[int, int]] = []
        others: list[Members] = []
        while not self.eat("]"):
            if not self.peek():
                self.fail("a class without its closing bracket", start)
            self._class_part(ranges, others)
        return Members(ranges, {id(other): other for other in others}.values(), negated=negated)

    def _class_part(self, ranges: list[tuple[int, int]], others: list[Members]) -> None:
        """One character, one set, or a range."""
        start = self.at
        atoms = [self._class_atom()]
        if self.peek() == "-" and self.peek(1) not in ("", "]"):
            self.at += 1
            atoms.append(self._class_atom())
        codes = [atom for atom in atoms if isinstance(atom, int)]
        others += [atom for atom in atoms if not isinstance(atom, int)]
        if len(atoms) == 2 and len(codes) == 2:
            if codes[0] > codes[1]:
                self.fail("a range that runs backwards", start)
            ranges.append((codes[0], codes[1]))
            return
        if len(atoms) == 2:
            if self.unicode:
                self.fail("a set as an end of a range", start)
            codes.append(ord("-"))
        ranges += [(code, code) for code in codes]

    def _class_atom(self) -> int | Members:
        if not self.eat("\\"):
            return ord(self.next())
        if self.eat("b"):
            return 8
        members = self.class_escape()
        return self.character_escape(in_class=True) if members is None else members
