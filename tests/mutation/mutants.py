"""The changes: comparisons, conditions, arithmetic, numbers, truth values, statements left out.

Not changed: annotations, docstrings, other texts, decorators, imports, `__all__`, what is for type checkers only.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.FloorDiv, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change. `source` is the whole changed module; `was`, `now`: the changed statement's first line, before and
    after."""

    path: Path
    line: int
    what: str
    was: str
    now: str
    source: str

    @property
    def name(self) -> str:
        return f"{self.path.name}:{self.line} {self.what}"


def mutants_of(path: Path) -> list[Mutant]:
    """Every mutant of a module, in the order of its lines."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = []
    for place, (node, statement) in enumerate(_sites(tree)):
        for choice in range(len(_changes(node))):
            changed = copy.deepcopy(tree)
            other, there = list(_sites(changed))[place]
            what, change = _changes(other)[choice]
            was = ast.unparse(statement)
            replacement = change()
            if replacement is not None:
                _replace(changed, there, replacement)
                there = replacement
            now = ast.unparse(there)
            if now == was:
                continue
            line = getattr(node, "lineno", statement.lineno)
            source = ast.unparse(ast.fix_missing_locations(changed))
            found.append(Mutant(path, line, what, *_differing(was, now), source))
    return found


def _differing(was: str, now: str) -> tuple[str, str]:
    for one, other in zip(was.splitlines(), now.splitlines(), strict=False):
        if one != other:
            return one.strip(), other.strip()
    return was.splitlines()[0].strip(), now.splitlines()[0].strip()


def _sites(tree: ast.Module) -> Iterator[tuple[ast.AST, ast.stmt]]:
    """What can be changed, each with the statement that it is in."""
    for statement in tree.body:
        yield from _inside(statement, statement)


def _inside(node: ast.AST, statement: ast.stmt) -> Iterator[tuple[ast.AST, ast.stmt]]:
    if isinstance(node, (ast.Import, ast.ImportFrom)) or _is_for_types(node) or _is_text(node):
        return
    if isinstance(node, ast.stmt):
        statement = node
    if _changes(node):
        yield node, statement
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _inside(child, statement)


def _is_for_types(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    targets = node.targets if isinstance(node, ast.Assign) else ()
    return any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.AST) -> list[tuple[str, Any]]:
    """(what it is, a function that makes it: in place, or with the statement that takes this one's place)."""
    if isinstance(node, ast.Compare):
        return [
            ("comparison", lambda at=at: node.ops.__setitem__(at, _COMPARE[type(node.ops[at])]()))
            for at in range(len(node.ops))
        ]
    if isinstance(node, ast.BoolOp):
        return [("and/or", lambda: setattr(node, "op", ast.Or() if isinstance(node.op, ast.And) else ast.And()))]
    if isinstance(node, (ast.BinOp, ast.AugAssign)) and type(node.op) in _ARITHMETIC and not _is_of_text(node):
        return [("arithmetic", lambda: setattr(node, "op", _ARITHMETIC[type(node.op)]()))]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [("not", lambda: _without_not(node))]
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return [("truth", lambda: setattr(node, "value", not node.value))]
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
        return [("number", lambda: setattr(node, "value", node.value + 1))]
    if isinstance(node, (ast.Break, ast.Continue)):
        return [("break/continue", lambda: ast.Continue() if isinstance(node, ast.Break) else ast.Break())]
    if isinstance(node, ast.Raise) or (isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await))):
        return [("left out", ast.Pass)]
    if isinstance(node, ast.Return) and node.value is not None and not _is_plain(node.value):
        return [("returns None", lambda: setattr(node, "value", ast.Constant(None)))]
    return []


def _without_not(node: ast.UnaryOp) -> None:
    """`not x` becomes `bool(x)`: a node can't take itself out of its parent."""
    inner = node.operand
    node.op, node.operand = ast.Not(), ast.UnaryOp(ast.Not(), inner)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_of_text(node: ast.AST) -> bool:
    """Texts are put together with +, and types with |."""
    sides = [getattr(node, name) for name in ("left", "right", "value") if hasattr(node, name)]
    return any(isinstance(side, ast.JoinedStr) or _is_text_or_none(side) for side in sides)


def _is_text_or_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not isinstance(node.value, (int, float))


def _replace(tree: ast.Module, old: ast.stmt, new: ast.stmt) -> None:
    for node in ast.walk(tree):
        for _, value in ast.iter_fields(node):
            if isinstance(value, list):
                for at, child in enumerate(value):
                    if child is old:
                        value[at] = ast.copy_location(new, old)
                        return
