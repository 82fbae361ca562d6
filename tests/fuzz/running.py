"""Runs one target for a time, and tells what came of it."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BUILD = ROOT / "build" / "fuzz"
C_TARGETS = ("registry", "api")
_EXECUTIONS = re.compile(r"^stat::number_of_executed_units:\s*(\d+)|^Done (\d+) runs", re.MULTILINE)
_END_S = 120  # seconds that a run may take beyond its time
_ONE_INPUT_S = 60  # seconds that one input may take


class NotHere(Exception):
    """Something that a target needs is missing; the text says how to get it."""


@dataclass(frozen=True)
class Result:
    """What a run did. `cpu_s`: seconds of processor time; `findings`: files with the inputs that failed."""

    name: str
    executions: int
    cpu_s: float
    findings: tuple[Path, ...]
    well: bool
    log: Path


def build() -> Path:
    """Builds the targets in C; the folder they are in. Raises NotHere without clang or CMake."""
    if not shutil.which("clang"):
        raise NotHere(
            "clang is not here, whose libFuzzer the targets in C need: apt-get install clang, or name targets"
        )
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    if not cmake:
        raise NotHere("cmake is not here, with which the targets in C are built: pip install cmake")
    folder = BUILD / "c"
    told = [cmake, "-S", str(ROOT), "-B", str(folder), "-DGOPHER_FUZZ=ON", "-DGOPHER_WERROR=ON"]
    _checked([*told, "-DCMAKE_C_COMPILER=clang"])
    _checked([cmake, "--build", str(folder)])
    return folder / "tests" / "fuzz" / "c"


def _checked(command: list[str]) -> None:
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise NotHere(f"{' '.join(command)}\n{done.stdout}")


def command_of(name: str, c_folder: Path | None) -> list[str]:
    if name in C_TARGETS:
        assert c_folder is not None
        return [str(c_folder / f"fuzz_{name}"), "-max_len=4000"]
    return [sys.executable, "-m", "tests.fuzz.worker", name]


def run(name: str, seconds: int, c_folder: Path | None = None, *, options: tuple[str, ...] = ()) -> Result:
    """Runs a target for so many seconds. What it finds, and inputs that led on, are kept in build/fuzz."""
    led_on, findings, log = BUILD / "corpus" / name, BUILD / "findings", BUILD / f"{name}.log"
    for folder in (led_on, findings):
        folder.mkdir(parents=True, exist_ok=True)
    before = set(findings.iterdir())
    words = HERE / "dictionaries" / f"{name}.dict"
    command = [
        *command_of(name, c_folder),
        f"-max_total_time={seconds}",
        f"-timeout={_ONE_INPUT_S}",
        f"-report_slow_units={_ONE_INPUT_S}",  # its 10 s are soon over where others use the processor
        f"-artifact_prefix={findings / name}-",
        "-print_final_stats=1",
        *([f"-dict={words}"] if words.exists() else []),
        *options,
        str(led_on),
        str(HERE / "corpus" / name),
    ]
    spent = _cpu_s_of_children()
    with log.open("wb") as output:
        try:
            code = subprocess.run(
                command, cwd=ROOT, stdout=output, stderr=subprocess.STDOUT, timeout=seconds + _END_S
            ).returncode
        except subprocess.TimeoutExpired:
            code = -1
    numbers = [int(one or other) for one, other in _EXECUTIONS.findall(log.read_text(errors="replace"))]
    found = tuple(sorted(path for path in set(findings.iterdir()) - before if path.name.startswith(name)))
    spent = _cpu_s_of_children() - spent
    return Result(name, max(numbers, default=0), spent, found, code == 0 and bool(numbers), log)


def _cpu_s_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
