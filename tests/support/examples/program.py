"""Runs Python of the documents as a program; `await` may stand at its top, as in a notebook.

    python -m tests.support.examples.program FILE ...    one after the other
    python -m tests.support.examples.program         what is asked for by JSON lines: {"file", "folder", "env"}

The second form has imported the package already, and runs each in a fork of its own: to import it anew for each block
would be most of what the tests of the documents cost. It answers {"code": exit code} and leaves `out` and `err` in the
folder.
"""

from __future__ import annotations

import ast
import asyncio
import gc
import inspect
import json
import os
import select
import signal
import subprocess
import sys
import types
from importlib import import_module
from pathlib import Path
from typing import Any

IMPORTED = ("agent", "engines.embedded", "mcp_toolset", "policy", "forms", "store", "serve", "gateway.http", "asking",
            "providers.direct", "oauth.signin", "oauth.stores", "toolset.tls", "handlers.terminal")  # fmt: skip
_SECONDS = 120.0  # the longest that one may take


def run(file: str) -> None:
    """Runs a file as __main__."""
    module = types.ModuleType("__main__")
    module.__file__ = file
    sys.modules["__main__"] = module
    source = Path(file).read_text(encoding="utf-8")
    code = compile(source, file, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    if code.co_flags & inspect.CO_COROUTINE:
        asyncio.run(eval(code, module.__dict__))
    else:
        exec(code, module.__dict__)


def _serve() -> None:
    for name in IMPORTED:
        import_module(f"gopher_mcp_python.{name}")
    import_module("anyio._backends._asyncio")
    gc.freeze()  # a fork's collector then leaves alone what all of them share
    for line in sys.stdin:
        given = json.loads(line)
        process = os.fork()
        if process == 0:
            _become(**given)
            run(given["file"])
            return  # and ends as any interpreter does
        _, status = os.waitpid(process, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def _become(file: str, folder: str, env: dict[str, str]) -> None:
    """A process of its own: its session, folder, variables and standard streams."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(env)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    for number, opened in enumerate((os.open(os.devnull, os.O_RDONLY), os.open("out", flags), os.open("err", flags))):
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w", encoding="utf-8"), open(2, "w", encoding="utf-8")
    sys.argv[:] = [file]


class Programs:
    """The second form as a process, for as many blocks as there are."""

    def __init__(self) -> None:
        from tests.support import children

        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.examples.program"], env=children.environment(), cwd=children.ROOT,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def run(self, source: str, folder: Path, env: dict[str, str]) -> Any:
        """Runs source in a folder, with these variables and no others. Returns how it ended (`children.Ended`)."""
        from tests.support.children import Ended

        file = folder / "example.py"
        file.write_text(source, encoding="utf-8")
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(json.dumps({"file": str(file), "folder": str(folder), "env": env}) + "\n")
        self._process.stdin.flush()
        if not select.select([self._process.stdout], [], [], _SECONDS)[0]:
            self.close()
            raise AssertionError(f"not ended after {_SECONDS} s:\n{source}\n{(folder / 'err').read_text()}")
        code = json.loads(self._process.stdout.readline())["code"]
        return Ended(code, (folder / "out").read_text(), (folder / "err").read_text(), 0)

    def close(self) -> None:
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()


if __name__ == "__main__":
    if sys.argv[1:]:
        for one in sys.argv[1:]:
            run(one)
    else:
        _serve()
