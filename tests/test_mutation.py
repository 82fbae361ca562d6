"""The mutants that mutation testing makes (python -m tests.mutation), and what it says of one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutation.areas import AREAS, ROOT
from tests.mutation.mutants import mutants_of

pytestmark = pytest.mark.source_tree

MODULE = '''"""Text of 1 + 1."""
from __future__ import annotations
from typing import TYPE_CHECKING
if TYPE_CHECKING:
    from a import b
__all__ = ["f"]
LIMIT: int = 3
@decorated(True)
def f(x: int = 0) -> bool:
    """Not 7."""
    for one in x:
        if not one and x < LIMIT or one is None:
            continue
        print("a" + f"{one}")
        x += 1
    if x in (True,):
        raise ValueError("no")
    return x
'''


def test_what_is_changed(tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(MODULE)
    made = mutants_of(path)
    assert [(one.line, one.what) for one in made] == [
        (7, "number"), (9, "number"), (12, "and/or"), (12, "and/or"), (12, "not"), (12, "comparison"),
        (12, "comparison"), (13, "break/continue"), (14, "left out"), (15, "arithmetic"), (15, "number"),
        (16, "comparison"), (16, "truth"), (17, "left out"), (18, "returns None"),
    ]  # fmt: skip
    assert len({one.source for one in made}) == len(made), "each is another module"
    for one in made:
        compile(one.source, "module.py", "exec")
        assert (
            one.was != one.now and one.now in one.source.replace("\n    ", "\n").splitlines()
        ) or one.now in one.source
    assert made[2].now == "if (not one and x < LIMIT) and one is None:"
    assert made[-1].now == "return None"


def test_every_area_has_its_modules_and_tests() -> None:
    for area in AREAS.values():
        assert len(area.paths()) >= len(area.modules)
        assert all((Path(__file__).parent / f"test_{name}.py").exists() for name in area.tests)


FORKS = """
import os, sys
from pathlib import Path
from tests.mutation import trying
trying.OUTPUT = Path(sys.argv[1])
assert trying._in_fork(lambda: "found", 60) == "found"
assert trying._in_fork(lambda: os._exit(3), 60) is None, "it ended without a word"
assert trying._in_fork(lambda: 1 / 0, 60) is None and "ZeroDivisionError" in trying.OUTPUT.read_text()
assert trying._in_fork(lambda: os.read(os.pipe()[0], 1).decode(), 0.5) is None, "it took too long"
"""


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_fork_tells_what_it_found_and_is_ended_when_it_takes_too_long(tmp_path: Path) -> None:
    """In a process of its own, which has one thread."""
    subprocess.run([sys.executable, "-c", FORKS, tmp_path / "output"], cwd=ROOT, check=True, timeout=120)
