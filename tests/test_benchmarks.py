"""The benchmarks' own arithmetic, and that each still measures what it promises. No figure is judged here."""

from __future__ import annotations

import ctypes
import importlib
import json
import platform
import re
import sys
import threading
from pathlib import Path
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
    "builds": set(),
    "threads": set(),
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


@pytest.mark.parametrize("name", sorted(PROMISED))
def test_every_target_stands_in_a_comparison(name: str) -> None:
    module: Any = importlib.import_module(f"benchmarks.{name}")
    shown = {key for one in getattr(module, "COMPARED", ()) for key in (one.ours, one.ratio)}
    assert {target.key for target in module.TARGETS} <= shown
    assert all(hasattr(module, constant) for constant in module.QUICK)


def test_a_comparison_says_both_figures_their_unit_and_what_is_asked() -> None:
    from benchmarks._report import Compared, Target, describe

    targets = [Target("ours_ms", "<=", 5, "a"), Target("times", ">=", 3, "b", 15)]
    compared = [Compared("a thing", "ours_ms", "theirs_ms", "times", "theirs", "speedup"), Compared("b", "other_us")]
    first, second = describe("one", {"ours_ms": 6.0, "theirs_ms": 24.0, "times": 4.0}, targets, compared)["compared"]
    assert first == {
        "what": "a thing", "unit": "ms", "ours": 6.0, "other": 24.0, "against": "theirs", "ratio": 4.0,
        "kind": "speedup",
        "targets": [
            {"sense": "<=", "limit": 5, "met": False, "of": "ours"},
            {"sense": ">=", "limit": 3, "met": True, "goal": 15, "of": "ratio"},
        ],
    }  # fmt: skip
    assert (second["ours"], second["other"], second["unit"], second["targets"]) == (None, None, "µs", [])


def test_a_result_says_when_and_on_what_but_not_where() -> None:
    from types import SimpleNamespace

    from benchmarks._report import run

    module = SimpleNamespace(measure=lambda: {"rounds_ms": module.ROUNDS}, TARGETS=(), ROUNDS=9, QUICK={"ROUNDS": 2})
    found = run("one", module, quick=True)
    assert found["rounds_ms"] == 2 and found["measured"]["quick"] is True
    assert set(found["measured"]) == {"date", "machine", "cores", "load_before", "versions", "seconds", "quick"}
    assert platform.node() not in json.dumps(found["measured"]) and "/" not in json.dumps(found["measured"])


def test_a_benchmark_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    """What the others gave is kept and drawn."""
    from benchmarks import _results

    argv = ["nothing_of_that_name", "forms", "--quick", "--json", "--out", str(tmp_path / "made")]
    ended = children.run([sys.executable, "-m", "benchmarks", *argv])
    assert ended.code == 1 and "Traceback" not in ended.err
    (line,) = re.findall("^failed: .*$", ended.err, re.MULTILINE)
    assert line.startswith("failed: nothing_of_that_name: ModuleNotFoundError: ")
    (result,) = json.loads(ended.out)
    assert result == _results.read(tmp_path / "made" / "forms.json")
    assert result["benchmark"] == "forms" and result["measured"]["quick"] is True
    names = sorted(path.name for path in (tmp_path / "made").iterdir())
    assert names == ["benchmarks-baselines.svg", "forms.json"]


def test_a_result_of_before_is_not_taken_for_one_of_now(tmp_path: Path) -> None:
    (tmp_path / "nothing_of_that_name.json").write_text("{}")
    children.run([sys.executable, "-m", "benchmarks", "nothing_of_that_name", "--out", str(tmp_path)])
    assert not list(tmp_path.iterdir())


def test_a_benchmark_that_takes_too_long_is_ended() -> None:
    from benchmarks.__main__ import measured

    assert measured("callback", quick=True, limit_s=0) == {"failed": "it took more than 0 s"}


