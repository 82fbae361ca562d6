"""The fuzz targets over their seed corpus, where the inputs of all findings stay: no fuzzing, so seconds only."""

from __future__ import annotations

import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzz import changes, running
from tests.fuzz.__main__ import main
from tests.fuzz.running import C_TARGETS, HERE, ROOT
from tests.fuzz.targets import PYTHON_TARGETS
from tests.fuzz.worker import mutator_of, plain

pytestmark = pytest.mark.source_tree

CORPUS = HERE / "corpus"
INSIDE = {"registry": ("gate", "registry", "reaper"), "api": ("api", "calls")}  # what a target compiles itself


def inputs_of(name: str) -> list[Path]:
    return sorted((CORPUS / name).iterdir())


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    for name in PYTHON_TARGETS:
        module = sys.modules.get(f"tests.fuzz.targets.{name}")
        if hasattr(module, "close"):
            module.close()


@pytest.mark.parametrize("path", [path for name in PYTHON_TARGETS for path in inputs_of(name)],
                         ids=lambda path: f"{path.parent.name}-{path.name}")  # fmt: skip
def test_seed(path: Path) -> None:
    importlib.import_module(f"tests.fuzz.targets.{path.parent.name}").one_input(path.read_bytes())


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX compiler's options")
@pytest.mark.parametrize("name", C_TARGETS)
def test_seeds_in_c(name: str, tmp_path: Path) -> None:
    program = tmp_path / name
    sources = [f"csrc/{part}.c" for part in "api gate registry queue calls reaper trampoline".split()
               if part not in INSIDE[name]]  # fmt: skip
    flags = "-std=gnu11 -O1 -g -pthread -Wall -Wextra -Werror -Iinclude -Icsrc -DGB_TEST_ALLOC".split()
    sanitizers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]
    targets = [f"tests/fuzz/c/{name}.c", "tests/fuzz/c/replay.c"]
    subprocess.run(["cc", *flags, *sanitizers, *targets, *sources, "-ldl", "-o", program], cwd=ROOT, check=True)
    paths = inputs_of(name)
    done = subprocess.run([program, *paths], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == f"{len(paths)} inputs"


@pytest.mark.parametrize("name", PYTHON_TARGETS)
def test_changed_seeds(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What takes the place of libFuzzer where atheris is not here."""
    runs = len(inputs_of(name)) + 30
    target = importlib.import_module(f"tests.fuzz.targets.{name}")
    assert plain(target, [f"-runs={runs}", f"-artifact_prefix={tmp_path}/", str(CORPUS / name)]) == 0
    assert f"stat::number_of_executed_units: {runs}" in capfd.readouterr().err


def test_a_failure_is_a_finding_and_its_input_is_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    class Target:
        WORDS = ()
        LARGEST = 100

        @staticmethod
        def one_input(data: bytes) -> None:
            assert b"b" not in data

    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "first").write_bytes(b"a")
    (folder / "second").write_bytes(b"abc")
    assert plain(Target, [f"-artifact_prefix={tmp_path}/", str(folder)]) == 77  # type: ignore[arg-type]
    assert "Test unit written to" in capfd.readouterr().err
    (kept,) = tmp_path.glob("crash-*")
    assert kept.read_bytes() == b"abc"


@pytest.mark.parametrize("name", [name for name in PYTHON_TARGETS if name != "decode"])
def test_every_seed_is_an_input_that_the_target_reads(name: str) -> None:
    """A seed that is turned away at the door leads nowhere."""
    target = importlib.import_module(f"tests.fuzz.targets.{name}")
    mutate: Callable[[bytes, int, int], bytes] = mutator_of(target) or changes.bytes_changed
    for path in inputs_of(name):
        data = path.read_bytes()
        assert len(data) <= target.LARGEST, path
        assert target.WORDS == () or data.startswith(b"{"), path
        assert len({mutate(data, target.LARGEST, seed) for seed in range(20)}) > 10, path


FOUND = """
import sys
prefix = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("-artifact_prefix="))
if "{name}" == "forms":
    open(prefix + "crash-1", "wb").close()
print("stat::number_of_executed_units: 1234")
sys.exit({code})
"""


@pytest.mark.parametrize(
    ("name", "code", "exit_code", "said"),
    [
        ("store", 0, 0, "store      5 s, 0 s of processor time, 1,234 executions\n"),
        ("store", 3, 1, "store      5 s, 0 s of processor time, 1,234 executions, FAILED (log: "),
        ("forms", 77, 1, "forms      5 s, 0 s of processor time, 1,234 executions, FOUND: "),
    ],
)
def test_what_a_run_says_and_ends_with(
    name: str,
    code: int,
    exit_code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    script = FOUND.format(name=name, code=code)
    monkeypatch.setattr(running, "BUILD", tmp_path)
    monkeypatch.setattr(running, "command_of", lambda name, folder: [sys.executable, "-c", script])
    monkeypatch.setattr(sys, "argv", ["fuzz", "--seconds", "5", name])
    assert main() == exit_code
    assert said in capsys.readouterr().out


def test_without_clang_the_targets_in_c_are_not_passed_over_in_silence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "argv", ["fuzz", "registry"])
    assert main() == 2
    assert "apt-get install clang" in capsys.readouterr().err
