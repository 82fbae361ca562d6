"""The reference: it has whatever people can import, and each thing in it says what it is and what it raises."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import gopher_mcp_python

pytestmark = pytest.mark.source_tree

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src"
_LISTED = re.compile(r"^\.\. auto(class|function|exception|data):: (\S+)$", re.MULTILINE)
_FENCE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Packages that other modules of the package import from, and nobody else.
INSIDE = {"gopher_mcp_python.engines", "gopher_mcp_python.native", "gopher_mcp_python.providers"}
# What the extras need; without it, what stands on it can't be imported and is not looked at here.
_NEEDS = ("google", "langchain_core", "PySide6", "starlette", "uvicorn", "psycopg", "jwt", "keyring")


@cache
def _reference() -> str:
    return (ROOT / "docs/reference.md").read_text(encoding="utf-8")


@cache
def _listed() -> dict[str, str]:
    """Every name of the reference, and what it is said to be."""
    return {name: kind for kind, name in _LISTED.findall(_reference())}


def _path(module: str) -> Path | None:
    at = SOURCE.joinpath(*module.split("."))
    found = [path for path in (at / "__init__.py", at.with_suffix(".py")) if path.is_file()]
    return found[0] if found else None


def _exported(module: str) -> list[str] | None:
    """The `__all__` of a module; None when it has none."""
    path = _path(module)
    tree = ast.parse(path.read_text(encoding="utf-8")) if path else ast.Module([], [])
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "__all__" for t in node.targets):
            return list(ast.literal_eval(node.value))
    return None


def _imports(text: str) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "gopher_mcp_python":
            yield from ((node.module or "", name.name) for name in node.names)


@cache
def _shown() -> frozenset[tuple[str, str]]:
    """(module, name) of each import that a document or an example shows."""
    pages = [path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]]
    programs = [text for page in pages for text in _FENCE.findall(page)]
    programs += [path.read_text(encoding="utf-8") for path in ROOT.glob("examples/**/*.py")]
    return frozenset(pair for text in programs for pair in _imports(text))


@cache
def _loggers() -> set[str]:
    sources = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    return set(re.findall(r'getLogger\(\s*"([\w.]+)"', sources))


def _public_modules() -> set[str]:
    """Packages with an `__all__`, what documents import from, and modules that they name."""
    packages = {".".join(path.parent.relative_to(SOURCE).parts) for path in SOURCE.rglob("__init__.py")}
    pages = "\n".join(path.read_text(encoding="utf-8") for path in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
    named = set(re.findall(r"`(gopher_mcp_python(?:\.[a-z_]+)+)`", pages)) - _loggers()
    found = {package for package in packages if _exported(package) is not None} | {module for module, _ in _shown()}
    return (found | {module for module in named if _path(module) is not None}) - INSIDE


def test_every_public_module_has_its_section() -> None:
    sections = set(re.findall(r"^## (\S+)$", _reference(), re.MULTILINE))
    modules = _public_modules()
    assert modules >= {"gopher_mcp_python", "gopher_mcp_python.store", "gopher_mcp_python.handlers.notebook"}
    assert not modules - sections


def test_every_public_name_is_in_its_section() -> None:
    elsewhere = set(re.findall(r"^- `(\w+)` is that of", _reference(), re.MULTILINE))
    missing = [
        f"{module}.{name}"
        for module in sorted(_public_modules())
        for name in _exported(module) or ()
        if f"{module}.{name}" not in _listed() and name not in elsewhere
    ]
    assert not missing


def test_what_documents_import_is_in_the_reference() -> None:
    names = {name.rpartition(".")[2] for name in _listed()}
    assert len(_shown()) > 30, "no imports are found any more"
    assert not sorted(f"{module}.{name}" for module, name in _shown() if name not in names)


def test_every_error_of_the_catalogue_is_in_the_reference() -> None:
    page = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    described = set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))
    assert len(described) > 25
    assert not described - {name.rpartition(".")[2] for name in _listed()}


# ---- docstrings ----------------------------------------------------------------------------------------------------


def _found(name: str) -> Any:
    module, _, own = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), own)
    except ImportError as error:
        if (error.name or str(error)).partition(".")[0] in _NEEDS or "gopher-mcp-python[" in str(error):
            return None
        raise


def _functions(made: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that the class itself defines, and its constructor."""
    for name, value in vars(made).items():
        function = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if _is_written(function) and (not name.startswith("_") or name in ("__init__", "__post_init__")):
            yield name, function


def _is_written(function: Any) -> bool:
    """Whether somebody wrote it: what `dataclass` or `Protocol` makes has no file, or another one."""
    code = getattr(inspect.unwrap(function), "__code__", None) if inspect.isfunction(function) else None
    return code is not None and Path(code.co_filename).is_relative_to(Path(gopher_mcp_python.__file__).parent)


def _raised(function: Any) -> list[str]:
    """What a function raises by itself, as its source has it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(function)))).body[0]
    found: list[str] = []

    def look(node: ast.AST) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Raise) and child.exc is not None:
                found.append(ast.unparse(child.exc))
            if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                look(child)

    look(tree)
    return [text for text in found if not text.startswith(("NotImplementedError", "Stop", "AssertionError"))]


def _faults(name: str) -> Iterator[str]:
    made = _found(name)
    if made is None:
        return
    own = made.__doc__ or ""
    if not own.strip() or own.startswith(name.rpartition(".")[2] + "("):  # the latter is a dataclass's own
        yield f"{name} has no docstring"
    if inspect.isfunction(made):
        if _raised(made) and "aise" not in own:
            yield f"{name} does not say that it raises {_raised(made)}"
        return
    for method, function in _functions(made):
        told = function.__doc__ or ""
        if not told.strip() and not method.startswith("_"):
            yield f"{name}.{method} has no docstring"
        if _raised(function) and "aise" not in told + own:
            yield f"{name}.{method} does not say that it raises {_raised(function)}"


@pytest.mark.parametrize("name", sorted(name for name, kind in _listed().items() if kind != "data"))
def test_it_says_what_it_is_and_what_it_raises(name: str) -> None:
    assert not list(_faults(name))


def test_a_missing_docstring_would_be_noticed() -> None:
    class Silent:
        """Something."""

        def speak(self) -> None:
            raise ValueError("no")

    assert _raised(Silent.speak) == ["ValueError('no')"]
    assert _is_written(_found("gopher_mcp_python.GopherAgent").run), "no method is looked at any more"
