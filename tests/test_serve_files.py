"""Files that people answer with: counted, checked, stored under names of ours; nothing is left of what did not come."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gopher_mcp_python.serve import uploads as uploads_module
from gopher_mcp_python.serve.media import MediaCheck, allows, is_media_type
from gopher_mcp_python.serve.uploads import QuotaExceeded, Uploads, plain_name
from gopher_mcp_python.store import model
from gopher_mcp_python.store.errors import StoreError
from tests.support.serving import BASE, Serving

PNG = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + bytes(50)


@pytest.fixture
def serving(tmp_path: Path) -> Iterator[Serving]:
    running = Serving(tmp_path, max_per_caller=3_000_000)
    yield running
    running.close()


def ask(serving: Serving, *kinds: str, most: int = 1_000_000) -> str:
    return serving.store.create("ada", model.file_upload("A file?", media_types=kinds, max_bytes=most)).id


def in_folder(serving: Serving) -> list[str]:
    return sorted(path.name for path in serving.uploads.folder.iterdir())


# ---- Sent and answered with -----------------------------------------------------------------------------------------


def test_a_file_is_stored_and_answered_with(serving: Serving) -> None:
    identity, data = ask(serving, "image/*"), PNG + os.urandom(700_000)
    sent = serving.send_file(identity, data, "image/png", name="..%2F..%2Fetc%2Fp%C3%A4ss.png")
    assert sent.status == 201
    upload = sent.json
    digest = hashlib.sha256(data).hexdigest()
    assert (upload["size"], upload["sha256"], upload["media_type"]) == (len(data), digest, "image/png")
    assert upload["name"] == "p\u00e4ss.png"
    stored = serving.uploads.path(upload["file_id"])
    assert stored.read_bytes() == data and stored.parent == serving.uploads.folder
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(serving.uploads.folder.stat().st_mode) == 0o700

    assert serving.respond(identity, {"file_id": upload["file_id"]}).status == 200
    assert serving.store.result("ada", identity) == upload
    assert serving.respond(identity, upload).json["outcome"] == "already_recorded"


def test_the_short_answer_again_is_fine(serving: Serving) -> None:
    identity = ask(serving)
    first, second = (serving.send_file(identity, text, "text/plain").json["file_id"] for text in (b"one", b"two"))
    for outcome in ("recorded", "already_recorded", "already_recorded"):
        assert serving.respond(identity, {"file_id": first}).json["outcome"] == outcome
    for other in ({"file_id": second}, {"file_id": "x"}, {}, {"file_id": first, "size": 9}):
        refused = serving.respond(identity, other)
        assert (refused.status, refused.error.get("status")) == (409, "responded"), other
    assert in_folder(serving) == sorted([first, f"{first}.json"])


def test_no_answer_is_without_its_file(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dies between the two: the file is kept from before the answer is recorded."""
    identity = ask(serving)
    upload = serving.send_file(identity, b"text", "text/plain").json
    recorded = serving.store.respond

    def dies(*given: Any, **named: Any) -> Any:
        recorded(*given, **named)
        raise StoreError("gone before it could say so")

    monkeypatch.setattr(serving.store, "respond", dies)
    assert serving.respond(identity, {"file_id": upload["file_id"]}).status == 503
    assert serving.uploads.sweep(older_than=-1) == 0 and serving.uploads.path(upload["file_id"]).exists()
    assert serving.store.result("ada", identity) == upload


