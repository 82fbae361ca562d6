"""A script of Node that answers a line of JSON with a line of JSON, for as long as a test module needs it."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from tests.support import children


class Lines:
    """The process. A question takes many cases, so that Node is never waited for much."""

    def __init__(self, *argv: str) -> None:
        self._process = subprocess.Popen(
            argv, env=children.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def exchange(self, question: Any) -> Any:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(json.dumps(question).encode() + b"\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "Node has ended"
        return json.loads(line)

    def close(self) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        self._process.wait(20)
        self._process.stdout.close()
