"""A real PostgreSQL server on loopback for the tests, started for the session and removed with its data after it.

`initdb` is the system's (`apt-get install postgresql`). It refuses to run as root, so a root session runs the server as
an unprivileged user of the machine.
"""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

USER = "tester"
PASSWORD = "a-test-password"  # of a server that lives for this test run, on loopback


class Postgres:
    """One server with one superuser, reached over TCP with a password."""

    def __init__(self) -> None:
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
        settings = f"-p {self.port} -h 127.0.0.1 -k '' -c fsync=off -c full_page_writes=off"
        log = str(self._data / "log")
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "60", "-l", log, "-o", settings, "start")

    @property
    def _data(self) -> Path:
        return self._folder / "data"

    def _run(self, tool: str, *arguments: str) -> None:
        # Output goes to a file: the server that pg_ctl leaves behind would keep a pipe open.
        with tempfile.TemporaryFile("w+") as output:
            argv = [str(self._tools / tool), *arguments]
            done = subprocess.run(
                argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/", timeout=120, **self._as
            )
            output.seek(0)
            assert done.returncode == 0, f"{tool}: {output.read()[-2000:]}"

    def dsn(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user={USER} password={PASSWORD} dbname={database}"

    def close(self) -> None:
        try:
            self._run("pg_ctl", "-D", str(self._data), "-m", "immediate", "-w", "stop")
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _tools() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: float(path.parts[4]))
    named = shutil.which("initdb")
    if named is None and not found:
        raise FileNotFoundError("no PostgreSQL server on this machine: apt-get install postgresql")
    return found[-1].parent if found else Path(str(named)).resolve().parent


def _user(name: str) -> list[pwd.struct_passwd]:
    try:
        return [pwd.getpwnam(name)]
    except KeyError:
        return []


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
