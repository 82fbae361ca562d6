"""The grammar of patterns (ECMA-262 22.2.1; without the u flag, Annex B.1.2): a text becomes a tree.

As of ES2024: no modifiers `(?i:...)` and no two groups of one name.
"""

from __future__ import annotations

import re

from .ecma_nodes import Back, Choice, Edge, Group, Look, Node, OneOf, Parsed, Repeat, Sequence, Text
from .ecma_scan import Scanner
from .ecma_sets import DOT, property_members

MAX_NESTING = 50  # groups inside each other
_MOST = 2**31 - 1  # what a larger number in {n,m} counts as
_BRACES = re.compile(r"\{([0-9]+)(,?)([0-9]*)\}")
_NUMBER = re.compile("[1-9][0-9]*")
_LOOKS = {"?=": (False, False), "?!": (False, True), "?<=": (True, False), "?<!": (True, True)}
# Escapes and classes are stepped over; what is left of parentheses begins or ends a group.
_GROUPS = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]?|(\((?!\?)|\(\?<(?![=!]))", re.DOTALL)


def parse(source: str, *, unicode: bool) -> Parsed:
    """The tree of a pattern; code points for the u flag, UTF-16 code units otherwise.

    Raises PatternError.
    """
    opened = [found[1] for found in _GROUPS.finditer(source) if found[1]]
    return _Parser(source, unicode, len(opened), any(len(one) > 1 for one in opened)).whole()


class _Parser(Scanner):
    def __init__(self, source: str, unicode: bool, groups: int, named: bool) -> None:
        super().__init__(source, unicode=unicode, named=named)
        self._groups = groups
        self._opened = 0
        self._names: dict[str, int] = {}
        self._asked: list[tuple[str, int]] = []
        self._depth = 0

    def whole(self) -> Parsed:
        tree = self._choice()
        if self.peek():
            self.fail("a closing parenthesis without an opening one")
        for name, at in self._asked:
            if name not in self._names:
                self.fail("a reference to a group that does not exist", at)
        return Parsed(tree, self._opened, self._names)

    def _choice(self) -> Node:
        options = [self._sequence()]
        while self.eat("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else Choice(tuple(options))

    def _sequence(self) -> Node:
        items: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            items.append(self._term())
        return items[0] if len(items) == 1 else Sequence(tuple(items))

    def _term(self) -> Node:
        start, before = self.at, self._opened
        node = self._atom()
        bounds = self._quantifier()
        if bounds is None:
            return node
        if isinstance(node, Edge) or (isinstance(node, Look) and (self.unicode or node.behind)):
            self.fail("a quantifier behind something that can't be repeated", start)
        greedy = not self.eat("?")
        return Repeat(node, *bounds, greedy, (before + 1, self._opened + 1))

    def _quantifier(self) -> tuple[int, int | None] | None:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self.eat(sign):
                return bounds
        found = _BRACES.match(self.source, self.at)
        if found is None or (found[3] and not found[2]):
            return None
        least = _count(found[1])
        most = (_count(found[3]) if found[3] else None) if found[2] else least
        if most is not None and least > most:
            self.fail("a quantifier whose numbers are out of order")
        self.at = found.end()
        return least, most

    def _atom(self) -> Node:
        start = self.at
        if self._quantifier() is not None:
            self.fail("a quantifier with nothing before it", start)
        character = self.next()
        if character in "^$":
            return Edge(character)
        if character == ".":
            return OneOf(DOT)
        if character == "(":
            return self._group(start)
        if character == "[":
            return OneOf(self.character_class())
        if character == "\\":
            return self._escape()
        if self.unicode and character in "{}]":
            self.fail(f"a {character} that stands alone (write \\{character})", start)
        return Text(character)

    def _group(self, start: int) -> Node:
        self._depth += 1
        if self._depth > MAX_NESTING:
            self.fail(f"more than {MAX_NESTING} groups inside each other", start)
        node = self._group_body(start)
        if not self.eat(")"):
            self.fail("a group without its closing parenthesis", start)
        self._depth -= 1
        return node

    def _group_body(self, start: int) -> Node:
        if self.eat("?:"):
            return Group(self._choice(), 0)
        for opening, (behind, negative) in _LOOKS.items():
            if self.eat(opening):
                return Look(self._choice(), behind, negative)
        self._opened += 1
        number = self._opened
        if self.eat("?"):
            if not self.eat("<"):
                self.fail("a kind of group that does not exist", start)
            name = self._name()
            if name in self._names:
                self.fail("a second group of the same name", start)
            self._names[name] = number
        return Group(self._choice(), number)

    def _escape(self) -> Node:
        letter = self.peek()
        if letter and letter in "bB":
            self.at += 1
            return Edge(letter)
        if letter == "k" and self.named:
            start = self.at - 1
            self.at += 1
            if not self.eat("<"):
                self.fail("\\k without a name, as in \\k<year>,", start)
            self._asked.append((self._name(), start))
            return Back(self._asked[-1][0])
        found = _NUMBER.match(self.source, self.at)
        if found is not None and (self.unicode or _count(found[0]) <= self._groups):
            if _count(found[0]) > self._groups:
                self.fail("a reference to a group that does not exist", self.at - 1)
            self.at = found.end()
            return Back(int(found[0]))
        members = self.class_escape()
        return OneOf(members) if members is not None else Text(chr(self.character_escape(in_class=False)))

    def _name(self) -> str:
        """A group's name, up to and with the `>`."""
        start = self.at
        name = ""
        while not self.eat(">"):
            if not self.peek():
                self.fail("a group's name without its >", start)
            name += chr(self._name_character())
        name = _joined(name)
        if not name or not _starts_name(name[0]) or not all(map(_continues_name, name)):
            self.fail("a group's name that is no identifier", start)
        return name

    def _name_character(self) -> int:
        if not self.eat("\\"):
            return ord(self.next())
        code = self.unicode_escape(braces=True, join=True) if self.eat("u") else None
        if code is None:
            self.fail("an escape that a group's name can't have")
        return code


def _count(digits: str) -> int:
    return _MOST if len(digits) > 10 else min(int(digits), _MOST)


def _joined(text: str) -> str:
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _starts_name(character: str) -> bool:
    return character in "$_" or _has(character, "ID_Start")


def _continues_name(character: str) -> bool:
    return character in "$\u200c\u200d" or _has(character, "ID_Continue")


def _has(character: str, name: str) -> bool:
    if character.isascii():
        return character.isidentifier() or (name == "ID_Continue" and character.isdigit())
    members = property_members(name, None, negated=False)
    return members is not None and members[character]


