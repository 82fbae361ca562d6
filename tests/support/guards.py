"""Fails the test that leaves an agent, a thread or a file descriptor behind."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

# Threads that live as long as the process, by the beginning of their names, with the reason.
PERMANENT = {
    "gopher-mcp-": "the package's own loop and reaper threads, shared by all agents",
    "pytest_timeout": "the time limit of the test run",
    "AnyIO worker": "the idle worker threads of anyio end by themselves",
    "asyncio_": "the idle worker threads of asyncio's executor end with their loop",
}
_KINDS = ("socket:", "pipe:", "anon_inode:", "/dev/pts/", "/dev/ptmx")
_SETTLE = 5.0  # seconds in which a native call that was given up, or a closing socket, may end


@dataclass(frozen=True)
class Snapshot:
    """What is open at one moment."""

    agents: dict[str, int] = field(default_factory=dict)
    threads: Counter[str] = field(default_factory=Counter)
    descriptors: Counter[str] = field(default_factory=Counter)

    @classmethod
    def take(cls) -> Snapshot:
        return cls(_agents(), _threads(), _descriptors())

    def surplus(self, before: Snapshot) -> list[str]:
        """What is there now and was not before, in words."""
        agents = {key: n - before.agents.get(key, 0) for key, n in self.agents.items()}
        more = [f"{n} {key}" for key, n in agents.items() if n > 0]
        more += [f"{n} thread(s) {name!r}" for name, n in (self.threads - before.threads).items()]
        # A descriptor's target names its inode: numbers of a kind are compared, since sockets may be replaced.
        now, then = _by_kind(self.descriptors), _by_kind(before.descriptors)
        more += [f"{n} descriptor(s) {kind}" for kind, n in (now - then).items()]
        return more


def settled(before: Snapshot, seconds: float = _SETTLE) -> list[str]:
    """The surplus once things have calmed down; empty is good."""
    end = time.monotonic() + seconds
    surplus = Snapshot.take().surplus(before)
    while surplus and time.monotonic() < end:
        gc.collect()
        time.sleep(0.05)
        surplus = Snapshot.take().surplus(before)
    return surplus


def _agents() -> dict[str, int]:
    bridge = sys.modules.get("gopher_mcp_python.ffi._bridge")
    if bridge is None:
        return {}
    return {key: int(n) for key, n in bridge.counts().items() if key.startswith("live_")}


def _threads() -> Counter[str]:
    names = (thread.name for thread in threading.enumerate() if thread is not threading.main_thread())
    return Counter(name for name in names if not name.startswith(tuple(PERMANENT)))


def _descriptors() -> Counter[str]:
    folder = Path("/proc/self/fd")
    if not folder.is_dir():
        return Counter()
    targets = []
    for name in os.listdir(folder):
        try:
            targets.append(os.readlink(folder / name))
        except OSError:  # the descriptor of this very listing
            continue
    found = Counter(target for target in targets if target.startswith(_KINDS))
    return found - Counter({"anon_inode:[eventfd]": _drawing_threads()})


def _drawing_threads() -> int:
    """Threads with which Qt draws; each has an event descriptor, and ends by itself after half a minute."""
    names = []
    for task in Path("/proc/self/task").glob("*"):
        with suppress(OSError):  # it has ended
            names.append((task / "comm").read_text())
    return names.count("Thread (pooled)\n")


def _by_kind(descriptors: Counter[str]) -> Counter[str]:
    kinds: Counter[str] = Counter()
    for target, n in descriptors.items():
        kinds[target if target.startswith("/dev") else target.split("[")[0]] += n
    return kinds
