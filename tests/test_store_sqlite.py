"""The SQLite file: several processes, killed ones and forked ones, who may open it, what stands in it."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.store import FileKeys, SqliteBackend, Store, StoreError, string_input
from tests.support.canary import secret
from tests.support.children import ROOT, environment, python
from tests.support.store_places import SqlitePlace
from tests.support.store_suite import CALL, WIDE, confirm, events, waiting

OPEN = """
import json, os, sys
from gopher_mcp_python.store import FileKeys, SqliteBackend, Store
folder = sys.argv[1]
store = Store(SqliteBackend(folder + "/store.db"), FileKeys(folder + "/keys"), rate=None)
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(SqliteBackend(tmp_path / "store.db"), FileKeys(tmp_path / "keys"), rate=None) as opened:
        yield opened


def start(code: str, folder: Path) -> subprocess.Popen[str]:
    """A process that has opened the same store."""
    return subprocess.Popen(
        [sys.executable, "-c", OPEN + code, str(folder)], env=environment(), cwd=ROOT, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


# ---- Processes ------------------------------------------------------------------------------------------------------


def test_two_processes_answer_the_same_elicitations(store: Store, tmp_path: Path) -> None:
    ids = [confirm(store).id for _ in range(200)]
    (tmp_path / "ids").write_text(json.dumps(ids))
    code = """
ids = json.load(open(folder + "/ids"))
print("ready", flush=True)
answer = json.loads(sys.stdin.readline())
print(json.dumps([store.respond("ada", id, {"confirmed": answer}).kind for id in ids]))
store.close()
"""
    children = [start(code, tmp_path) for _ in range(2)]
    assert [line(child) for child in children] == ["ready", "ready"]
    with ThreadPoolExecutor(2) as pool:
        ended = list(pool.map(lambda at: children[at].communicate(("true\n", "false\n")[at], WIDE), range(2)))
    assert [child.returncode for child in children] == [0, 0], ended[0][1] + ended[1][1]
    yes, no = (json.loads(out) for out, _ in ended)
    for id, *kinds in zip(ids, yes, no, strict=True):
        assert sorted(kinds) == ["conflict", "recorded"]
        assert store.result("ada", id) == {"confirmed": kinds[0] == "recorded"}
    found = store.verify()
    assert found.ok and found.records == 400


def test_waiters_are_woken_by_another_process(store: Store, tmp_path: Path) -> None:
    asked = [confirm(store).id for _ in range(3)]
    store._waiters._look = lambda ids: None  # type: ignore[method-assign]  # only what the watch finds counts
    heard = threading.Event()
    end = store.subscribe(lambda change: heard.set() if change.status == "responded" else None)
    child = start('for id in sys.stdin: store.respond("ada", id.strip(), {"confirmed": True})', tmp_path)
    assert child.stdin is not None
    with waiting(store, *asked) as waiters:
        for id, waiter in zip(asked, waiters, strict=True):
            child.stdin.write(f"{id}\n")
            child.stdin.flush()
            assert waiter.result(WIDE).confirmed is True
    assert heard.wait(WIDE)
    end()
    child.communicate(timeout=WIDE)
    assert child.returncode == 0


def test_a_process_killed_between_answers_loses_none_it_acknowledged(store: Store, tmp_path: Path) -> None:
    code = """
from gopher_mcp_python.store import string_input
while True:
    id = store.create("ada", string_input("?")).id
    store.respond("ada", id, {"value": id})
    print(id, flush=True)
"""
    child = start(code, tmp_path)
    acknowledged = [line(child) for _ in range(20)]
    child.kill()
    assert child.stdout is not None
    acknowledged += child.stdout.read().split()  # communicate() would leave out what was read ahead
    child.communicate(timeout=WIDE)
    assert child.returncode == -signal.SIGKILL
    with store._backend.transaction(None, write=False) as tx:
        told = [json.loads(row.text) for row in tx.audit_rows(0, 100_000)]
    answered = [one["elicitation"] for one in told if one["event"] == "responded"]
    assert answered[: len(acknowledged)] == acknowledged and len(answered) <= len(acknowledged) + 1
    assert all(store.result("ada", id) == {"value": id} for id in answered)
    open_ones = [one.id for one in store.pending("ada")]
    assert len(open_ones) <= 1 and len(told) == 2 * len(answered) + len(open_ones) and store.verify().ok
    assert store.respond("ada", confirm(store).id, {"confirmed": True}).kind == "recorded", "nothing stays locked"


@pytest.mark.parametrize("step", ["tx.update(id, status='cancelled', ended_at=tx.now())", "tx.append_audit('{}')"])
def test_nothing_of_a_transaction_stays_when_its_process_is_killed(store: Store, tmp_path: Path, step: str) -> None:
    asked = confirm(store)
    code = f"""
with store._backend.transaction("ada") as tx:
    id = {asked.id!r}
    assert tx.lock(id)
    {step}
    print("in the middle", flush=True)
    sys.stdin.readline()
"""
    child = start(code, tmp_path)
    assert line(child) == "in the middle"
    assert store.get("ada", asked.id).status == "pending", "readers wait for nobody"
    child.kill()
    child.communicate(timeout=WIDE)
    assert store.get("ada", asked.id).status == "pending" and events(store) == ["requested"]
    assert store.respond("ada", asked.id, {"confirmed": True}).kind == "recorded"
    assert store.consume("ada", asked.id, **CALL) == "consumed" and store.verify().ok


def test_a_forked_child_refuses_its_parents_store(store: Store, tmp_path: Path) -> None:
    code = """
import threading
from gopher_mcp_python.store import StoreError
asked = store.create_confirmation("ada", tool="t", arguments={})
end = store.subscribe(lambda change: None)
held = threading.Lock()
busy, done = threading.Event(), threading.Event()
def hold():
    with store._backend.transaction("ada") as tx:  # a lock of another thread, which the child inherits as held
        tx.append_audit("{}")
        busy.set()
        done.wait()
holder = threading.Thread(target=hold)
holder.start()
busy.wait()
child = os.fork()
if not child:
    said = []
    for call in (store.check, store.sweep, lambda: store.get("ada", asked.id), lambda: store.wait("ada", asked.id)):
        try:
            call()
        except StoreError as error:
            said.append(str(error))
    store.close()
    del store
    os._exit(0 if len(said) == 4 and all("fork" in text for text in said) else 1)
assert os.waitpid(child, 0)[1] == 0
done.set()
holder.join()
assert store.respond("ada", asked.id, {"confirmed": True}).kind == "recorded"
assert store.verify().ok
store.close()
"""
    quiet = "import warnings; warnings.simplefilter('ignore', DeprecationWarning)\n"
    python(quiet + OPEN + code, str(tmp_path)).check()
    assert store.verify().ok


def test_a_process_that_ends_without_closing_ends_in_silence(tmp_path: Path) -> None:
    code = """
import threading
asked = store.create_confirmation("ada", tool="t", arguments={})
store.subscribe(print)
looked = threading.Event()
wait = lambda: store.wait("ada", asked.id, still_wanted=lambda: looked.set() or True)
threading.Thread(target=wait, daemon=True).start()
looked.wait()
"""
    done = python(OPEN + code, str(tmp_path)).check()
    assert done.out == done.err == ""


def test_a_store_that_is_busy_says_so(store: Store, tmp_path: Path) -> None:
    asked = confirm(store)
    other = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    impatient = SqliteBackend(tmp_path / "store.db", patience_s=0.05)
    try:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match="locked"), impatient.transaction("ada"):
            pass
        assert store.get("ada", asked.id).status == "pending"
        other.execute("ROLLBACK")
        with impatient.transaction("ada") as tx:
            assert tx.lock(asked.id)
    finally:
        other.close()
        impatient.close()


