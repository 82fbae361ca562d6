"""From a pattern's tree to the steps that ecma_machine.py takes.

The program is as long as the pattern, whatever its quantifiers say: `(a{1000}){1000}` is two counters, not a million
steps. Registers hold the groups' places, and the counters and places of loops and lookarounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from .ecma_nodes import Back, Choice, Edge, Group, Look, Node, OneOf, Parsed, Repeat, Sequence, Text
from .ecma_sets import Members


class Op(IntEnum):
    """The steps. `a` and `b` stand for what each needs."""

    TEXT = 0  # the text a, b characters long
    ONE = 1  # a character of the set a
    RUN = 2  # as many of the set a as there are, b = (least, most)
    FORK = 3  # go on; should that fail, at a
    JUMP = 4  # at a
    KEEP = 5  # the place, in register a
    CLOSE = 6  # register b: (place in register a, this place), the smaller first
    START = 7  # of the loop a: no turns yet
    TURN = 8  # of the loop a: one more, or no more
    ENTER = 9  # the body of the loop a
    AGAIN = 10  # the body of the loop a is done
    EDGE = 11  # the edge a
    BACK = 12  # the text of the group in register a; b: read backwards
    LOOK = 13  # registers a: what must fit here
    LOOKED = 14  # registers a: it did
    SHUN = 15  # registers a: what must not fit here; go on at b when it does not
    SHUNNED = 16  # registers a: it did
    BACK_TEXT = 17  # as TEXT, backwards
    BACK_ONE = 18  # as ONE, backwards
    MATCH = 19


Step = tuple[int, Any, Any]


@dataclass(slots=True)
class Loop:
    """A quantifier: where its counter and the place of its last turn are, and which groups each turn forgets."""

    counter: int
    place: int
    least: int
    most: int | None
    greedy: bool
    groups: range
    after: int = 0


@dataclass(frozen=True, slots=True)
class Program:
    """Steps, the number of registers, whether it fits at the beginning only, and what its first character must be
    (None: unknown, or there may be none)."""

    steps: tuple[Step, ...]
    registers: int
    anchored: bool
    first: Members | None


def build(parsed: Parsed) -> Program:
    """The program of a pattern."""
    builder = _Builder(parsed)
    builder.add(parsed.tree, False)
    builder.put(Op.MATCH)
    return Program(tuple(builder.steps), builder.registers, _is_anchored(parsed.tree), _first(parsed.tree))


class _Builder:
    def __init__(self, parsed: Parsed) -> None:
        self.steps: list[Step] = []
        self.registers = parsed.groups + 1  # register n holds group n
        self._names = parsed.names

    def put(self, op: Op, a: Any = None, b: Any = None) -> int:
        """Adds a step. Returns its number."""
        self.steps.append((int(op), a, b))
        return len(self.steps) - 1

    def _register(self) -> int:
        self.registers += 1
        return self.registers - 1

    def add(self, node: Node, back: bool) -> None:
        """Adds the steps of a node; `back`: right to left, as in a lookbehind."""
        if isinstance(node, Text):
            self.put(Op.BACK_TEXT if back else Op.TEXT, node.text, len(node.text))
        elif isinstance(node, OneOf):
            self.put(Op.BACK_ONE if back else Op.ONE, node.members)
        elif isinstance(node, Edge):
            self.put(Op.EDGE, node.kind)
        elif isinstance(node, Back):
            self.put(Op.BACK, self._names[node.group] if isinstance(node.group, str) else node.group, back)
        elif isinstance(node, Sequence):
            for item in reversed(node.items) if back else _joined(node.items):
                self.add(item, back)
        elif isinstance(node, Choice):
            self._choice(node, back)
        elif isinstance(node, Group):
            self._group(node, back)
        elif isinstance(node, Look):
            self._look(node)
        else:
            self._repeat(node, back)

    def _choice(self, node: Choice, back: bool) -> None:
        jumps = []
        for option in node.options[:-1]:
            fork = self.put(Op.FORK)
            self.add(option, back)
            jumps.append(self.put(Op.JUMP))
            self.steps[fork] = (Op.FORK, len(self.steps), None)
        self.add(node.options[-1], back)
        for jump in jumps:
            self.steps[jump] = (Op.JUMP, len(self.steps), None)

    def _group(self, node: Group, back: bool) -> None:
        if not node.number:
            self.add(node.body, back)
            return
        begun = self._register()
        self.put(Op.KEEP, begun)
        self.add(node.body, back)
        self.put(Op.CLOSE, begun, node.number)

    def _look(self, node: Look) -> None:
        held = (self._register(), self._register())
        opening = self.put(Op.SHUN if node.negative else Op.LOOK, held)
        self.add(node.body, node.behind)
        self.put(Op.SHUNNED if node.negative else Op.LOOKED, held)
        self.steps[opening] = (self.steps[opening][0], held, len(self.steps))

    def _repeat(self, node: Repeat, back: bool) -> None:
        if node.most == 0:
            return
        members = _single(node.body)
        if members is not None and node.greedy and not back:
            self.put(Op.RUN, members, (node.least, node.most))
            return
        loop = Loop(self._register(), self._register(), node.least, node.most, node.greedy, range(*node.groups))
        self.put(Op.START, loop)
        turn = self.put(Op.TURN, loop)
        self.put(Op.ENTER, loop)
        self.add(node.body, back)
        self.put(Op.AGAIN, loop, turn)
        loop.after = len(self.steps)


def _joined(items: tuple[Node, ...]) -> list[Node]:
    """Neighbouring characters as one text."""
    joined: list[Node] = []
    for item in items:
        last = joined[-1] if joined else None
        if isinstance(item, Text) and isinstance(last, Text):
            joined[-1] = Text(last.text + item.text)
        else:
            joined.append(item)
    return joined


def _single(node: Node) -> Members | None:
    """The set, where a node is exactly one character and no group to remember."""
    while isinstance(node, Group) and not node.number:
        node = node.body
    if isinstance(node, OneOf):
        return node.members
    return Members([(ord(node.text), ord(node.text))]) if isinstance(node, Text) else None


def _is_anchored(node: Node) -> bool:
    if isinstance(node, Sequence):
        return bool(node.items) and _is_anchored(node.items[0])
    if isinstance(node, Choice):
        return all(map(_is_anchored, node.options))
    if isinstance(node, Group):
        return _is_anchored(node.body)
    return isinstance(node, Edge) and node.kind == "^"


def _first(node: Node) -> Members | None:
    if isinstance(node, Sequence):
        return _first(node.items[0]) if node.items else None
    if isinstance(node, Group) or (isinstance(node, Repeat) and node.least):
        return _first(node.body)
    return _single(node)
