"""The messages that the package can say, read from its source.

A message is the text of an error, of a warning, of a log line from WARNING on, or of a line of the command line. Its
template has PLACE where the program puts a value. Fragments are texts that such a value can be: constants that the
message names, and what functions that it calls return.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "gopher_mcp_python"
PLACE = "\0"
_BUILTIN = {"Exception", "ValueError", "TypeError", "OSError", "RuntimeError", "ImportError", "MCPError", "ToolError"}
_AN_ERROR = re.compile(r"\w*(Error|Exception|Warning)")  # names of base classes, here or elsewhere
# Functions whose text argument people see: warnings, log lines from WARNING on, lines of the command line.
_SPEAKING = {"warn", "warning", "error", "exception", "log_failure", "tell", "line", "argparse.ArgumentTypeError"}
_LOGGING = {"warning", "error", "exception"}
_DEEPEST = 3  # functions that call functions
_LONGEST = 40  # characters of a constant that is written out; a longer one is a sentence of its own


@dataclass
class Message:
    place: str
    """The file below the package, and the line."""
    kind: str
    """The error's class, or the function that says it."""
    template: str
    fragments: set[str] = field(default_factory=set)


@dataclass
class _Module:
    path: Path
    tree: ast.Module
    constants: dict[str, ast.expr] = field(default_factory=dict)
    functions: dict[str, ast.AST] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


@cache
def messages() -> list[Message]:
    """All of them, by file."""
    found = []
    for module in _modules().values():
        found += list(_of_module(module))
    return found


def constants(file: str) -> dict[str, int]:
    """Every text of a file that is no docstring, with its line."""
    tree = ast.parse((SOURCE / file).read_text(encoding="utf-8"))
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    parts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documented)
    return {told(node.value): node.lineno for node in parts if isinstance(node.value, str)}


def words(text: str) -> int:
    """How many words of a template the program does not put in."""
    return len(re.findall(r"[A-Za-z']{2,}", text))


@cache
def pattern(template: str) -> re.Pattern[str]:
    """What a template can become."""
    return re.compile(".*".join(map(re.escape, told(template).split(PLACE))), re.DOTALL)


def told(text: str) -> str:
    """A text on one line."""
    return re.sub(r"\s+", " ", text).strip()


@cache
def error_classes() -> frozenset[str]:
    """Names of the classes of errors and warnings that the package defines."""
    bases: dict[str, set[str]] = {}
    for module in _modules().values():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ClassDef):
                named = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
                bases.setdefault(node.name, set()).update(named)
    found: set[str] = set()
    while more := {name for name, above in bases.items() if name not in found and _are_errors(above, found)}:
        found |= more
    return frozenset(found)


def _are_errors(bases: set[str], known: set[str]) -> bool:
    return bool(bases & known) or any(map(_AN_ERROR.fullmatch, bases))