def test_closing_leaves_no_thread_and_no_open_file(tmp_path: Path) -> None:
    store = Store(SqliteBackend(tmp_path / "store.db"), FileKeys(tmp_path / "keys"), rate=None)
    ours = {"gopher-mcp-store", "gopher-mcp-sqlite-watch"}
    store.subscribe(lambda change: None)
    with ThreadPoolExecutor(12) as pool:
        list(pool.map(lambda _: store.pending("ada"), range(50)))
    assert ours <= {thread.name for thread in threading.enumerate()}
    store.close()
    assert not ours & {thread.name for thread in threading.enumerate()}
    if sys.platform == "linux":
        assert not [file for file in map(os.path.realpath, Path("/proc/self/fd").iterdir()) if str(tmp_path) in file]


def test_a_wait_for_which_there_is_no_thread_is_an_error_and_the_next_one_works(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    asked = confirm(store)
    for _ in range(2):  # the backend's own, then the store's
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", refuse)
            with pytest.raises(StoreError, match="none can be started"):
                store.wait("ada", asked.id, timeout_s=0)
        store._backend.listen(lambda id: None)
    assert store.wait("ada", asked.id, timeout_s=0).status == "pending"
    store.close()


def test_many_open_a_new_file_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        backends = list(pool.map(lambda _: SqliteBackend(tmp_path / "store.db"), range(8)))
    for backend in backends:
        backend.close()


# ---- The file -------------------------------------------------------------------------------------------------------


def test_the_files_are_this_users_and_hold_nothing_in_clear(store: Store, tmp_path: Path) -> None:
    words = [secret(kind) for kind in ("message", "argument", "answer", "name", "invalid")]
    asked = store.create("ada", string_input(words[0]))
    store.respond("ada", asked.id, {words[3]: words[4]})
    store.respond("ada", asked.id, {"value": words[2]})
    approval = confirm(store, arguments={words[3]: words[1]}, message=words[0])
    store.respond("ada", approval.id, {"confirmed": True})
    confirm(store, arguments={words[3]: words[1]}, message=words[0])
    files = sorted(path.name for path in tmp_path.glob("store.db*"))
    assert files == ["store.db", "store.db-shm", "store.db-wal"]
    for name in files:
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    data = b"".join((tmp_path / name).read_bytes() for name in files)
    assert asked.id.encode() in data and not [word for word in words if word.encode() in data]


def test_what_was_pruned_is_gone_from_the_file(tmp_path: Path) -> None:
    place = SqlitePlace(tmp_path)
    store = place.open()
    asked = store.create("ada", string_input("?" * 3000))
    store.respond("ada", asked.id, {"value": "x" * 3000})
    with store._backend.transaction(None, write=False) as tx:
        row = tx.get(asked.id)
    assert row is not None and row.question is not None and row.response is not None
    place.pass_time(1)
    assert store.prune(days=0) == 1
    place.close()
    data = place.path.read_bytes()
    assert not [blob for blob in (row.question, row.response) if blob[40:140] in data]


@pytest.mark.parametrize(
    ("prepare", "said"),
    [
        (lambda path: path.write_bytes(b"not a database, but long enough to be looked at" * 40), "not a database"),
        (lambda path: _other(path, "CREATE TABLE mine (x)"), "another program's"),
        (lambda path: _other(path, f"PRAGMA application_id = {0x474D4350}", "PRAGMA user_version = 9"), "format 9"),
        (lambda path: path.mkdir(), "can't be opened"),
        (lambda path: os.mkfifo(path), "no plain file"),
    ],
    ids=["garbage", "another program", "a later version", "folder", "pipe"],
)
def test_files_that_are_refused(tmp_path: Path, prepare: Any, said: str) -> None:
    path = tmp_path / "store.db"
    prepare(path)
    if path.is_file() or path.is_fifo():
        path.chmod(0o600)
    with pytest.raises(StoreError, match=said):
        SqliteBackend(path)


def test_a_folder_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"no folder .*approvls: make it, or name another file"):
        SqliteBackend(tmp_path / "approvls" / "store.db")
    assert not list(tmp_path.iterdir())


