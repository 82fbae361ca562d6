"""The benchmarks' own arithmetic, and that each still measures what it promises. No figure is judged here."""

from __future__ import annotations

import importlib
import json
import sys
from typing import Any

import pytest

from tests.support import children

pytestmark = pytest.mark.source_tree

PROMISED = {
    "callback": {"same_thread_ns", "foreign_thread_ns", "handed_over_ns"},
    "startup": {"import_ratio", "embedded_ratio"},
    "signin": {"embedded_warm_ratio", "embedded_cold_ratio"},
    "toolcall": {"tool_call_ratio"},
    "toolset": {"call_ratio", "elicitation_ratio", "parallel_ratio"},
    "forms": {"form_ratio"},
    "prompts": {"dialog_50_ms", "dialog_500_ms", "line_50_ms", "screen_50_ms"},
    "registry": {"registry_ratio"},
    "store": {"wake_ratio", "pending_ratio", "write_ratio"},
    "gateway": {"allowed_overhead_ratio", "judged_overhead_ratio", "fastmcp_to_allowed", "replicas_ratio"},
}


def test_make_bench_runs_all_of_them() -> None:
    from benchmarks.__main__ import MODULES

    assert set(MODULES) == set(PROMISED)


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_each_has_its_targets(name: str) -> None:
    module: Any = importlib.import_module(f"benchmarks.{name}")
    assert PROMISED[name] <= {target.key for target in module.TARGETS}
    assert all(target.what and target.limit > 0 for target in module.TARGETS)


def test_targets_are_judged_and_missing_figures_said() -> None:
    from benchmarks._report import Target, describe, missed, table

    targets = [Target("fast_us", "<=", 10, "a"), Target("times", ">=", 3, "b"), Target("absent", "<=", 1, "c")]
    good = describe("one", {"fast_us": 10.0, "times": 3.0, "absent": None}, targets)
    bad = describe("two", {"fast_us": 10.1, "times": 2.9}, targets)
    assert missed([good]) == []
    assert missed([good, bad]) == ["two.fast_us", "two.times"]
    lines = table([good, bad]).splitlines()
    assert lines[0].split() == ["benchmark", "figure", "value", "target"]
    assert sum("MISSED" in line for line in lines) == 2
    assert sum("not measured" in line for line in lines) == 1
    assert json.loads(json.dumps(good))["targets"]["fast_us"]["met"] is True


def test_a_benchmark_that_fails_is_named_and_the_others_go_on() -> None:
    program = (
        "import sys; sys.argv = ['benchmarks', 'nothing_of_that_name', '--json']\n"
        "from benchmarks.__main__ import main; raise SystemExit(main())"
    )
    ended = children.run([sys.executable, "-c", program])
    assert ended.code == 1
    assert json.loads(ended.out) == [] and "failed: nothing_of_that_name" in ended.err
