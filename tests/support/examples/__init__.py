"""The examples in the documents: every fenced block of README.md, docs/*.md and examples/*.md.

    python -m tests.support.examples        how many there are, how many the tests run, and why the others are not run

A block is called by its document, the heading that it stands below and its number there: "docs/store.md: The audit: 1".
A test says which ones it runs with `@example(...)`; tests/test_docs_examples.py holds the list of those that none runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TypeVar

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROPERTY, UNRUN_PROPERTY = "documentation example", "documentation examples not run"  # of test reports
_Test = TypeVar("_Test", bound=Callable[..., object])
_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*(.*?)\s*$")


@dataclass(frozen=True)
class Block:
    """One example. `name` as above; `language` as the fence has it, "" where it has none."""

    name: str
    language: str
    text: str
    line: int


def documents() -> list[Path]:
    """Whose examples are run."""
    return [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md")), *sorted(ROOT.glob("examples/*.md"))]


@cache
def blocks() -> dict[str, Block]:
    """All examples by name. Directives of the site (```{toctree}) are none: `make docs` is what runs those."""
    found: dict[str, Block] = {}
    for path in documents():
        for block in _blocks_of(str(path.relative_to(ROOT)), path.read_text(encoding="utf-8").splitlines()):
            assert block.name not in found, f"two headings are alike: {block.name}"
            found[block.name] = block
    return found


def _blocks_of(document: str, lines: list[str]) -> Iterable[Block]:
    heading, number, begin = "", 0, 0
    opened: re.Match[str] | None = None
    for at, line in enumerate(lines, 1):
        fence = _FENCE.match(line)
        if opened is None and fence:
            opened, begin = fence, at
        elif opened is not None and fence and fence[2].startswith(opened[2]) and not fence[3]:
            if not opened[3].startswith("{"):
                number += 1
                text = "".join(f"{one.removeprefix(opened[1])}\n" for one in lines[begin : at - 1])
                yield Block(f"{document}: {heading}: {number}", opened[3], text, begin)
            opened = None
        elif opened is None and line.startswith("#"):
            heading, number = line.lstrip("#").strip(), 0
    assert opened is None, f"{document}:{begin}: this block has no end"


def example(*names: str) -> Callable[[_Test], _Test]:
    """Marks a test that runs these blocks."""
    return pytest.mark.examples(*names)


def each(names: Iterable[str]) -> pytest.MarkDecorator:
    """Gives a test these blocks one by one, as `name`."""
    return pytest.mark.parametrize("name", [pytest.param(name, id=name, marks=example(name)) for name in names])


def marked(module: ModuleType) -> set[str]:
    """The examples that the tests of a module say they run."""
    found: set[str] = set()
    for test in vars(module).values():
        marks = list(getattr(test, "pytestmark", [])) if callable(test) else []
        for mark in marks:
            if mark.name == "parametrize":
                marks.extend(mark for case in mark.args[1] for mark in getattr(case, "marks", ()))
        found |= {name for mark in marks if mark.name == "examples" for name in mark.args}
    return found


def text_of(name: str) -> str:
    return blocks()[name].text


def replaced(text: str, replace: dict[str, str]) -> str:
    """The text with what a reader puts in, too. Each thing to replace has to be there."""
    for old, new in replace.items():
        assert old in text, f"{old!r} is not in the block any more:\n{text}"
        text = text.replace(old, new)
    return text


def told(run: int, unrun: int, failed: int = 0) -> str:
    """The line with the numbers."""
    more = f", {failed} failed or were skipped" if failed else ""
    return f"documentation examples: {run} run{more}, {unrun} with a reason not to"