def _other(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in (*statements, "CREATE TABLE IF NOT EXISTS mine (x)"):
        connection.execute(statement)
    connection.commit()
    connection.close()


def test_files_that_others_reach_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    SqliteBackend(path).close()
    path.chmod(0o640)
    with pytest.raises(StoreError, match=f"run chmod 600 {path}"):
        SqliteBackend(path)
    path.chmod(0o600)
    tmp_path.chmod(0o777)
    with pytest.raises(StoreError, match="chmod o-w"):
        SqliteBackend(path)
    tmp_path.chmod(0o700)
    SqliteBackend(path).close()


@pytest.mark.parametrize("end", ["-wal", "-shm", "-journal"])
def test_files_beside_it_that_others_made_are_refused(tmp_path: Path, end: str) -> None:
    """SQLite would believe what they say of the rows."""
    path, beside = tmp_path / "store.db", tmp_path / f"store.db{end}"
    SqliteBackend(path).close()
    beside.touch(0o666)
    beside.chmod(0o666)
    with pytest.raises(StoreError, match=f"run chmod 600 {beside}"):
        SqliteBackend(path)
    beside.unlink()
    beside.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreError, match="no plain file"):
        SqliteBackend(path)
    beside.unlink()
    SqliteBackend(path).close()


def test_a_file_that_vanishes_or_is_replaced_is_no_store(store: Store, tmp_path: Path) -> None:
    confirm(store)
    (tmp_path / "store.db").rename(tmp_path / "moved.db")
    with pytest.raises(StoreError, match="is gone"):
        store.check()
    assert not (tmp_path / "store.db").exists()
    SqliteBackend(tmp_path / "store.db").close()
    with pytest.raises(StoreError, match="replaced"):
        store.pending("ada")


