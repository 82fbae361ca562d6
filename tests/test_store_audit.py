"""The audit's chain and its anchors."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from gopher_mcp_python.store import (
    FileAnchor,
    Housekeeping,
    KeyRing,
    MemoryBackend,
    Store,
    StoreError,
    UrlAnchor,
    anchors,
)
from gopher_mcp_python.store.anchors import Head
from gopher_mcp_python.store.audit import audit_text, log_records, verify_chain
from gopher_mcp_python.store.backend import GENESIS, AuditRow, chain_hash
from tests.support.canary import secret
from tests.support.store_suite import WIDE


def chain(texts: list[str]) -> list[AuditRow]:
    rows, previous = [], GENESIS
    for seq, text in enumerate(texts, 1):
        rows.append(AuditRow(seq, text, previous, chain_hash(seq, previous, text)))
        previous = rows[-1].hash
    return rows


ROWS = chain([json.dumps({"event": "requested", "n": n}) for n in range(6)])


def faults(rows: list[AuditRow], *anchors: Head) -> list[tuple[int, str]]:
    return [(fault.seq, fault.what) for fault in verify_chain(rows, anchors).faults]


def test_a_whole_chain_has_no_faults() -> None:
    found = verify_chain(ROWS, [Head(3, ROWS[2].hash)])
    assert found.ok and (found.records, found.anchored, found.head) == (6, 3, Head(6, ROWS[5].hash))
    empty = verify_chain([], [])
    assert empty.ok and empty.head is None


def test_each_change_is_found_where_it_is() -> None:
    changed = [*ROWS[:2], replace(ROWS[2], text="{}"), *ROWS[3:]]
    assert faults(changed) == [(3, "was changed")]
    rehashed = [*ROWS[:2], replace(ROWS[2], text="{}", hash=chain_hash(3, ROWS[2].previous, "{}")), *ROWS[3:]]
    assert faults(rehashed) == [(4, "does not follow the one before it")]
    assert faults([*ROWS[:2], *ROWS[3:]]) == [(3, "is missing")]
    assert faults(ROWS[3:]) == [(1, "is missing, and all before 4")]
    assert faults([ROWS[0], ROWS[2], ROWS[1], *ROWS[3:]])
    assert faults([*ROWS, ROWS[5]])


def test_anchors_show_a_cut_tail_and_a_chain_written_anew() -> None:
    assert faults(ROWS[:3], Head(6, ROWS[5].hash)) == [(4, "the anchor knows records up to 6, and they are gone")]
    assert faults([], Head(1, ROWS[0].hash)) == [(1, "the anchor knows records up to 1, and they are gone")]
    anew = chain(["{}"] * 6)
    assert faults(anew) == []
    assert faults(anew, Head(4, ROWS[3].hash)) == [
        (4, "is not the one that the anchor knows: the chain was written anew")
    ]
    broken = [replace(row, hash="x") for row in chain(["{}"] * 1000)]
    assert len(verify_chain(broken, []).faults) == 100


def test_records_are_json_lines_and_a_log_handler_that_fails_changes_nothing(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "gopher_mcp_python.audit")
    text = audit_text("pruned", datetime(2026, 1, 2, tzinfo=timezone.utc), None, count=3, by=None)
    assert json.loads(text) == {"event": "pruned", "at": "2026-01-02T00:00:00.000000+00:00", "count": 3}
    log_records([text])
    assert caplog.records[-1].getMessage() == text and caplog.records[-1].__dict__["audit"]["count"] == 3

    class Broken(logging.Handler):
        def handle(self, record: logging.LogRecord) -> bool:
            raise RuntimeError

    handler = Broken()
    logger = logging.getLogger("gopher_mcp_python.audit")
    logger.addHandler(handler)
    try:
        log_records([text])
    finally:
        logger.removeHandler(handler)


# ---- Places for anchors ---------------------------------------------------------------------------------------------


def test_a_file_remembers_every_head(tmp_path: Path) -> None:
    anchor = FileAnchor(tmp_path / "anchor")
    assert anchor.read() == []
    heads = [Head(1, "a"), Head(5, "b"), Head(3, "c")]
    for head in heads:
        anchor.write(head)
    assert FileAnchor(tmp_path / "anchor").read() == heads
    assert (tmp_path / "anchor").stat().st_mode & 0o777 == 0o600


def test_a_line_that_was_cut_off_spoils_no_other(tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    anchor = FileAnchor(path)
    anchor.write(Head(1, "a"))
    path.write_bytes(path.read_bytes() + b'{"seq": 2, "ha')
    anchor.write(Head(3, "c"))
    assert anchor.read() == [Head(1, "a"), Head(3, "c")]


def test_a_file_that_can_not_be_used_is_a_store_error(tmp_path: Path) -> None:
    anchor = FileAnchor(tmp_path)
    for call in (anchor.read, lambda: anchor.write(Head(1, "a"))):
        with pytest.raises(StoreError, match=str(tmp_path)):
            call()


class Keeper(BaseHTTPRequestHandler):
    """A resource that keeps what is put there."""

    kept: bytes | None = None
    status = 200
    authorization = ""

    def do_GET(self) -> None:
        self._answer(type(self).kept)

    def do_PUT(self) -> None:
        type(self).kept = self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(b"")

    def _answer(self, body: bytes | None) -> None:
        kind = type(self)
        kind.authorization = self.headers["Authorization"] or ""
        self.send_response(404 if body is None else kind.status)
        self.send_header("Location", "http://127.0.0.1:1/elsewhere")
        self.send_header("Content-Length", str(len(body or b"")))
        self.end_headers()
        self.wfile.write(body or b"")

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def keeper() -> Iterator[tuple[type[Keeper], str]]:
    kind = type("Own", (Keeper,), {})
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield kind, f"http://127.0.0.1:{server.server_port}/{secret('path')}"
        server.shutdown()
        thread.join()


def test_a_url_remembers_the_last_head(keeper: tuple[type[Keeper], str]) -> None:
    kind, url = keeper
    anchor = UrlAnchor(url, headers={"Authorization": f"Bearer {secret('anchor')}"})
    assert anchor.read() == []
    anchor.write(Head(7, "ab"))
    assert json.loads(kind.kept or b"") == {"seq": 7, "hash": "ab"} and anchor.read() == [Head(7, "ab")]
    assert kind.authorization == f"Bearer {secret('anchor')}" and secret("anchor") not in repr(anchor)
    kind.kept = b'[{"seq": 1, "hash": "x"}, {"seq": "2"}, 3]'
    assert anchor.read() == [Head(1, "x")]


def test_a_url_that_fails_is_a_store_error_without_the_url(keeper: tuple[type[Keeper], str]) -> None:
    kind, url = keeper
    anchor = UrlAnchor(url, timeout_s=WIDE)
    kind.kept = b"<html>"
    with pytest.raises(StoreError, match="did not answer with JSON"):
        anchor.read()
    for status in (500, 403, 302):
        kind.status = status
        with pytest.raises(StoreError, match=rf"127\.0\.0\.1 can't be used \({status}\)"):
            anchor.read()
        with pytest.raises(StoreError, match=str(status)):
            anchor.write(Head(1, "a"))
    with pytest.raises(StoreError, match=r"127\.0\.0\.1"):
        UrlAnchor(f"http://127.0.0.1:1/{secret('path')}").read()


@pytest.mark.parametrize(
    "url",
    [
        "http://example.test/", "ftp://x.test/", "https://", "x", "http://[", "file:///etc", "https://x.test/a pass-44",
        "https://u:pass-44@x.test/", "https://pass-44@x.test/", "https://x.test:pass-44/", "https://x.test/\npass-44",
    ],
)  # fmt: skip
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(ValueError, match="anchor's URL") as caught:
        UrlAnchor(url)
    assert "pass-44" not in str(caught.value)


def test_headers_that_can_not_be_sent_are_not_told(keeper: tuple[type[Keeper], str]) -> None:
    word = secret("header")
    with pytest.raises(ValueError, match="line break") as caught:
        UrlAnchor(keeper[1], headers={"Authorization": f"Bearer {word}\n"})
    assert word not in str(caught.value)
    for header in (f"{word}\0", f"{word}\u2028"):  # the one urllib refuses, the other no header can have
        with pytest.raises(StoreError, match=r"127\.0\.0\.1") as failed:
            UrlAnchor(keeper[1], headers={"X-Other": header, word + ":": "x"}).read()
        assert word not in str(failed.value)


NESTED = b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n" + b"[" * 99_999


@pytest.mark.parametrize("said", [b"", b"SMTP ready\r\n", NESTED], ids=["nothing", "other", "nested"])
def test_a_server_that_speaks_no_http_or_nonsense_is_a_store_error(said: bytes) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            with server.accept()[0] as connection:
                connection.recv(65_536)
                connection.sendall(said)

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(StoreError, match="anchor at 127"):
            UrlAnchor(f"http://127.0.0.1:{server.getsockname()[1]}/", timeout_s=WIDE).read()
        thread.join()


def test_a_chain_that_the_anchor_does_not_know_is_not_anchored(keeper: tuple[type[Keeper], str]) -> None:
    """A place that keeps one head would forget the one that shows what was done."""
    kind, url = keeper
    backend = MemoryBackend()
    with Store(backend, KeyRing.generate(), anchor=UrlAnchor(url), rate=None) as store:
        for _ in range(3):
            store.create_confirmation("ada", tool="t", arguments={})
        assert store.write_anchor() and not store.write_anchor()
        kept, rows = kind.kept, list(backend._tables.audit)
        for cut in ([], rows[:2], chain([row.text + " " for row in rows])):
            backend._tables.audit = list(cut)
            with pytest.raises(StoreError, match="up to record 3: run gopher-mcp audit"):
                store.write_anchor()
            store.create_confirmation("ada", tool="t", arguments={})  # it has grown past what was cut
            with pytest.raises(StoreError, match="up to record 3"):
                store.write_anchor()
            assert kind.kept == kept and not store.verify().ok
        backend._tables.audit = rows
        store.create_confirmation("ada", tool="t", arguments={})
        assert store.write_anchor() and store.verify().anchored == 4


@pytest.mark.parametrize("seq", [True, 0, -1, 2**63, 10**400, "3", None])
def test_heads_that_are_none(seq: object, tmp_path: Path) -> None:
    path = tmp_path / "anchor"
    path.write_text(json.dumps({"seq": seq, "hash": "x"}))
    assert FileAnchor(path).read() == [] and FileAnchor(path).newest() is None


def test_of_a_file_that_grew_large_the_newest_heads_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anchors, "_LARGEST", 1_000)
    monkeypatch.setattr(anchors, "_TAIL", 100)
    anchor = FileAnchor(tmp_path / "anchor")
    for seq in range(1, 201):
        anchor.write(Head(seq, "x" * 10))
    seqs = [head.seq for head in anchor.read()]
    assert seqs == list(range(seqs[0], 201)) and 1 < seqs[0] < 190
    assert anchor.newest() == Head(200, "x" * 10)


def test_an_anchor_of_the_programs_own_that_fails_leaves_no_store_open(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def write(self, head: Head) -> None: ...

        def read(self) -> list[Head]:
            return []

        def newest(self) -> Head | None:
            raise RuntimeError

    store = Store(MemoryBackend(), KeyRing.generate(), anchor=Broken())
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.check()
    assert "was not written at the end: RuntimeError" in caplog.text


def test_an_anchor_that_is_away_keeps_no_store_from_working_or_closing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = Store(MemoryBackend(), KeyRing.generate(), anchor=FileAnchor(tmp_path), rate=None)
    asked = store.create_confirmation("ada", tool="t", arguments={})
    assert store.respond("ada", asked.id, {"confirmed": True}).kind == "recorded"
    with pytest.raises(StoreError, match="anchor"):
        store.verify()
    swept = threading.Event()
    sweep = store.sweep
    store.sweep = lambda limit=1000: (swept.set(), sweep(limit))[1]  # type: ignore[method-assign]
    with Housekeeping(store, anchor_every_s=0.01, sweep_every_s=0.01):
        swept.clear()
        assert swept.wait(WIDE), "the other chores go on"
    store.close()
    text = caplog.text
    assert text.count("anchoring elicitations failed") == 1 and "was not written at the end" in text


def test_intervals_of_housekeeping_that_are_refused() -> None:
    with Store(MemoryBackend(), KeyRing.generate()) as store, pytest.raises(ValueError, match="more than 0"):
        Housekeeping(store, sweep_every_s=0)


@pytest.mark.parametrize("options", [{"rate": (0, 1)}, {"rate": (1, 0)}, {"approval_s": 0}, {"approval_s": 1e9}])
def test_options_that_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValueError):
        Store(MemoryBackend(), KeyRing.generate(), **options)  # type: ignore[arg-type]
