"""One benchmark in a process of its own, for benchmarks/__main__.py.

    python -m benchmarks._child MODULE [--quick] [NAME=PYTHON ...]

Its last line is the benchmark's JSON object, or an object with "failed" or "not_here": why there is none, on one line.
GOPHER_MCP_DEBUG=1 shows a failure's traceback.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import traceback
from collections.abc import Sequence
from typing import Any

from benchmarks._report import NotHere, run


def outcome(name: str, quick: bool, named: Sequence[str] = ()) -> dict[str, Any]:
    """What the last line says. Never raises but for Ctrl-C."""
    try:
        return run(name, importlib.import_module(f"benchmarks.{name}"), quick=quick, named=named)
    except NotHere as why:
        return {"not_here": one_line(why)}
    except Exception as error:
        if os.environ.get("GOPHER_MCP_DEBUG"):
            traceback.print_exc()
        return {"failed": f"{type(error).__name__}: {one_line(error)}"}


def one_line(error: BaseException) -> str:
    """The beginning of an error's text, without line breaks."""
    return " ".join(str(error).split())[:300]


if __name__ == "__main__":
    words = sys.argv[2:]
    print(json.dumps(outcome(sys.argv[1], "--quick" in words, [word for word in words if "=" in word])), flush=True)