def test_a_full_disk_is_an_error_and_changes_nothing(store: Store) -> None:
    backend: Any = store._backend
    asked = confirm(store)
    (pages,) = backend._idle[-1].execute("PRAGMA page_count").fetchone()
    backend._idle[-1].execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreError, match="full"):
        store.create_confirmation("ada", tool="t", arguments={"a": "x" * 100_000})
    assert [one.id for one in store.pending("ada")] == [asked.id] and store.verify().ok


def test_the_database_itself_keeps_what_must_not_change(store: Store, tmp_path: Path) -> None:
    confirm(store)
    connection = sqlite3.connect(tmp_path / "store.db")
    for statement in (
        "UPDATE audit SET text = '{}'", "DELETE FROM audit", "DELETE FROM elicitation",
        "UPDATE elicitation SET caller = 'eve'", "UPDATE elicitation SET binding_mac = NULL",
        "UPDATE elicitation SET status = 'approved'", "UPDATE elicitation SET expires_at = 0",
        "UPDATE elicitation SET id = 'x'",
    ):  # fmt: skip
        with pytest.raises(sqlite3.IntegrityError):
            connection.execute(statement)
    connection.close()


def test_a_changed_or_missing_record_is_found(store: Store, tmp_path: Path) -> None:
    for _ in range(6):
        confirm(store)
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    connection.execute("DROP TRIGGER audit_keeps")
    connection.execute("DROP TRIGGER audit_stays")
    connection.execute("UPDATE audit SET text = replace(text, 'ada', 'eve') WHERE seq = 2")
    connection.execute("DELETE FROM audit WHERE seq = 4")
    connection.close()
    found = store.verify()
    assert [(fault.seq, fault.what) for fault in found.faults] == [(2, "was changed"), (4, "is missing")]
    assert not found.ok and found.records == 5


def test_looking_up_takes_an_index(store: Store, tmp_path: Path) -> None:
    """However many rows there are, the same few are read."""
    connection = sqlite3.connect(tmp_path / "store.db", isolation_level=None)
    seen: list[str] = []
    backend: Any = store._backend
    backend._idle[-1].set_trace_callback(seen.append)
    confirm(store), store.pending("ada"), store.sweep(), store.prune()
    with store._backend.transaction("ada", write=False) as tx:
        now = tx.now()
        tx.creations(now, now, 1)
        tx.pending(1, (now, "el_x"), 1)
    backend._idle[-1].set_trace_callback(None)
    for statement in {text for text in seen if text.startswith("SELECT")}:
        plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}"))
        assert "SCAN elicitation" not in plan and "TEMP B-TREE" not in plan, f"{statement[-200:]}: {plan}"
    assert any("status = 'pending'" in text for text in seen)
    connection.close()


# ---- The library ----------------------------------------------------------------------------------------------------


def test_a_library_that_is_too_old_or_not_there_is_said_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite3, "sqlite_version_info", (3, 7, 17))
    with pytest.raises(StoreError, match=r"too old.*import sqlite3 before the native"):
        SqliteBackend(tmp_path / "store.db")
    monkeypatch.setitem(sys.modules, "sqlite3", None)
    with pytest.raises(StoreError, match=r"can't be loaded.*import sqlite3 before the native"):
        SqliteBackend(tmp_path / "store.db")
    assert list(tmp_path.iterdir()) == []


def test_it_works_beside_the_native_library(tmp_path: Path, native_environment: dict[str, str]) -> None:
    """Which brings an old copy of SQLite under the system's name."""
    code = """
import sys
from gopher_mcp_python.native.loading import load
load()
assert "sqlite3" not in sys.modules
"""
    more = """
asked = store.create_confirmation("ada", tool="t", arguments={})
assert store.respond("ada", asked.id, {"confirmed": True}).kind == "recorded"
store.close()
"""
    python(code + OPEN + more, str(tmp_path), env=native_environment).check()