def test_a_file_that_has_not_become_the_answer_is_swept_away(serving: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    identity = ask(serving)
    upload = serving.send_file(identity, b"text", "text/plain").json
    respond = serving.store.respond

    def too_late(caller: str, id: str, *given: Any, **named: Any) -> Any:
        serving.store.cancel(caller, id)
        return respond(caller, id, *given, **named)

    monkeypatch.setattr(serving.store, "respond", too_late)
    assert serving.respond(identity, upload).status == 409
    assert serving.uploads.sweep(older_than=-1) == 1 and in_folder(serving) == []


def test_only_what_was_received_is_believed(serving: Serving) -> None:
    identity = ask(serving)
    upload = serving.send_file(identity, b"text", "text/plain").json
    other = serving.send_file(ask(serving), b"other", "text/plain").json["file_id"]
    wrong: list[Any] = [{**upload, "size": 5}, {**upload, "name": "x"}, {"file_id": other}, {**upload, "path": "/"}]
    for response in [*wrong, {"file_id": "../../etc/passwd"}, {"file_id": 1}, {}]:
        refused = serving.respond(identity, response)
        assert refused.status == 422 and refused.error["fields"], response
    assert serving.store.get("ada", identity).retries == 0
    assert serving.respond(identity, upload).status == 200


def test_the_answer_stays_and_the_others_go(serving: Serving) -> None:
    identity, gone = ask(serving), ask(serving)
    first, second = (serving.send_file(identity, text, "text/plain").json["file_id"] for text in (b"one", b"two"))
    serving.send_file(gone, b"three", "text/plain")
    serving.respond(identity, {"file_id": second})
    serving.post(f"{BASE}/{gone}/cancel")
    assert in_folder(serving) == sorted([second, f"{second}.json"])
    late = serving.send_file(identity, b"late", "text/plain")
    assert (late.status, late.error["status"]) == (409, "responded")
    assert first != second and serving.uploads.sweep(older_than=-1) == 0, "an answer is never swept away"


def test_not_asked_for(serving: Serving) -> None:
    text = serving.store.create("ada", model.string_input("?")).id
    assert serving.send_file(text, b"x", "text/plain").status == 409
    identity = ask(serving)
    assert serving.send_file(identity, b"x", "text/plain", token=serving.other).status == 404
    assert serving.send_file(identity, b"x", "text/plain", token=serving.call).status == 403
    assert in_folder(serving) == []


# ---- Refused on the way ---------------------------------------------------------------------------------------------


def test_files_that_are_not_what_is_said(serving: Serving) -> None:
    cases: list[tuple[str, bytes]] = [
        ("image/png", b"<script>alert(1)</script>" * 10), ("image/png", b"GIF89a" + bytes(50)),
        ("text/plain", b"MZ\x90\x00\x03\x00"), ("text/plain", b"\xff\xfe\x00\x01" * 9), ("text/csv", PNG),
        ("application/pdf", b"PK\x03\x04" + bytes(50)), ("application/zip", b"%PDF-1.7" + bytes(50)),
        ("image/jpeg", b"\xff\xd8"), ("text/plain", "\u00e4".encode()[:1]), ("text/plain", b"a\0b"),
    ]  # fmt: skip
    for kind, data in cases:
        refused = serving.send_file(ask(serving), data, kind)
        assert refused.status == 415, (kind, data[:10])
    assert in_folder(serving) == []


def test_files_that_are_not_asked_for(serving: Serving) -> None:
    identity = ask(serving, "text/csv", "image/*")
    for kind in (
        "text/plain",
        "",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "*/*",
        "image/",
    ):
        assert serving.send_file(identity, PNG, kind).status == 415, kind
    assert serving.send_file(identity, b"a,b\n", "text/csv; charset=utf-8").status == 201


def test_empty_and_large_files(serving: Serving) -> None:
    identity = ask(serving, most=1000)
    assert serving.send_file(identity, b"", "text/plain").status == 422
    assert serving.send_file(identity, b"x" * 1001, "text/plain").status == 413
    with serving.raw() as connection:  # its size is not told, and it never ends
        head = f"POST {BASE}/{identity}/file HTTP/1.1\r\nHost: {serving.host}\r\nAuthorization: Bearer {serving.answer}"
        connection.sendall(f"{head}\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n".encode())
        connection.sendall(b"100000\r\n" + b"x" * 0x100000 + b"\r\n")
        assert connection.makefile("rb").readline().split()[1] == b"413"
    assert in_folder(serving) == []
    assert serving.send_file(identity, b"x" * 1000, "text/plain").status == 201


def test_a_name_as_long_as_is_documented(serving: Serving) -> None:
    identity = ask(serving)
    assert serving.send_file(identity, b"x", "text/plain", name="x" * 3000).status == 201
    refused = serving.send_file(identity, b"x", "text/plain", name="x" * 3001)
    assert (refused.status, list(refused.error["fields"])) == (422, ["name"])


def test_nothing_is_left_of_a_file_that_broke_off(serving: Serving) -> None:
    identity = ask(serving)
    with serving.raw() as connection:
        head = f"POST {BASE}/{identity}/file HTTP/1.1\r\nHost: {serving.host}\r\nAuthorization: Bearer {serving.answer}"
        connection.sendall(f"{head}\r\nContent-Type: text/plain\r\nContent-Length: 900000\r\n\r\n".encode())
        connection.sendall(b"x" * 600_000)
        _until(lambda: any(name.endswith(".part") for name in in_folder(serving)))
    _until(lambda: not in_folder(serving))
    assert serving.send_file(identity, b"whole", "text/plain").status == 201


def _until(happened: Callable[[], bool]) -> None:
    import time

    end = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < end, "it did not happen within 20 s"
        time.sleep(0.01)


def test_quota(serving: Serving) -> None:
    identity = ask(serving)
    for _ in range(3):
        assert serving.send_file(identity, b"x" * 900_000, "text/plain").status == 201
    full = serving.send_file(identity, b"x" * 900_000, "text/plain")
    assert full.status == 429 and full.headers["retry-after"]
    assert len([name for name in in_folder(serving) if not name.endswith(".json")]) == 3
    bob = serving.store.create("bob", model.file_upload("?")).id
    assert serving.send_file(bob, b"x" * 900_000, "text/plain", token=serving.other).status == 201


def test_without_a_folder(tmp_path: Path) -> None:
    serving = Serving(tmp_path, uploads=None)
    try:
        identity = ask(serving)
        assert serving.send_file(identity, b"x", "text/plain").status == 503
        made_up = {"file_id": "../x", "name": "x", "size": 1, "sha256": "0" * 64, "media_type": "text/plain"}
        assert serving.respond(identity, made_up).status == 503
        assert serving.store.get("ada", identity).status == "pending"
        assert serving.post(f"{BASE}/{identity}/cancel").status == 200
        assert serving.respond(identity, made_up).status == 409
    finally:
        serving.close()


# ---- The folder -----------------------------------------------------------------------------------------------------


def test_too_many_at_once(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "up")
    coming = [uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10) for _ in range(4)]
    with pytest.raises(QuotaExceeded):
        uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)
    uploads.begin("bob", "el", name="x", media_type="text/plain", limit=10).abort()
    for one in coming:
        one.abort()
    uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10).abort()


