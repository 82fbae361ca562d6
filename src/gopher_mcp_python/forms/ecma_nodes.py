"""What a pattern is made of: the parser's result."""

from __future__ import annotations

from dataclasses import dataclass

from .ecma_sets import Members


@dataclass(frozen=True)
class Text:
    """One character, as it stands."""

    text: str


@dataclass(frozen=True)
class OneOf:
    """One character of a set."""

    members: Members


@dataclass(frozen=True)
class Edge:
    """`^`, `$`, `\\b` (written b) or `\\B` (B)."""

    kind: str


@dataclass(frozen=True)
class Back:
    """`\\1` or `\\k<name>`. A name is looked up when the whole pattern has been read."""

    group: int | str


@dataclass(frozen=True)
class Group:
    """`(...)`, and `(?:...)` with the number 0."""

    body: Node
    number: int


@dataclass(frozen=True)
class Look:
    """`(?=...)`, `(?!...)`, `(?<=...)`, `(?<!...)`."""

    body: Node
    behind: bool
    negative: bool


@dataclass(frozen=True)
class Repeat:
    """A quantified term. `groups`: the first capturing group in it, and the one after the last."""

    body: Node
    least: int
    most: int | None
    greedy: bool
    groups: tuple[int, int]


@dataclass(frozen=True)
class Sequence:
    """One after the other; none: the empty pattern."""

    items: tuple[Node, ...]


@dataclass(frozen=True)
class Choice:
    """`a|b|c`."""

    options: tuple[Node, ...]


Node = Text | OneOf | Edge | Back | Group | Look | Repeat | Sequence | Choice


@dataclass(frozen=True)
class Parsed:
    """A whole pattern: its tree, how many capturing groups it has, and the numbers of the named ones."""

    tree: Node
    groups: int
    names: dict[str, int]
