"""Files for this user's eyes only: read with a look at who else could, written whole or not at all, locked.

The rules on modes and owners are POSIX's. On Windows the profile folder's access list protects the files.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .stores import TokenStoreError

__all__ = ["FILE_VARIABLE", "locked", "make_folder", "read_private", "write_private"]

FILE_VARIABLE = "GOPHER_MCP_TOKEN_FILE"
_LARGEST = 1 << 24  # bytes; thousands of tokens, and nothing that would fill the memory
_PATIENCE = 30.0  # seconds to wait for another process; what is done under the lock takes a fraction of one
_ELSEWHERE = f"or put the tokens elsewhere ({FILE_VARIABLE})"


def read_private(path: Path) -> bytes | None:
    """The file's bytes; None when it isn't there.

    Raises: TokenStoreError when it can't be read, is no plain file, or other users own it or could read it.
    """
    try:
        # Not blocking: whoever opens a named pipe would wait for its writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _failure(f"{path} can't be read", error, "see that this user may read it,") from None
    try:
        _refuse_what_others_reach(os.fstat(descriptor), path)
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(_LARGEST + 1)
    except OSError as error:
        raise _failure(f"{path} can't be read", error, "see to the disk,") from None
    finally:
        os.close(descriptor)
    if len(data) > _LARGEST:
        raise TokenStoreError(f"{path} is too large for a file of tokens: move it away, {_ELSEWHERE}")
    return data


def write_private(path: Path, data: bytes) -> None:
    """Replaces the file in one step, for this user only; after a failure it is what it was. Call it under `locked`.

    Raises: TokenStoreError, with the operating system's reason.
    """
    fresh = path.with_name(path.name + ".new")  # one name: what a killed process left is written over
    try:
        with suppress(FileNotFoundError):
            fresh.unlink()
        try:
            _write(fresh, data)
            _replace(fresh, path)
        except BaseException:
            with suppress(OSError):
                fresh.unlink()
            raise
        _sync_folder(path.parent)
    except OSError as error:
        remedy = "nothing was changed; make room on the disk or see that this user may write there,"
        raise _failure(f"{path} can't be written", error, remedy) from None


@contextmanager
def locked(path: Path, patience: float | None = None) -> Iterator[None]:
    """Holds a lock on `path` against other threads and processes (a file beside it, which stays).

    Raises: TokenStoreError when it can't be had within `patience` (in seconds; None: 30).
    """
    lock = path.with_name(path.name + ".lock")
    try:
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise _failure(f"{lock} can't be made", error, "see that this user may write there,") from None
    try:
        _wait_for(descriptor, lock, _PATIENCE if patience is None else patience)
        try:
            yield
        finally:
            _let_go(descriptor)  # closing alone would leave it to a child process that was forked meanwhile
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Makes the folder with those above it, for this user only. Raises TokenStoreError when it can't, or when
    everybody may replace the files in it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        mode = folder.stat().st_mode
    except OSError as error:
        raise _failure(f"the folder {folder} can't be made", error, "see that this user may write there,") from None
    if os.name == "posix" and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise TokenStoreError(f"every user may replace files in {folder}: run chmod o-w {folder}, {_ELSEWHERE}")


def _write(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(descriptor, "wb") as file:
        if sys.platform != "win32":
            os.fchmod(descriptor, 0o600)  # whatever the umask made of it
            if stat.S_IMODE(os.fstat(descriptor).st_mode) & 0o077:
                raise TokenStoreError(f"the file system of {path.parent} keeps no permissions: {_ELSEWHERE[3:]}")
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _replace(fresh: Path, path: Path) -> None:
    if sys.platform == "win32":
        for _ in range(50):  # a file that somebody is reading can't be replaced there; reading takes a moment
            with suppress(PermissionError):
                return os.replace(fresh, path)
            time.sleep(0.02)
    os.replace(fresh, path)


def _sync_folder(folder: Path) -> None:
    """Makes the new name durable, where the system can do that; the tokens themselves are on the disk already."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def _refuse_what_others_reach(found: os.stat_result, path: Path) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise TokenStoreError(f"{path} is no plain file: move it away, {_ELSEWHERE}")
    if sys.platform == "win32":
        return
    if found.st_uid != os.geteuid():
        raise TokenStoreError(
            f"{path} belongs to another user (number {found.st_uid}): run as that user, chown it, {_ELSEWHERE}"
        )
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise TokenStoreError(f"other users may open {path} (its mode is {mode:04o}): run chmod 600 {path}")


def _wait_for(descriptor: int, lock: Path, patience: float) -> None:
    end, pause = time.monotonic() + patience, 0.002
    while True:
        try:
            return _try(descriptor)
        except (BlockingIOError, PermissionError):  # Windows says the second
            if time.monotonic() > end:
                raise TokenStoreError(f"another process keeps {lock} locked: end it and try again") from None
        except OSError as error:
            raise _failure(f"{lock} can't be locked", error, "use a local disk,") from None
        time.sleep(pause)
        pause = min(pause * 1.5, 0.1)


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)

    def _let_go(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)

    def _let_go(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def _failure(what: str, error: OSError, remedy: str) -> TokenStoreError:
    return TokenStoreError(f"{what} ({error.strerror or type(error).__name__}): {remedy} {_ELSEWHERE}")
