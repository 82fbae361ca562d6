"""What one process takes: a waiter on a thread and in an event loop, a page's feed, sealing, a replica that idles."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks._report import median, note
from benchmarks.scale.processes import cpu_of, resident

THREADS, TASKS, FEEDS = 400, 4000, 150


def measure(seconds: float) -> dict[str, Any]:
    note("waiters, feeds, sealing")
    return {
        "waiter_thread": _elsewhere("threads", seconds),
        "waiter_task": _elsewhere("tasks", seconds),
        **_sealing(),
        **_replica(),
        "sync_s": _sync(),
    }


def _elsewhere(kind: str, seconds: float) -> dict[str, float]:
    argv = [sys.executable, "-m", "benchmarks.scale.memory", kind, str(seconds)]
    return dict(json.loads(subprocess.run(argv, stdout=subprocess.PIPE, check=True, text=True, timeout=300).stdout))


def _questions(number: int) -> tuple[Any, list[str]]:
    from gopher_mcp_python.store import KeyRing, MemoryBackend, Store

    store = Store(MemoryBackend(), KeyRing.generate(), rate=None)
    ask = {"tool": "t", "arguments": {"path": "/srv/a"}, "timeout_s": 1800}
    return store, [store.create_confirmation("ada", **ask).id for _ in range(number)]  # type: ignore[arg-type]


def _waiting(number: int, before: int, seconds: float) -> dict[str, float]:
    """Of waiters that are all there: bytes of each, processor of each per second (they look around once a second)."""
    taken, cpu = resident() - before, time.process_time()
    time.sleep(seconds)
    return {"bytes": taken / number, "cpu_per_s": (time.process_time() - cpu) / number / seconds, "number": number}


def _threads(seconds: float) -> dict[str, float]:
    store, ids = _questions(THREADS)
    store._waiters.start()
    before = resident()
    threads = [threading.Thread(target=store.wait, args=("ada", id), daemon=True) for id in ids]
    for thread in threads:
        thread.start()
    while len(store._waiters._wakers) < THREADS:
        time.sleep(0.01)
    return _waiting(THREADS, before, seconds)


def _tasks(seconds: float) -> dict[str, float]:
    import asyncio

    from gopher_mcp_python.store import AsyncStore

    store, ids = _questions(TASKS)

    async def work() -> dict[str, float]:
        awaited = AsyncStore(store)
        waiting = [asyncio.create_task(awaited.wait("ada", ids[0]))]
        while len(store._waiters._wakers) < 1:
            await asyncio.sleep(0.01)
        before = resident()
        waiting += [asyncio.create_task(awaited.wait("ada", id)) for id in ids[1:]]
        while len(store._waiters._wakers) < TASKS:
            await asyncio.sleep(0.01)
        await asyncio.sleep(2)  # their first look is over
        taken, cpu = resident() - before, time.process_time()
        await asyncio.sleep(seconds)
        used = time.process_time() - cpu
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return {"bytes": taken / (TASKS - 1), "cpu_per_s": used / TASKS / seconds, "number": TASKS}

    return asyncio.run(work())


def _sealing() -> dict[str, float]:
    from gopher_mcp_python.store import KeyRing
    from gopher_mcp_python.store.sealing import Sealer

    sealer, value = Sealer(KeyRing.generate()), {"message": "May it be called?", "params": {"tool": "t" * 40}}
    sealed = sealer.seal("el_1", "question", value)
    both: dict[str, list[float]] = {"seal_s": [], "unseal_s": []}
    for _ in range(2000):
        begin = time.perf_counter()
        sealer.seal("el_1", "question", value)
        middle = time.perf_counter()
        sealer.open("el_1", "question", sealed)
        both["seal_s"].append(middle - begin)
        both["unseal_s"].append(time.perf_counter() - middle)
    return {name: median(times) for name, times in both.items()}


def _replica() -> dict[str, float]:
    """`gopher-mcp serve` as it idles, and with pages that listen."""
    import http.client

    from gopher_mcp_python.serve.tokens import TokenFile

    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        tokens = Path(folder) / "tokens.json"
        made = [TokenFile(tokens).add(f"caller-{number}", ["answer"]) for number in range(FEEDS // 10 + 1)]
        argv = [sys.executable, "-m", "gopher_mcp_python", "serve", "--store", "memory", "--port", "0"]
        server = stack.enter_context(
            subprocess.Popen([*argv, "--tokens", str(tokens)], stdout=subprocess.PIPE, text=True)
        )
        stack.callback(server.terminate)
        assert server.stdout is not None
        port = int(server.stdout.readline().partition("127.0.0.1:")[2].partition("/")[0])

        def feed(token: str) -> None:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            stack.callback(connection.close)
            connection.request("GET", "/v1/mcp/elicitations/events", headers={"Authorization": f"Bearer {token}"})
            reply = connection.getresponse()
            assert reply.status == 200, reply.status
            reply.readline()

        for _ in range(5):
            feed(made[-1])
        first, files = resident(server.pid), len(os.listdir(f"/proc/{server.pid}/fd"))
        for number in range(FEEDS):
            feed(made[number // 10])
        taken, open_files = resident(server.pid) - first, len(os.listdir(f"/proc/{server.pid}/fd")) - files
        cpu = cpu_of([server.pid])
        time.sleep(2)
        return {
            "replica_bytes": first,
            "feed_bytes": taken / FEEDS,
            "feed_files": open_files / FEEDS,
            "replica_idle_cpu": (cpu_of([server.pid]) - cpu) / 2,
        }


def _sync() -> float:
    """Seconds until 8 KB are on the disk."""
    times = []
    with tempfile.NamedTemporaryFile() as file:
        for _ in range(100):
            begin = time.perf_counter()
            file.seek(0)
            file.write(os.urandom(8192))
            file.flush()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    return median(times)


if __name__ == "__main__":
    print(json.dumps({"threads": _threads, "tasks": _tasks}[sys.argv[1]](float(sys.argv[2]))))
