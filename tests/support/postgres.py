"""A real PostgreSQL server on loopback for the tests, started for the session and removed with its data after it.

`initdb` is the system's (`apt-get install postgresql`). It refuses to run as root, so a root session runs the server as
an unprivileged user of the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

USER = "tester"
PASSWORD = "a-test-password"  # of a server that lives for this test run, on loopback


class Postgres:
    """One server with one superuser, reached over TCP with a password."""

    def __init__(self, *, durable: bool = False) -> None:
        # No fsync in tests: what is killed there is the server, never the machine, and the kernel keeps what it wrote.
        self._settings = "" if durable else " -c fsync=off -c full_page_writes=off"
        self._tools = _tools()
        self._folder = Path(tempfile.mkdtemp(prefix="gopher-mcp-pg-"))
        self._as: dict[str, Any] = {}
        if os.geteuid() == 0:
            user = next(entry for name in ("postgres", "nobody") for entry in _user(name))
            os.chown(self._folder, user.pw_uid, user.pw_gid)
            self._as = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        self.port = _free_port()
        secret = self._folder / "password"
        secret.write_text(PASSWORD)
        os.chmod(secret, 0o644)
        self._run("initdb", "-D", str(self._data), "-U", USER, "--auth=scram-sha-256", f"--pwfile={secret}", "-N", "-E",
                  "UTF8", "--locale=C")  # fmt: skip
        self.start()

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, tool: str, *arguments: str) -> str:
        # Output goes to a file: the server that pg_ctl leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            argv = [str(self._tools / tool), *arguments]
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=120, **self._as
            )
            output.seek(0)
            text = output.read()
            assert done.returncode == 0, f"{tool}: {text[-2000:]}"
            return text

    def dsn(self, database: str = "postgres", *, user: str = USER, password: str = PASSWORD) -> str:
        return f"host=127.0.0.1 port={self.port} user={user} password={password} dbname={database}"

    def start(self) -> None:
        settings = f"-p {self.port} -h 127.0.0.1 -k ''{self._settings}"
        log = str(self._data / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-l", log, "-o", settings, "start")

    @property
    def running(self) -> bool:
        return (self._data / "postmaster.pid").exists()

    def pids(self) -> list[int]:
        """The postmaster, then its processes."""
        first = int((self._data / "postmaster.pid").read_text().split()[0])
        return [first, *(pid for pid, parent in _parents() if parent == first)]

    def kill(self) -> None:
        """Ends every process of the server with SIGKILL, as a crash does, and returns when they are gone."""
        pids = self.pids()
        for pid in pids:
            _signal(pid, signal.SIGKILL)
        end = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() and not _is_zombie(pid) for pid in pids):
            assert time.monotonic() < end, "the server's processes did not end"
            time.sleep(0.01)
        # Where nobody collects orphans a dead postmaster stays as a zombie, which `pg_ctl` takes for a running one.
        (self._data / "postmaster.pid").unlink()

    def freeze(self) -> None:
        """Stops every process of the server where it stands: connections stay open and nobody answers."""
        for pid in self.pids():
            _signal(pid, signal.SIGSTOP)

    def thaw(self) -> None:
        for pid in self.pids():
            _signal(pid, signal.SIGCONT)

    def dump(self, database: str) -> str:
        """Everything that is in a database, as `pg_dump` writes it; bytea comes as hexadecimal digits."""
        return self._run("pg_dump", "--inserts", "-d", self.dsn(database))

    def close(self) -> None:
        try:
            if self.running:
                self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _tools() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    named = shutil.which("initdb")
    if named is None and not found:
        raise FileNotFoundError("no PostgreSQL server on this machine: apt-get install postgresql")
    return found[-1].parent if found else Path(str(named)).resolve().parent


def _parents() -> list[tuple[int, int]]:
    """Every process and its parent."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            found.append((int(entry.name), int(_stat(int(entry.name))[1])))
        except (ValueError, OSError):
            continue  # no process, or one that has just ended
    return found


def _stat(pid: int) -> list[str]:
    """State, parent and the rest of /proc/PID/stat."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _is_zombie(pid: int) -> bool:
    try:
        return _stat(pid)[0] == "Z"
    except OSError:
        return True


def _signal(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _user(name: str) -> list[pwd.struct_passwd]:
    try:
        return [pwd.getpwnam(name)]
    except KeyError:
        return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
