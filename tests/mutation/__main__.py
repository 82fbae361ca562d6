"""python -m tests.mutation: how many mutants the tests notice. One line for each that they don't, then the score."""

from __future__ import annotations

import argparse
import ast
import json
import sys
import time
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from .areas import AREAS, ROOT
from .mutants import Mutant, mutants_of
from .trying import OUTPUT, Reached, load_libraries, reached_by, verdict_on

MISSED = ("survived", "uncovered")
WANTED = 0.80  # of all mutants, killed


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("areas", nargs="*", metavar="AREA", help=f"of {', '.join(AREAS)}; none: all")
    parser.add_argument("--sample", type=int, default=150, help="mutants of each area (default 150; 0: all)")
    parser.add_argument("--seed", type=int, default=7, help="of the sample (default 7)")
    parser.add_argument("--minutes", type=float, default=0, help="for each area; what is not tried then is not counted")
    parser.add_argument("--again", action="store_true", help="only what survived last time, after new tests")
    parser.add_argument("--only", default="", help="mutants whose name holds this text")
    told = parser.parse_args()
    if set(told.areas) - set(AREAS):
        parser.error(f"areas are {', '.join(AREAS)}")
    load_libraries()
    well = [run(name, told) for name in told.areas or AREAS]
    return 0 if all(well) else 1


def run(name: str, told: argparse.Namespace) -> bool:
    """Tries the mutants of an area; whether enough of them were killed."""
    area = AREAS[name]
    every = [one for path in area.paths() for one in mutants_of(path) if told.only in one.name]
    chosen = every if not told.sample else Random(told.seed).sample(every, min(told.sample, len(every)))
    log = OUTPUT.with_name(f"{name}.jsonl")
    before = read(log) if told.again else []
    if told.again:
        missed = {(one["name"], one["now"]) for one in before if one["verdict"] in MISSED}
        chosen = [one for one in every if (one.name, one.now) in missed]
    print(f"{name}: {len(chosen)} of {len(every)} mutants; seed {told.seed}", flush=True)
    log.parent.mkdir(parents=True, exist_ok=True)
    reached = reached_by(area)
    check_control(area.paths()[-1], reached)
    log.write_text("".join(json.dumps(one) + "\n" for one in before if one["verdict"] not in MISSED))
    until = time.monotonic() + told.minutes * 60 if told.minutes else float("inf")
    for mutant in chosen:
        if time.monotonic() > until:
            break
        tried(mutant, reached, log)
    counts = Counter(one["verdict"] for one in read(log))
    done = sum(counts.values())
    killed = counts["killed"] + counts["timeout"]
    print(f"{name}: {killed} of {done} killed ({killed / max(1, done):.1%}): {dict(counts)}", flush=True)
    return done > 0 and killed / done >= WANTED


def check_control(path: Path, reached: Reached) -> None:
    """A module that was only written anew, and changed in nothing, has to survive: else everything would be killed."""
    tests = reached.tests_for(path, 1) or sorted(reached.seconds)
    control = Mutant(path, 1, "control", "", "", ast.unparse(ast.parse(path.read_text(encoding="utf-8"))))
    verdict = verdict_on(control, tests, 30 + 5 * sum(reached.seconds.values()))
    if verdict != "survived":
        raise RuntimeError(f"{path.name} unchanged is {verdict}: see {OUTPUT}")


def read(log: Path) -> list[dict[str, Any]]:
    """What became of each mutant."""
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def tried(mutant: Mutant, reached: Reached, log: Path) -> None:
    tests = reached.tests_for(mutant.path, mutant.line)
    verdict = verdict_on(mutant, tests, min(200, 30 + 5 * sum(reached.seconds[test] for test in tests)))
    told = {"name": mutant.name, "was": mutant.was, "now": mutant.now, "tests": len(tests), "verdict": verdict}
    with log.open("a") as file:
        file.write(json.dumps(told) + "\n")
    if verdict in MISSED:
        place = mutant.path.relative_to(ROOT / "src" / "gopher_mcp_python")
        print(f"  {verdict}: {place}:{mutant.line} {mutant.what}\n    - {mutant.was}\n    + {mutant.now}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