def test_a_benchmark_that_dies_is_a_failure(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Also when it has told its result before."""
    from benchmarks import __main__ as benchmarks

    for body, said in (("os.abort()", "-6 and gave no result"), ("print('{}'); sys.stdout.flush(); os._exit(3)", "3")):
        program = tmp_path / "python"
        program.write_text(f"#!{sys.executable}\nimport os, sys\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setattr(benchmarks.sys, "executable", str(program))
        found = benchmarks.measured("callback")
        monkeypatch.undo()
        assert str(found["failed"]).startswith(f"it ended with code {said}"), found


# ---- builds and threads ---------------------------------------------------------------------------------------------


def test_wheels_are_told_apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from benchmarks import _builds

    system = {"linux": "manylinux_2_34", "darwin": "macosx_11_0", "win32": "win"}[sys.platform]
    here = f"{system}_{platform.machine().lower()}"
    for tag in (f"cp314-cp314t-{here}", f"cp39-abi3-{here}", f"cp310-cp310-{here}", f"cp314-cp314-{here}",
                "cp310-cp310-manylinux_2_28_mips"):  # fmt: skip
        (tmp_path / f"gopher_mcp_python-0.2.0-{tag}.whl").touch()
    monkeypatch.setattr(_builds, "DIST", tmp_path)
    found = [_builds._parts(wheel) for wheel in _builds._wheels()]
    assert found == [("9", "abi3 on 3.9", ""), ("10", "cp310", ""), ("14", "cp314", ""), ("14", "cp314t", "t")]


def test_without_wheels_builds_are_not_measured_and_nothing_failed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from benchmarks import _builds, _child

    monkeypatch.setattr(_builds, "DIST", tmp_path)
    assert _child.outcome("builds", True) == {
        "not_here": "dist/ has no wheel for this machine: `make dist` makes them"
    }


def test_an_interpreter_that_does_not_run_is_said() -> None:
    from benchmarks import _builds
    from benchmarks._report import BadArgument

    with pytest.raises(BadArgument, match=r"^mine=/nowhere/python: NAME=PYTHON names an interpreter"):
        _builds.named(["mine=/nowhere/python"])
    (found,) = _builds.named([f"mine={sys.executable}"])
    assert (found.name, found.python) == ("mine", platform.python_version())


def test_builds_that_are_named_stand_beside_the_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of a wheel's name takes its place; threads leaves out wheels that tell nothing about the GIL."""
    from benchmarks import _builds, threads

    wheels = [_builds.Build(name, "python", "3", name.endswith("t"), 1) for name in ("cp399", "cp400", "cp400t")]
    monkeypatch.setattr(_builds, "installed", lambda: wheels)
    named = (f"mine={sys.executable}", f"cp399={sys.executable}")
    assert [build.name for build in _builds.chosen(named)] == ["cp400", "cp400t", "mine", "cp399"]
    monkeypatch.setattr(threads, "NAMED", named[:1])
    assert [build.name for build in threads._chosen()] == [_builds.running().name, "cp400", "cp400t", "mine"]


def test_a_name_on_the_command_line_reaches_the_benchmark() -> None:
    from benchmarks.__main__ import measured

    found = measured("builds", quick=True, builds=["mine=/nowhere/python"])
    assert str(found["failed"]).startswith("BadArgument: mine=/nowhere/python: NAME=PYTHON names")


def test_native_threads_make_every_call_once() -> None:
    from gopher_mcp_python.elicitation import GopherAgentElicitationOptions, non_blocking
    from gopher_mcp_python.elicitor import Elicitor
    from gopher_mcp_python.ffi import _bridge
    from tests.support import testkit

    seen: list[int] = []

    def handler(request: Any) -> str:
        seen.append(threading.get_ident())
        return "accept"

    host = testkit.Host(Elicitor(GopherAgentElicitationOptions(handler=non_blocking(handler))).inline_answer)
    handles = [_bridge.AgentHandle(testkit.library(), host, answer="inline") for _ in range(3)]
    driver = ctypes.CDLL(str(testkit.folder() / "csrc" / "testkit" / "libgopher-callback-driver.so")).driver_threads
    driver.restype = ctypes.c_double
    driver.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_long, ctypes.c_long, ctypes.c_int]
    tokens = (ctypes.c_uint64 * 3)(*(handle.token for handle in handles))
    try:
        assert driver(_bridge.trampoline_address(), tokens, 3, 50, 4) > 0
        assert len(seen) == 200 and threading.get_ident() not in seen
        tokens[1] += 1 << 40  # nobody's
        assert driver(_bridge.trampoline_address(), tokens, 3, 50, 4) == -1
        assert driver(_bridge.trampoline_address(), tokens, 3, 50, 65) == -1
    finally:
        for handle in handles:
            handle.close()


def test_a_build_says_what_it_is_and_its_rates(tmp_path: Path) -> None:
    from benchmarks import _builds, threads
    from tests.support import testkit

    side = threads.Side(_builds.running(), testkit.as_vendor_library(tmp_path))
    try:
        for count in threads.THREADS:
            side.point(count, keep=True)
        figures = side.figures()
    finally:
        side.close()
    assert figures["python"] == platform.python_version() and figures["own_1_ratio"] == figures["shared_1_ratio"] == 1
    assert all(figures[f"{kind}_{count}_per_s"] > 0 for kind in ("own", "shared") for count in threads.THREADS)
