"""Which tests come to which line; and what the tests say of one mutant, in a fork."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import pytest

from .areas import PACKAGE, ROOT, Area
from .mutants import Mutant

Verdict = Literal["killed", "timeout", "survived", "uncovered"]
# The last: of plugins that were loaded before, see load_libraries.
_QUIET = ("-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", "-p", "no:xdist", "--no-header", "--tb=short",
          "-W", "ignore::pytest.PytestAssertRewriteWarning")  # fmt: skip
OUTPUT = ROOT / "build" / "mutation" / "tests.log"  # of the latest fork
_LIBRARIES = (
    "hypothesis",
    "jsonschema",
    "mcp",
    "anyio",
    "cryptography",
    "prompt_toolkit",
    "starlette",
    "uvicorn",
    "regex",
)


class Reached:
    """For each file: line -> tests that come to it; and how long each test takes (in seconds)."""

    def __init__(self) -> None:
        self.lines: dict[str, dict[int, list[str]]] = {}
        self.seconds: dict[str, float] = {}

    def tests_for(self, path: Path, line: int) -> list[str]:
        """The quickest first. A line that runs at import only is every test's that comes to its module, and one of a
        module to which nobody comes later (constants) is every test's."""
        lines = self.lines.get(str(path), {})
        found = {test for test in lines.get(line, ()) if test}
        if not found and line in lines:
            found = {test for tests in lines.values() for test in tests if test} or set(self.seconds)
        return sorted(found, key=lambda test: self.seconds.get(test, 0.0))


def load_libraries() -> None:
    """What takes long to import, before anything forks; nothing of the package itself."""
    for name in _LIBRARIES:
        importlib.import_module(name)
    assert not any(name.startswith("gopher_mcp_python") for name in sys.modules)


def reached_by(area: Area) -> Reached:
    """Runs the area's tests once, in a fork. Raises RuntimeError when they fail as they are."""
    text = _in_fork(lambda: _measured(area), None)
    if text is None:
        raise RuntimeError(f"the tests fail without any mutant: see {OUTPUT}")
    reached = Reached()
    found = json.loads(text)
    reached.seconds = found["seconds"]
    for path, lines in found["lines"].items():
        reached.lines[path] = {int(line): tests for line, tests in lines.items()}
    return reached


def _measured(area: Area) -> str | None:
    import coverage

    measured = coverage.Coverage(data_file=None, include=[str(path) for path in area.paths()], concurrency=["thread"])
    seconds: dict[str, float] = {}

    class Contexts:
        @pytest.hookimpl(wrapper=True)
        def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
            measured.switch_context(item.nodeid)
            began = time.monotonic()
            try:
                return (yield)
            finally:
                seconds[item.nodeid] = time.monotonic() - began
                measured.switch_context("")

    measured.start()
    code = pytest.main([*_QUIET, *_files(area)], plugins=[Contexts()])
    measured.stop()
    if code != pytest.ExitCode.OK:
        return None
    data = measured.get_data()
    lines = {path: {str(line): tests for line, tests in data.contexts_by_lineno(path).items()}
             for path in data.measured_files()}  # fmt: skip
    return json.dumps({"seconds": seconds, "lines": lines})


def _files(area: Area) -> list[str]:
    return [str(ROOT / "tests" / f"test_{name}.py") for name in area.tests]


def verdict_on(mutant: Mutant, tests: Sequence[str], limit_s: float) -> Verdict:
    """What the tests say of a mutant."""
    if not tests:
        return "uncovered"
    answer = _in_fork(lambda: _tried(mutant, tests), limit_s)
    return "timeout" if answer is None else "survived" if answer == "0" else "killed"


def _tried(mutant: Mutant, tests: Sequence[str]) -> str:
    sys.meta_path.insert(0, _Changed(mutant))
    order = {name: place for place, name in enumerate(tests)}

    class Chosen:
        @pytest.hookimpl(trylast=True)
        def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
            items[:] = sorted((item for item in items if item.nodeid in order), key=lambda item: order[item.nodeid])

    files = sorted({name.partition("::")[0] for name in tests})
    return str(int(pytest.main([*_QUIET, *files], plugins=[Chosen()])))


class _Changed(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Imports the mutated module in place of the one in the file."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._name = ".".join(mutant.path.relative_to(PACKAGE.parent).with_suffix("").parts)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if name != self._name:
            return None
        return importlib.util.spec_from_file_location(name, self._mutant.path, loader=self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self._mutant.source, str(self._mutant.path), "exec"), module.__dict__)


def _in_fork(work: Callable[[], str | None], limit_s: float | None) -> str | None:
    """What `work` returns in a fork of this process; None when it returned that, ended otherwise or took too long.
    Whatever it started ends with it."""
    OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _child(work, reading, writing)
    os.close(writing)
    until = None if limit_s is None else time.monotonic() + limit_s
    ended = False
    while not ended and (until is None or time.monotonic() < until):
        ended = _is_over(reading, 0.5)
    with open(reading, "rb") as answers:
        text = answers.read() if ended else b""
        _end(child)
    return text.decode() or None


def _is_over(reading: int, seconds: float) -> bool:
    import select

    return bool(select.select([reading], [], [], seconds)[0])


def _child(work: Callable[[], str | None], reading: int, writing: int) -> None:
    code = 1
    try:
        os.close(reading)
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDWR), 0)
        said = os.open(OUTPUT, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        for standard in (1, 2):
            os.dup2(said, standard)
        os.set_inheritable(writing, False)
        os.chdir(ROOT)
        answer = work()
        data = (answer or "").encode()
        with io.FileIO(writing, "wb") as file:
            while data:
                data = data[file.write(data) :]
        code = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _end(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:
        pass
    os.waitpid(child, 0)