@cache
def _modules() -> dict[str, _Module]:
    found = {}
    for path in sorted(SOURCE.rglob("*.py")):
        module = _Module(path, ast.parse(path.read_text(encoding="utf-8")))
        for node in ast.walk(module.tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                module.functions.setdefault(node.name, node)
            elif isinstance(node, ast.ImportFrom):
                base = path.parent
                for _ in range(node.level - 1):
                    base = base.parent
                where = base.joinpath(*(node.module or "").split(".")) if node.level else Path()
                module.imported |= {name.asname or name.name: (str(where), name.name) for name in node.names}
        for statement in module.tree.body:
            if isinstance(statement, (ast.Assign, ast.AnnAssign)) and statement.value is not None:
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                module.constants |= {target.id: statement.value for target in targets if isinstance(target, ast.Name)}
        found[str(path.with_suffix(""))] = module
    return found


def _of_module(module: _Module) -> Iterator[Message]:
    file = module.path.relative_to(SOURCE).as_posix()
    classes = error_classes() | _BUILTIN

    def visit(node: ast.AST, scope: ast.AST) -> Iterator[Message]:
        inner = node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else scope
        if isinstance(node, ast.Call):
            named = ast.unparse(node.func).rpartition(".")[2]
            if named in classes or named in _SPEAKING:
                for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                    for template in _outer(argument, module, inner):
                        fragments = set(_inside(argument, module, inner, 0))
                        if named in _LOGGING:
                            template = re.sub("%[srd]", PLACE, template)
                            fragments = {re.sub("%[srd]", PLACE, text) for text in fragments}
                        yield Message(f"{file}:{node.lineno}", named, template, fragments)
        for child in ast.iter_child_nodes(node):
            yield from visit(child, inner)

    yield from visit(module.tree, module.tree)


def _outer(node: ast.expr, module: _Module, scope: ast.AST) -> list[str]:
    """The templates of a message; names of constants are followed, values inside stay PLACE."""
    if isinstance(node, ast.Constant):
        return [node.value] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return ["".join(_part(part, module, scope) for part in node.values)]
    if isinstance(node, ast.IfExp):
        return _outer(node.body, module, scope) + _outer(node.orelse, module, scope)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [a + b for a in _outer(node.left, module, scope) or [PLACE]
                for b in _outer(node.right, module, scope) or [PLACE]]  # fmt: skip
    if isinstance(node, ast.Name):
        return [text for value in _values(node, module, scope) for text in _outer(value, module, scope)]
    return []


def _part(node: ast.expr, module: _Module, scope: ast.AST) -> str:
    """A part of an f-string: its text; of a limit that is a constant, its value; else PLACE."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    assert isinstance(node, ast.FormattedValue)
    named, found = node.value, []
    if isinstance(named, ast.Name) and named.id.strip("_").isupper():
        found = _values(named, module, scope)
    elif isinstance(named, ast.Attribute) and named.attr.isupper() and isinstance(named.value, ast.Name):
        where, name = module.imported.get(named.value.id, ("", ""))
        other = _modules().get(str(Path(where) / name))
        found = [other.constants[named.attr]] if other is not None and named.attr in other.constants else []
    values = [value.value for value in found if isinstance(value, ast.Constant)]
    plain = len(values) == 1 and len(str(values[0])) <= _LONGEST and node.format_spec is None and node.conversion == -1
    return str(values[0]) if plain else PLACE


def _values(node: ast.Name, module: _Module, scope: ast.AST) -> list[ast.expr]:
    """What a name stands for: what the function assigns to it, else a constant of its module or of another."""
    local = _assigned(scope).get(node.id, []) if scope is not module.tree else []
    if local:
        return local
    if node.id in module.constants:
        return [module.constants[node.id]]
    where, name = module.imported.get(node.id, ("", ""))
    other = _modules().get(where) or _modules().get(str(Path(where) / "__init__"))
    return [other.constants[name]] if other is not None and name in other.constants else []


@cache
def _assigned(function: ast.AST) -> dict[str, list[ast.expr]]:
    found: dict[str, list[ast.expr]] = {}
    for part in ast.walk(function):
        for target in part.targets if isinstance(part, ast.Assign) else ():
            if isinstance(target, ast.Name) and isinstance(part, ast.Assign):
                found.setdefault(target.id, []).append(part.value)
    return found


def _inside(node: ast.expr, module: _Module, scope: ast.AST, depth: int) -> Iterator[str]:
    """Every text that the expression can hold."""
    if depth > _DEEPEST:
        return
    for part in ast.walk(node):
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            yield part.value
        elif isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load):
            for value in _values(part, module, scope):
                if value is not node:
                    yield from _inside(value, module, scope, depth + 1)
        if isinstance(part, ast.Call) and isinstance(part.func, (ast.Name, ast.Attribute)):
            yield from _returned(part.func, module, depth + 1)


def _returned(called: ast.Name | ast.Attribute, module: _Module, depth: int) -> Iterator[str]:
    name = called.id if isinstance(called, ast.Name) else called.attr
    if isinstance(called, ast.Attribute) and not (isinstance(called.value, ast.Name) and called.value.id == "self"):
        return
    where, original = module.imported.get(name, ("", ""))
    other = module if name in module.functions else _modules().get(where)
    function = None if other is None else other.functions.get(name if other is module else original)
    for part in ast.walk(function) if function is not None else ():
        if isinstance(part, ast.Return) and part.value is not None and other is not None and function is not None:
            yield from _inside(part.value, other, function, depth)
