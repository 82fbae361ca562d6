"""`gopher-mcp audit`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from gopher_mcp_python.cli import main
from gopher_mcp_python.store import KeyRing, SqliteBackend, Store, chores
from tests.support.store_suite import confirm


@pytest.fixture
def spec(tmp_path: Path) -> str:
    with Store(SqliteBackend(tmp_path / "store.db"), KeyRing.generate()) as store:
        for _ in range(3):
            confirm(store)
    return f"sqlite:{tmp_path / 'store.db'}"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = main(["audit", *arguments])
    captured = capsys.readouterr()
    return code, captured.out + captured.err


def test_a_whole_audit_is_said_to_be_whole(spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = run(capsys, "--store", spec)
    assert code == 0 and "3 records" in text and text.endswith("the audit is whole\n")
    anchor = str(tmp_path / "anchor")
    code, text = run(capsys, "--store", spec, "--anchor", anchor)
    assert code == 0 and "the anchor remembers nothing" in text and not Path(anchor).exists()
    code, text = run(capsys, "--store", spec, "--anchor", anchor, "--write")
    assert code == 0 and text.endswith("the anchor remembers record 3 now\n")
    code, text = run(capsys, "--store", spec, "--anchor", anchor, "--write")
    assert code == 0 and text.endswith("and anchored up to record 3\n")


def test_how_far_it_is_can_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chores, "_PAGE", 2)
    backend = SqliteBackend(tmp_path / "store.db")
    with Store(backend, KeyRing.generate()) as store:
        for _ in range(5):
            confirm(store)
        seen: list[int] = []
        assert chores.verify(backend, None, seen.append).records == 5
    assert seen == [2, 4, 5]


def test_what_is_wrong_is_named_and_the_command_fails(
    spec: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    anchor = str(tmp_path / "anchor")
    run(capsys, "--store", spec, "--anchor", anchor, "--write")
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("DROP TRIGGER audit_stays")
    connection.execute("DELETE FROM audit WHERE seq = 3")
    connection.close()
    assert run(capsys, "--store", spec)[0] == 0, "by itself it looks whole"
    code, text = run(capsys, "--store", spec, "--anchor", anchor, "--write")
    assert code == 1 and "record 3: the anchor knows records up to 3, and they are gone" in text
    assert text.endswith("the audit is not whole\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--store", "memory"], ["--store", "sqlite:nowhere.db"], ["--store", "sqlite:"], ["--store", "sqlit:x.db"],
        ["--store", "postgres"], ["--anchor", "http://anchor.example/"], ["--write"],
    ],
)  # fmt: skip
def test_command_lines_that_are_refused(
    spec: str, arguments: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    given = arguments if "--store" in arguments else [*arguments, "--store", spec]
    code, text = run(capsys, *given)
    assert code == 2 and "--" in text and not (tmp_path / "nowhere.db").exists()
