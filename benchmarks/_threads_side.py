"""One build's side of benchmarks/threads.py, in a process of its own: `_threads_side.py DRIVER MOST`.

Reads lines "THREADS CALLS" from standard input and prints for each a JSON line: nanoseconds for one of CALLS inline
callbacks that so many native threads make at once, each thread on an agent of its own (`own_ns`), and all on the same
one (`shared_ns`). Its first line says which Python it is. The file is run by the interpreter of each build.
"""

from __future__ import annotations

import ctypes
import json
import platform
import sys
import sysconfig
from typing import Any

from gopher_mcp_python import GopherAgent
from gopher_mcp_python.elicitation import non_blocking
from gopher_mcp_python.ffi import _bridge


def about() -> dict[str, Any]:
    """Version, and whether the GIL is there now: importing an extension can have switched it on."""
    return {
        "python": platform.python_version(),
        "free_threaded": bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
    }


def made() -> GopherAgent:
    """An agent that shares nothing with the others, not even its handler."""
    options = {"engine": "native", "elicitation": {"handler": non_blocking(lambda request: "accept")}}
    return GopherAgent.create_with_url("OpenAIProvider", "model", "https://mcp.example.test/mcp", options)


def main() -> None:
    path, most = sys.argv[1], int(sys.argv[2])
    driver = ctypes.CDLL(path).driver_threads
    driver.restype = ctypes.c_double
    driver.argtypes = [ctypes.c_void_p, ctypes.POINTER(ctypes.c_uint64), ctypes.c_long, ctypes.c_long, ctypes.c_int]
    agents = [made() for _ in range(most)]
    # The token is the bridge's own business, so there is no public way to it.
    handles = [agent._life.engine()._handle for agent in agents]  # type: ignore[attr-defined]
    tokens = (ctypes.c_uint64 * most)(*(handle.token for handle in handles))
    callback = _bridge.trampoline_address()
    print(json.dumps(about()), flush=True)
    for line in sys.stdin:
        threads, calls = map(int, line.split())
        each = calls // threads
        figures = {
            "own_ns": float(driver(callback, tokens, most, each, threads)),
            "shared_ns": float(driver(callback, tokens, 1, each, threads)),
        }
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
