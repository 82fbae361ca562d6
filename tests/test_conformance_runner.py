"""The runner of the conformance suite (tests/conformance): what passes, what does not, and what it says of it.

The suite here is a fake of a few lines with the real one's command line: the real one, which `make conformance` runs,
takes long and can't be made to fail in the ways that are tried here.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.conformance import suite
from tests.conformance.__main__ import main

FAKE = """
import json, pathlib, sys
told = json.loads(pathlib.Path(__file__).with_suffix(".json").read_text())
if sys.argv[1] == "list":
    print("Client scenarios (test against a client):")
    for name in told:
        print(f"  - {name} [2025-06-18,draft]")
    sys.exit()
name, folder = (sys.argv[sys.argv.index(option) + 1] for option in ("--scenario", "-o"))
folder = pathlib.Path(folder, f"{name}-2026-01-01")
folder.mkdir(parents=True)
statuses, code, output = told[name]
checks = [{"id": f"check-{at}", "status": status, "description": "told"} for at, status in enumerate(statuses)]
folder.joinpath("checks.json").write_text(json.dumps(checks))
folder.joinpath("stdout.txt").write_text(output)
folder.joinpath("stderr.txt").write_text("")
sys.exit(code)
"""
GOOD = (["INFO", "SUCCESS", "SUCCESS"], 0, "")


@pytest.fixture
def fake(tmp_path: Path) -> suite.Suite:
    (tmp_path / "fake.py").write_text(FAKE)
    return suite.Suite([sys.executable, str(tmp_path / "fake.py")])


def tell(folder: Path, **scenarios: tuple[list[str], int, str]) -> None:
    (folder / "fake.json").write_text(json.dumps(scenarios))


def test_all_pass(fake: suite.Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tell(tmp_path, one=GOOD, two=(["SUCCESS"] * 2, 0, "?state=aaeyJaaaaaaaaaaaaaaaaaaaaaaa&code_challenge=a.b"))
    assert main([], fake) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[:2]] == [
        ["pass", name, "2025-06-18", "draft", "2", "checks"] for name in ("one", "two")
    ]
    assert lines[2].startswith("2 of 2 scenarios passed; 4 of 4 checks; ")


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ((["SUCCESS", "FAILURE"], 1, ""), "check-1: told"),
        ((["SUCCESS", "WARNING"], 1, "a\nlast words"), "client: last words"),
        ((["SUCCESS"], 1, ""), "the suite ended with exit code 1"),
        ((["INFO"], 0, ""), "nothing was checked"),
        ((["SUCCESS"], 0, "got test-auth-code"), "the client's output holds a secret (test-auth-code)"),
        ((["SUCCESS"], 0, "eyJhbGciOiJub25lIn0.eyJhIjoxfQ.x"), "the client's output holds a secret (a JWT)"),
    ],
)
def test_one_that_does_not_pass_fails_the_run_and_is_told(
    fake: suite.Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str], told: tuple[list[str], int, str], reason: str
) -> None:
    tell(tmp_path, one=told, two=GOOD)
    assert main([], fake) == 1
    out = capsys.readouterr().out
    assert "FAIL  one " in out and f"        {reason}\n" in out and "pass  two " in out and "1 of 2 scenarios" in out


def test_names_choose_and_those_that_measure_times_come_last(
    fake: suite.Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(tmp_path, **{"sse-retry": GOOD, "one": GOOD, "bad": ([], 1, "")})
    assert main(["sse-retry", "one"], fake) == 0
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()[:2]] == ["one", "sse-retry"]


def test_an_unknown_scenario_fails_before_anything_runs(
    fake: suite.Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(tmp_path, one=GOOD)
    assert main(["one", "other"], fake) == 1
    told = capsys.readouterr()
    assert "no client scenario 'other'; it has: one" in told.err and not told.out


def test_a_suite_that_lists_nothing_fails(
    fake: suite.Suite, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(tmp_path)
    assert main([], fake) == 1
    assert "the suite lists no scenarios" in capsys.readouterr().err


def test_without_npm_the_remedy_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("GOPHER_MCP_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main([]) == 1
    assert "apt-get install npm" in capsys.readouterr().err
