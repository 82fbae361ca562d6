"""Runs the client scenarios of the conformance suite and prints each with its result.

usage: python -m tests.conformance [SCENARIO ...]      no names: all of them

Exit code 1 when one does not pass, when a name is no scenario, or when the suite can't be had.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from .suite import Outcome, Scenario, Suite, Unusable, installed

AT_A_TIME = 2
# These measure times, so nothing else runs beside them.
ALONE = ("sse-retry",)


def main(names: Sequence[str], suite: Suite | None = None) -> int:
    """Runs the named scenarios, or all. Returns the exit code."""
    begin = time.monotonic()
    try:
        suite = suite or installed()
        chosen = _chosen(suite.scenarios(), names)
    except Unusable as why:
        print(why, file=sys.stderr)
        return 1
    outcomes = [_told(outcome) for outcome in _outcomes(suite, chosen)]
    passed = sum(outcome.passed for outcome in outcomes)
    checks, failed = sum(outcome.checks for outcome in outcomes), sum(outcome.failed for outcome in outcomes)
    print(f"{passed} of {len(outcomes)} scenarios passed; {checks - failed} of {checks} checks; "
          f"{time.monotonic() - begin:.0f} s")  # fmt: skip
    return 0 if outcomes and passed == len(outcomes) else 1


def _chosen(scenarios: list[Scenario], names: Sequence[str]) -> list[Scenario]:
    """The named scenarios, or all; those that run alone come last. Raises Unusable."""
    known = {scenario.name: scenario for scenario in scenarios}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise Unusable(f"the suite has no client scenario {unknown[0]!r}; it has: {', '.join(known)}")
    chosen = [known[name] for name in names] if names else scenarios
    return sorted(chosen, key=lambda scenario: scenario.name in ALONE)


def _outcomes(suite: Suite, chosen: list[Scenario]) -> Iterator[Outcome]:
    together = [scenario for scenario in chosen if scenario.name not in ALONE]
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        yield from pool.map(suite.run, together)
    yield from map(suite.run, chosen[len(together) :])


def _told(outcome: Outcome) -> Outcome:
    scenario = outcome.scenario
    counts = f"{outcome.checks} check{'s'[: outcome.checks != 1]}"
    counts += f", {outcome.failed} failed" if outcome.failed else ""
    word = "pass" if outcome.passed else "FAIL"
    print(f"{word}  {scenario.name:<42} {' '.join(scenario.versions):<22} {counts}", flush=True)
    for line in outcome.trouble:
        print(f"        {line}", flush=True)
    return outcome


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
