"""One target in Python, in a process of its own: python -m tests.fuzz.worker NAME [options of libFuzzer] FOLDER...

With atheris it is libFuzzer, led by the coverage of the target's packages. Where atheris can't be had, inputs are
changed at random, without such a lead; of the options -max_total_time, -runs, -seed and -artifact_prefix count then.
"""

from __future__ import annotations

import hashlib
import importlib
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import ModuleType

from .changes import bytes_changed, json_mutator
from .targets import PYTHON_TARGETS


def main(argv: list[str]) -> int:
    name, *options = argv
    try:
        import atheris
    except ImportError:
        return plain(load(name), options)
    with atheris.instrument_imports(include=list(PYTHON_TARGETS[name])):
        target = load(name)
    own = mutator_of(target)
    more = {"custom_mutator": own} if own else {}
    atheris.Setup([name, f"-max_len={target.LARGEST}", *options], target.one_input, **more)
    atheris.Fuzz()
    return 0


def load(name: str) -> ModuleType:
    return importlib.import_module(f"{__package__}.targets.{name}")


def mutator_of(target: ModuleType) -> Callable[[bytes, int, int], bytes] | None:
    """The target's own, or the one for JSON; None where bytes are changed as bytes."""
    own: Callable[[bytes, int, int], bytes] | None = getattr(target, "mutate", None)
    return own or (json_mutator(target.WORDS) if target.WORDS else None)


def plain(target: ModuleType, options: list[str]) -> int:
    told = dict(option[1:].split("=", 1) for option in options if option.startswith("-"))
    folders = [Path(option) for option in options if not option.startswith("-")]
    inputs = [path.read_bytes() for folder in folders for path in sorted(folder.iterdir())] or [b""]
    chance = Random(int(told.get("seed", "1")))
    mutate = mutator_of(target) or bytes_changed
    until = time.monotonic() + float(told.get("max_total_time", "60"))
    most_runs, done, found = int(told.get("runs", "-1")), 0, 0
    while time.monotonic() < until and done != most_runs and not found:
        data = inputs[done % len(inputs)]
        if done >= len(inputs):
            data = mutate(data, target.LARGEST, chance.getrandbits(64))
        done += 1
        try:
            target.one_input(data)
        except Exception:
            traceback.print_exc()
            path = Path(told.get("artifact_prefix", "./") + "crash-" + hashlib.sha1(data).hexdigest())
            path.write_bytes(data)
            print(f"Test unit written to {path}", file=sys.stderr)
            found = 1
    print(f"stat::number_of_executed_units: {done}", file=sys.stderr)
    return 77 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
