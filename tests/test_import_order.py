"""Threads that use the package for the first time at the same moment: no import of one may fail of another's."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import gopher_mcp_python

PACKAGE = "gopher_mcp_python"
ROOT = Path(gopher_mcp_python.__file__).parent


def modules() -> dict[str, Path]:
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = [PACKAGE, *path.relative_to(ROOT).with_suffix("").parts]
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports_at_once(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    """Those that are made while the module itself is imported."""
    for statement in body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            yield statement
        elif isinstance(statement, ast.If):
            is_for_types = "TYPE_CHECKING" in ast.unparse(statement.test)
            yield from imports_at_once(statement.orelse if is_for_types else [*statement.body, *statement.orelse])
        elif isinstance(statement, ast.Try):
            handled = [one for handler in statement.handlers for one in handler.body]
            yield from imports_at_once([*statement.body, *handled, *statement.orelse, *statement.finalbody])
        elif isinstance(statement, ast.With | ast.ClassDef):
            yield from imports_at_once(statement.body)


def named(module: str, is_package: bool, statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
        return
    base: list[str] = []
    if statement.level:
        parts = module.split(".")
        base = parts[: len(parts) - statement.level + is_package]
    home = ".".join([*base, *filter(None, [statement.module])])
    yield home
    yield from (f"{home}.{alias.name}" for alias in statement.names)


def needed_by(module: str, known: dict[str, Path]) -> set[str]:
    """The modules of the package that are imported with this one; the packages around each come before it."""
    path = known[module]
    statements = imports_at_once(ast.parse(path.read_text(encoding="utf-8")).body)
    found = {name for one in statements for name in named(module, path.name == "__init__.py", one)} & known.keys()
    around = {name.rpartition(".")[0] for name in (*found, module)}
    return (found | around) & known.keys() - {module, PACKAGE}  # the package itself is there before any thread is


def test_no_module_imports_another_that_imports_it() -> None:
    """Nor a package its own modules: who imports a module holds its lock while it waits for the package's."""
    known = modules()
    assert len(known) > 200
    left = {module: needed_by(module, known) for module in known}
    assert "gopher_mcp_python.store" in left["gopher_mcp_python.store.core"]
    while ready := [module for module, needs in left.items() if not needs & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, "these wait for each other: " + ", ".join(sorted(left))


FIRST_USE = """
import asyncio, os, sys, threading
import gopher_mcp_python as package

SCHEMA = {"type": "object", "properties": {"code": {"type": "string", "pattern": "^[0-9]+$", "format": "email"}}}

def agent():
    try:
        package.GopherAgent.create_with_url("DirectProvider", "none", "http://127.0.0.1:9/mcp", {"engine": "embedded"})
    except package.ConnectionError:
        pass

def form():
    from gopher_mcp_python.forms import read_form
    read_form(SCHEMA)

def answered_form():
    from gopher_mcp_python.elicitor import Elicitor
    from gopher_mcp_python.lone import LoneRequest
    answer = package.GopherAgentElicitationResponse("decline")
    elicitor = Elicitor(package.GopherAgentElicitationOptions(handler=lambda request: answer))
    request = package.GopherAgentElicitationRequest("form", message="?", requested_schema=SCHEMA, server="mail")
    elicitor.answer(LoneRequest(request, 0))
    cause = elicitor.take_cause()
    if cause is not None:
        raise cause

def store():
    from gopher_mcp_python.store import KeyRing, MemoryBackend, Store, single_choice
    with Store(MemoryBackend(), KeyRing.generate()) as one:
        one.create("ada", single_choice("Where?", ["here", "there"]))

def toolset():
    async def main():
        try:
            async with package.McpToolset("http://127.0.0.1:9/mcp"):
                pass
        except package.ConnectionError:
            pass
    asyncio.run(main())

def callback():
    package.elicitation_callback("decline")

def policy():
    package.ElicitationPolicy([{"decision": "block", "server": "spam"}])

def gateway():
    from gopher_mcp_python.gateway import Gateway
    from gopher_mcp_python.serve import TokenFile

steps = [agent, form, answered_form, store, toolset, callback, policy, gateway]
together, failed = threading.Barrier(len(steps)), []

def run(step):
    together.wait()
    try:
        step()
    except BaseException as error:
        failed.append(f"{step.__name__}: {type(error).__name__}: {error}")

threads = [threading.Thread(target=run, args=(step,)) for step in steps[int(sys.argv[1]):] + steps[:int(sys.argv[1])]]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
sys.exit("; ".join(failed) or None)
"""


@pytest.mark.parametrize("first", [0, 3])
def test_everything_may_be_used_for_the_first_time_at_once(first: int) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GOPHER_")}
    command = [sys.executable, "-c", FIRST_USE, str(first)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=150)
    assert done.returncode == 0, done.stderr