def test_too_many_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads_module, "MAX_FILES", 2)
    uploads = Uploads(tmp_path / "up")
    for _ in range(2):
        incoming = uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)
        incoming.write(b"text")
        incoming.finish()
    with pytest.raises(QuotaExceeded):
        uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)


def test_who_removes_files_makes_room(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "up", max_per_caller=10)
    incoming = uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)
    incoming.write(b"ten bytes!")
    uploads.keep(upload := incoming.finish())
    with pytest.raises(QuotaExceeded):
        uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)
    uploads.path(upload.file_id).unlink()
    uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10).abort()


def test_what_is_old_is_swept_away(tmp_path: Path) -> None:
    folder = tmp_path / "up"
    uploads = Uploads(folder)
    incoming = uploads.begin("ada", "el", name="x", media_type="text/plain", limit=10)
    incoming.write(b"text")
    upload = incoming.finish()
    left = folder / "file_x.part"
    left.write_bytes(b"x")
    os.utime(left, (0, 0))
    assert Uploads(folder).find("ada", "el", upload.file_id) == upload, "another process sees it, and keeps it"
    assert not left.exists()
    assert uploads.sweep(older_than=-1) == 1 and list(folder.iterdir()) == []


def test_a_folder_that_others_may_change_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "up"
    folder.mkdir()
    folder.chmod(0o777)
    with pytest.raises(ValueError, match="chmod o-w"):
        Uploads(folder)


def test_damaged_notes_are_no_files(tmp_path: Path) -> None:
    uploads = Uploads(tmp_path / "up")
    name = "file_" + "A" * 22
    for text in ("", "{}", "[]", json.dumps({"file_id": name}), "\0"):
        (uploads.folder / f"{name}.json").write_text(text)
        assert uploads.find("ada", "el", name) is None
    for odd in ("../x", name + "/..", "", "file_", name.upper()):
        with pytest.raises(ValueError):
            uploads.path(odd)


def test_names_are_words() -> None:
    cases = {
        "../../etc/passwd": "passwd", "C:\\x\\report.pdf": "report.pdf", "": "file", "..": "file", "a/": "file",
        "x\x00\n\x1b[2Jy\u202e.txt": "x[2Jy.txt", "a" * 300 + ".jpeg": "a" * 115 + ".jpeg", " .hidden ": "hidden",
        "e\u0301": "\u00e9", "\ud800x": "x",
    }  # fmt: skip
    for given, told in cases.items():
        assert plain_name(given) == told, given


def test_types() -> None:
    assert is_media_type("text/csv") and is_media_type("application/vnd.oasis.opendocument.text")
    assert not any(map(is_media_type, ("", "text", "text/", "/csv", "te xt/csv", "text/csv/x", "text/*")))
    assert allows([], "a/b") and allows(["image/*"], "image/png") and allows(["IMAGE/PNG"], "image/png")
    assert not allows(["image/*"], "text/plain") and not allows(["image/png"], "image/jpeg")
    kinds: dict[str, bytes] = {
        "image/png": PNG, "image/jpeg": b"\xff\xd8\xff\xe0" + bytes(20), "image/gif": b"GIF89a" + bytes(20),
        "application/pdf": b"%PDF-1.7\n" + bytes(20), "application/zip": b"PK\x03\x04" + bytes(20),
        "application/gzip": b"\x1f\x8b\x08" + bytes(20), "image/webp": b"RIFF\0\0\0\0WEBPVP8 " + bytes(9),
        "video/mp4": b"\0\0\0\x18ftypmp42" + bytes(9), "text/plain": "h\u00e9llo".encode(), "application/json": b"{}",
        "application/octet-stream": os.urandom(2) + b"\x01" * 30,
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document": b"PK\x03\x04" + bytes(20),
    }  # fmt: skip
    for claimed, data in kinds.items():
        check: Any = MediaCheck(claimed)
        assert all(check.feed(data[at : at + 1]) and check.early() for at in range(len(data))), claimed
        assert check.finish() == claimed
    check = MediaCheck("application/octet-stream")
    check.feed(PNG)
    assert check.finish() == "application/octet-stream"
    check = MediaCheck("image/jpg")
    check.feed(b"\xff\xd8\xff\xe0" + bytes(20))
    assert check.finish() == "image/jpg", "another name of the same, and the one that was asked for"
