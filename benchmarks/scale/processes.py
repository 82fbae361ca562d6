"""Work in processes of their own: N connections at once without one interpreter's lock, memory of one thing only."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_MOST = 4
"""Processes at once: more would only stand in each other's way on a machine of few cores."""
_TICK = os.sysconf("SC_CLK_TCK")


def cpu_of(pids: Sequence[int]) -> float:
    """Seconds of processor that these processes have taken so far."""
    total = 0.0
    for pid in pids:
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += (int(fields[11]) + int(fields[12])) / _TICK
    return total


def resident(pid: int | str = "self") -> int:
    """Bytes of memory that a process has of its own (anonymous pages)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError("this system does not tell how much memory a process has")


def at_once(task: str, connections: int, seconds: float, **given: Any) -> dict[str, Any]:
    """Runs `task` of this module on so many connections for so long. Returns the sum of what was done, per second, and
    what a process took.

    Everybody is connected before the time begins; who is late is not counted."""
    processes = min(_MOST, connections)
    shares = [connections // processes + (number < connections % processes) for number in range(processes)]
    argv = [sys.executable, "-m", "benchmarks.scale.processes"]
    started = []
    for number, share in enumerate(shares):
        told = json.dumps({"task": task, "threads": share, "first": number * 1000, "seconds": seconds, **given})
        started.append(subprocess.Popen([*argv, told], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
    try:
        for one in started:
            if one.stdout is None or one.stdout.readline() != "ready\n":
                raise RuntimeError(f"{task} did not begin")
        for one in started:
            assert one.stdin is not None
            one.stdin.write("go\n")
            one.stdin.flush()
        found = [json.loads(one.communicate(timeout=120 + seconds)[0]) for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()
    times = sorted(moment for result in found for moment in result["times"])
    done = sum(result["done"] for result in found)
    return {
        "connections": connections,
        "per_second": done / seconds,
        "cpu_s": sum(result["cpu_s"] for result in found) / max(1, done),
        "median_s": times[len(times) // 2] if times else None,
        "p99_s": times[int(len(times) * 0.99)] if times else None,
    }


def _run(told: dict[str, Any]) -> None:
    steps = [TASKS[told["task"]](told, told["first"] + number) for number in range(told["threads"])]
    for step in steps:
        step()
    print("ready", flush=True)
    sys.stdin.readline()
    end, results = time.perf_counter() + told["seconds"], []
    before = time.process_time()
    threads = [threading.Thread(target=_repeat, args=(step, end, results)) for step in steps]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(json.dumps({"done": len(results), "times": results[-5000:], "cpu_s": time.process_time() - before}))


def _repeat(step: Callable[[], None], end: float, results: list[float]) -> None:
    while (begin := time.perf_counter()) < end:
        step()
        now = time.perf_counter()
        if now <= end:
            results.append(now - begin)


# ---- tasks ----------------------------------------------------------------------------------------------------------


def _pair(told: dict[str, Any], number: int) -> Callable[[], None]:
    """A question and its answer, of a caller of its own."""
    from gopher_mcp_python.store import KeyRing, Store
    from gopher_mcp_python.store.postgres import PostgresBackend

    store, caller = Store(PostgresBackend(told["dsn"], pool_size=1), KeyRing.generate(), rate=None), f"caller-{number}"

    def step() -> None:
        id = store.create_confirmation(caller, tool="delete_file", arguments={"path": "/srv/a"}).id
        store.respond(caller, id, {"confirmed": True})

    return step


def _statement(told: dict[str, Any], number: int) -> Callable[[], None]:
    """One transaction of plain SQL; {n} in it is the connection's number."""
    import psycopg

    connection = psycopg.connect(told["dsn"], autocommit=True)
    query = told["query"].replace("{n}", str(number))
    text = json.dumps({"event": "responded", "elicitation": "el_" + "x" * 22, "caller": "caller-1", "status": "y" * 60})

    def step() -> None:
        connection.execute(query, [text])

    return step


TASKS: dict[str, Callable[[dict[str, Any], int], Callable[[], None]]] = {"pair": _pair, "statement": _statement}

if __name__ == "__main__":
    _run(json.loads(sys.argv[1]))
