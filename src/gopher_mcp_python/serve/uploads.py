"""Files that people answer with: streamed to a folder, counted and checked on the way, under names of ours.

    <folder>/<file id>            the bytes, mode 0600
    <folder>/<file id>.json       what is known of them: caller, elicitation, name, size, sha256, media type
    <folder>/<file id>.part       while they come; removed when they don't all come

The sender's name is kept as a word for people and never used as a path.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import threading
import time
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from ..oauth.privatefile import make_folder
from ..oauth.stores import TokenStoreError
from .media import MediaCheck

__all__ = ["QuotaExceeded", "Refused", "Upload", "Uploads", "plain_name"]

MAX_BYTES = 25 << 20  # of one file, where the request names no limit or a larger one
MAX_PER_CALLER = 250 << 20  # bytes of all files of a caller
MAX_FILES = 500  # of a caller
MAX_AT_ONCE = 4  # uploads of one caller
MAX_NAME = 120  # characters
_ID = re.compile(r"file_[A-Za-z0-9_-]{22}\Z")
_OLD_PART = 3600.0  # seconds; no upload takes so long


class Refused(Exception):
    """The file is not taken; the text says why. `status` is HTTP's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class QuotaExceeded(Refused):
    """There is no room for the caller's file now."""

    def __init__(self, message: str) -> None:
        super().__init__(429, message)


@dataclass(frozen=True)
class Upload:
    """A file that has come."""

    file_id: str
    caller: str
    elicitation: str
    name: str = field(repr=False)
    size: int
    sha256: str = field(repr=False)
    media_type: str
    created: float
    is_answer: bool = False

    def answer(self) -> dict[str, Any]:
        """The response of a file_upload elicitation."""
        names = ("file_id", "name", "size", "sha256", "media_type")
        return {name: getattr(self, name) for name in names}


