"""csrc/testkit for tests and benchmarks: libraries with the vendor's ABI that do what a query says (see testkit.h).

It stands where the vendor's library can't: callbacks on demand, on any thread, at any rate, with any bytes.
"""

from __future__ import annotations

import ctypes
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

from gopher_mcp_python.elicitor import Elicitor
from gopher_mcp_python.engines.base import CreateSpec
from gopher_mcp_python.engines.native import NativeAgent
from gopher_mcp_python.ffi import _bridge
from gopher_mcp_python.runtime_options import GopherAgentCreateOptions
from tests.support import vendor
from tests.support.children import ROOT

Variant = Literal["new", "headers", "old"]
VARIANTS: tuple[Variant, ...] = ("new", "headers", "old")


@functools.lru_cache(maxsize=1)
def folder() -> Path:
    """Where the built libraries are. Built by CMake once for each state of the sources."""
    sources = [*sorted((ROOT / "csrc" / "testkit").iterdir()), ROOT / "include" / "gopher_orch" / "gopher_orch.h"]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    target = vendor.cache() / f"testkit-{digest}"
    with (vendor.cache() / "testkit.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (target / ".ready").exists():
            _build(target)
            (target / ".ready").touch()
    return target


def _build(target: Path) -> None:
    # Of this environment first: where make installed it, and nobody has activated the environment.
    cmake = shutil.which("cmake", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    assert cmake, "the testkit is built by cmake: pip install cmake"
    names = [f"gopher-testkit-{variant}" for variant in VARIANTS] + ["gopher-callback-driver"]
    for argv in (
        ["-S", ROOT, "-B", target, "-DGOPHER_TESTKIT=ON", "-DGOPHER_WERROR=ON", "-DCMAKE_BUILD_TYPE=Release"],
        ["--build", target, "--target", *names],
    ):
        done = subprocess.run([cmake, *argv], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


def path(variant: Variant = "new") -> Path:
    """The library's file."""
    return folder() / "csrc" / "testkit" / f"libgopher-testkit-{variant}.so"


def as_vendor_library(target: Path, variant: Variant = "new", version: str = "0.1.39") -> Path:
    """A copy under the vendor's file name, for GOPHER_MCP_PYTHON_LIBRARY_PATH."""
    return Path(shutil.copy(path(variant), target / f"libgopher-orch.so.{version}"))


@functools.lru_cache(maxsize=3)
def library(variant: Variant = "new") -> _bridge.Library:
    return _bridge.Library.open(str(path(variant)))


class _Counts(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_int64)
        for name in ("agents", "runs", "threads", "callbacks", "strings", "misuses", "last_answer_ns")
    ]


@functools.lru_cache(maxsize=3)
def _extras(variant: Variant) -> ctypes.CDLL:
    extras = ctypes.CDLL(str(path(variant)))
    extras.testkit_seen.restype = ctypes.c_char_p
    return extras


def counts(variant: Variant = "new") -> dict[str, int]:
    """What is alive inside the library; `misuses` must stay 0."""
    raw = _Counts()
    _extras(variant).testkit_counts(ctypes.byref(raw))
    return {name: getattr(raw, name) for name, _ in raw._fields_}  # type: ignore[misc]


def unblock(variant: Variant = "new") -> None:
    _extras(variant).testkit_unblock()


def seen(variant: Variant = "new") -> dict[str, str]:
    """What the last create was given."""
    text = _extras(variant).testkit_seen().decode()
    return dict(line.partition("=")[::2] for line in text.splitlines())


# ---- The bridge alone -----------------------------------------------------------------------------------------------


class Host:
    """A host for AgentHandle: answers inline with `answer`, keeps events, cancels what nobody waits for."""

    def __init__(self, answer: Callable[[_bridge.ElicitationRequest], Any] = lambda request: 1) -> None:
        self.inline_answer = answer
        self.events: list[tuple[int, int, int, str | None]] = []
        self.orphans: list[_bridge.PendingRequest] = []

    def event(self, kind: int, run_id: int, iteration: int, json_text: str | None) -> None:
        self.events.append((kind, run_id, iteration, json_text))

    def unattended(self, pending: _bridge.PendingRequest) -> None:
        self.orphans.append(pending)


def finish(call: _bridge.Call, answer: Any = "accept") -> _bridge.Outcome:
    """Waits for a call's end, gives every request the same answer, leaves it."""
    try:
        while (wake := call.wait(1000)) != _bridge.WAKE_DONE:
            assert wake in (_bridge.WAKE_TICK, _bridge.WAKE_REQUEST), wake
            if pending := call.take():
                pending.answer(answer)
        return call.outcome()
    finally:
        call.leave()


def handle(
    host: Host | None = None, *, variant: Variant = "new", script: str = "", **config: Any
) -> _bridge.AgentHandle:
    """A created agent of the bridge; by default its answers are handed over."""
    made = _bridge.AgentHandle(library(variant), host or Host(), **{"answer": "handed_over", **config})
    options = _bridge.NativeOptions() if variant == "new" else None
    call = made.create("json", "Provider", f"script:{script}", None, "{}", options)
    assert finish(call).ok
    return made


# ---- The engine on it -----------------------------------------------------------------------------------------------


def loaded(variant: Variant = "new") -> Any:
    """What `native.load()` would give for the testkit."""
    new = variant == "new"
    return SimpleNamespace(
        library=library(variant), version={"new": "0.1.39", "headers": "0.1.34", "old": "0.1.1"}[variant],
        supports_elicitation=new, supports_events=new, retry_fix=new, report=None, verdict=None,
    )  # fmt: skip


def spec(elicitation: Any = None, *, script: str = "", factory: Any = "url", **options: Any) -> CreateSpec:
    made = GopherAgentCreateOptions(elicitation=elicitation, **options)
    key = "key" if factory not in ("json", "url") else None
    target = "" if factory == "api_key" else "https://mcp.example.test/mcp"
    model = f"script:{script}"
    return CreateSpec(factory, "Provider", model, target, key, made, Elicitor(made.elicitation), "mcp.example.test")


def agent(elicitation: Any = None, *, variant: Variant = "new", **more: Any) -> NativeAgent:
    """A native agent on the testkit, created."""
    made = NativeAgent(loaded(variant), spec(elicitation, **more))
    made.make_handle(0)
    return made