class Uploads:
    """The folder. Any thread."""

    def __init__(self, folder: str | Path, *, max_bytes: int = MAX_BYTES, max_per_caller: int = MAX_PER_CALLER) -> None:
        """Raises ValueError when the folder can't be made or is open to others."""
        self.folder = Path(folder).expanduser()
        self.max_bytes, self.max_per_caller = max_bytes, max_per_caller
        self._coming: dict[str, list[Incoming]] = {}
        self._known: dict[str, Upload] = {}  # read before; the folder says which are still there
        self._lock, self._noting = threading.Lock(), threading.Lock()
        try:
            make_folder(self.folder)
        except TokenStoreError as error:
            raise ValueError(error.message.partition(", or put")[0]) from None
        self.sweep()

    def __repr__(self) -> str:
        return f"Uploads({str(self.folder)!r})"

    def begin(self, caller: str, elicitation: str, *, name: str, media_type: str, limit: int | None) -> Incoming:
        """A file that is about to come. Raises QuotaExceeded."""
        most = min(limit or self.max_bytes, self.max_bytes)
        with self._lock:
            coming = self._coming.setdefault(caller, [])
            if len(coming) >= MAX_AT_ONCE:
                raise QuotaExceeded(f"{MAX_AT_ONCE} files are coming already: wait for one to end")
            stored = [upload.size for upload in self._all() if upload.caller == caller]
            room = self.max_per_caller - sum(stored) - sum(one.most for one in coming)
            if len(stored) + len(coming) >= MAX_FILES or room <= 0:
                raise QuotaExceeded("there is no room for more files of this caller")
            incoming = Incoming(self, caller, elicitation, plain_name(name), media_type, most, room)
            coming.append(incoming)
        return incoming

    def find(self, caller: str, elicitation: str, file_id: object) -> Upload | None:
        """A caller's file for one elicitation; None also for somebody else's."""
        upload = self._read(file_id) if isinstance(file_id, str) else None
        mine = upload is not None and (upload.caller, upload.elicitation) == (caller, elicitation)
        return upload if mine else None

    def path(self, file_id: str) -> Path:
        """Where the bytes are. Raises ValueError for what is no id of a file."""
        if not _ID.match(file_id):
            raise ValueError("no id of a file")
        return self.folder / file_id

    def claim(self, upload: Upload) -> bool:
        """It is about to be an answer, so that nothing removes it; False when it was one. Noted before the answer is
        recorded: what dies in between leaves a file too many, and never an answer without its file. Raises Refused when
        it is not there any more."""
        with self._noting:
            found = self._read(upload.file_id)
            if found is None:
                raise Refused(409, "the file was removed meanwhile: send it again")
            if found.is_answer:
                return False
            self._note(Upload(**{**asdict(upload), "is_answer": True}))
            return True

    def release(self, upload: Upload) -> None:
        """It has not become the answer."""
        with self._noting:
            self._note(Upload(**{**asdict(upload), "is_answer": False}))

    def keep(self, upload: Upload) -> None:
        """It is the answer; other files for the same elicitation go."""
        self.claim(upload)
        self.drop(upload.elicitation, but=upload.file_id)

    def drop(self, elicitation: str, *, but: str | None = None) -> None:
        """Removes the files of an elicitation that are no answer."""
        for upload in self._all():
            if upload.elicitation == elicitation and upload.file_id != but:
                self._remove(upload.file_id)

    def sweep(self, older_than: float = 86_400.0) -> int:
        """Removes parts that were left behind, and files that nobody answered with in so many seconds. Returns how
        many were removed."""
        now, removed = time.time(), 0
        for part in self.folder.glob("*.part"):
            with suppress(OSError):
                if now - part.stat().st_mtime > _OLD_PART:
                    part.unlink()
                    removed += 1
        for upload in self._all():
            if now - upload.created > older_than:
                removed += self._remove(upload.file_id)
        return removed

    def _all(self) -> Iterator[Upload]:
        names = set(os.listdir(self.folder))
        for name in names:
            file_id = name.removesuffix(".json")
            if file_id != name and file_id in names:  # whoever removes a file may leave its note
                upload = self._known.get(file_id) or self._read(file_id)
                if upload is not None:
                    self._known[file_id] = upload
                    yield upload

    def _read(self, file_id: str) -> Upload | None:
        if not _ID.match(file_id):
            return None
        try:
            return Upload(**json.loads((self.folder / f"{file_id}.json").read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _note(self, upload: Upload) -> None:
        path = self.folder / f"{upload.file_id}.json"
        fresh = path.with_suffix(".json.part")
        with _private(fresh) as file:
            file.write(json.dumps(asdict(upload)).encode())
        os.replace(fresh, path)
        self._known[upload.file_id] = upload

    def _remove(self, file_id: str) -> bool:
        """Removes a file that is no answer."""
        with self._noting:  # nobody claims it meanwhile
            upload = self._read(file_id)  # another process may have made it one
            if upload is not None and upload.is_answer:
                return False
            self._known.pop(file_id, None)
            for path in (self.folder / f"{file_id}.json", self.folder / file_id):
                with suppress(OSError):
                    path.unlink()
            return True

    def _ended(self, incoming: Incoming) -> None:
        with self._lock:
            coming = self._coming.get(incoming.caller, [])
            if incoming in coming:
                coming.remove(incoming)
            if not coming:
                self._coming.pop(incoming.caller, None)


class Incoming:
    """A file that is coming: `write` what has come, then `finish`; `abort` in any case (it does nothing afterwards)."""

    def __init__(
        self, uploads: Uploads, caller: str, elicitation: str, name: str, media_type: str, most: int, room: int
    ) -> None:
        self.caller, self.most = caller, most
        self._uploads, self._elicitation, self._name = uploads, elicitation, name
        self._room = room
        self._id = "file_" + secrets.token_urlsafe(16)
        self._part = uploads.folder / f"{self._id}.part"
        self._file: IO[bytes] | None = None
        self._lock, self._is_over = threading.Lock(), False  # a thread may still write when the request has gone
        self._hash, self._size = hashlib.sha256(), 0
        self._check, self._claimed = MediaCheck(media_type), media_type

    def write(self, chunk: bytes) -> None:
        """Raises Refused for too much (413), what is not of its type (415), no room (429)."""
        with self._lock:
            if self._is_over:
                raise Refused(409, "the file was given up")
            self._judge(chunk)
            self._hash.update(chunk)
            if self._file is None:
                self._file = _private(self._part)
            self._file.write(chunk)

    def _judge(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self.most:
            raise Refused(413, f"the file is larger than {self.most} bytes")
        if self._size > self._room:
            raise QuotaExceeded("there is no room for more files of this caller")
        if not self._check.feed(chunk) or not self._check.early():
            raise self._other_type()

    def finish(self) -> Upload:
        """Raises Refused."""
        with self._lock:
            if self._is_over or self._file is None:
                raise Refused(422, "the file is empty")
            media_type = self._check.finish()
            if media_type is None:
                raise self._other_type()
            self._is_over = True
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
        upload = Upload(
            self._id, self.caller, self._elicitation, self._name, self._size, self._hash.hexdigest(), media_type,
            time.time(),
        )  # fmt: skip
        os.replace(self._part, self._uploads.folder / self._id)
        self._uploads._note(upload)
        self._uploads._ended(self)
        return upload

    def abort(self) -> None:
        """Leaves nothing of a file that has not come whole."""
        with self._lock:
            self._is_over = True
            if self._file is not None:
                self._file.close()
            with suppress(OSError):
                self._part.unlink()
        self._uploads._ended(self)

    def _other_type(self) -> Refused:
        return Refused(415, f"the file's content is not {self._claimed}")


def plain_name(name: str) -> str:
    """A file's name as a word for people: the last step of a path, on one line, short, nothing invisible."""
    last = re.split(r"[/\\]", unicodedata.normalize("NFC", name))[-1]
    shown = "".join(c for c in last if c.isprintable() and unicodedata.category(c) not in ("Cf", "Co", "Cn", "Cs"))
    shown = shown.strip(" .")
    if len(shown) > MAX_NAME:
        stem, dot, ending = shown.rpartition(".")
        tail = dot + ending if dot and len(ending) <= 10 else ""
        shown = (stem if tail else shown)[: MAX_NAME - len(tail)] + tail
    return shown or "file"


def _private(path: Path) -> IO[bytes]:
    """A new file for this user only; refuses one that is there (a link, for one)."""
    with suppress(FileNotFoundError):
        path.unlink()
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(path, flags, 0o600), "wb")
