"""Checks an installed wheel, outside the source tree, with nothing but what the wheel brings. `python installed.py`

What cibuildwheel runs for every wheel on every platform, and `make dist` for every Python: the package is whole and is
not the source tree's, the bridge decodes, an agent gets through a sign-in on the built-in engine, and, where the
vendor's library is named by GOPHER_MCP_PYTHON_LIBRARY_PATH, it opens. Exit code 1 with the reason where it is not so.
"""

from __future__ import annotations

import ctypes
import importlib.machinery
import os
import subprocess
import sys
import sysconfig
import tempfile
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("py.typed", "ffi/_bridge.pyi", "include/gopher_orch/gopher_orch.h")
FIELDS = ("request_id_json", "elicitation_id", "mode", "message", "url", "raw_json", "raw_params_json")
BROKEN = b"\xff broken \xe2\x82"  # what a server may send; it must not raise


def package_is_whole() -> str:
    """The installed package's own files, and an extension module that was built for this very interpreter."""
    import gopher_mcp_python
    from gopher_mcp_python.ffi import _bridge

    folder = Path(gopher_mcp_python.__file__).resolve().parent
    assert not folder.is_relative_to(ROOT), f"this is the source tree's package: {folder}"
    assert metadata.version("gopher-mcp-python") == gopher_mcp_python.__version__
    missing = [name for name in SHIPPED if not (folder / name).is_file()]
    assert not missing, f"not in the wheel: {missing}"
    suffix = importlib.machinery.EXTENSION_SUFFIXES[0]
    assert _bridge.__file__.endswith(suffix), f"{_bridge.__file__} is not for {suffix}"
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert not sys._is_gil_enabled(), "a free-threaded Python runs with the GIL now: something imported needs it"
    loaded = [name for name in gopher_mcp_python.__all__ if getattr(gopher_mcp_python, name, None) is None]
    assert not loaded, f"public names that can't be had: {loaded}"
    return f"{gopher_mcp_python.__version__}, {len(gopher_mcp_python.__all__)} names"


def gil_stays_as_it_was() -> str:
    """On a free-threaded interpreter, importing the bridge does not switch the GIL on."""
    from gopher_mcp_python.ffi import _bridge  # noqa: F401

    enabled = getattr(sys, "_is_gil_enabled", lambda: True)()
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    assert enabled is not free_threaded, f"the GIL is {'on' if enabled else 'off'}"
    return "off" if free_threaded else "on"


def bridge_decodes() -> str:
    """Every field of the ABI's request, from a struct as the library makes it: text, NULL, and what is no UTF-8."""
    from gopher_mcp_python.ffi import _bridge

    class Request(ctypes.Structure):
        _fields_ = [(name, ctypes.c_char_p) for name in FIELDS]

    assert ctypes.sizeof(Request) == _bridge.struct_sizes()["gopher_orch_elicitation_request_t"]
    raw = Request(None, b"e-1", b"url", "Grüße".encode(), b"https://example.test/", BROKEN, b"")
    request = _bridge.decode_request(ctypes.addressof(raw))
    found = [getattr(request, name) for name in FIELDS]
    wanted = [None, "e-1", "url", "Grüße", "https://example.test/", BROKEN.decode("utf-8", "replace"), ""]
    assert found == wanted, found
    assert _bridge.gate_is_open() and _bridge.counts()["live_agents"] == 0, _bridge.counts()
    return f"{len(FIELDS)} fields"


def demo_runs() -> str:
    """The main job on the built-in engine: a real server on this machine, a sign-in in the middle of a tool call."""
    with tempfile.TemporaryDirectory() as folder:
        argv = [sys.executable, "-m", "gopher_mcp_python", "demo", "--click"]
        env = {**os.environ, "GOPHER_MCP_ENGINE": "embedded", "HOME": folder, "USERPROFILE": folder}
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=env, cwd=folder, timeout=120, check=False)  # fmt: skip
    said = done.stdout.decode(errors="replace")
    assert done.returncode == 0, f"gopher-mcp demo: exit code {done.returncode}\n{said[-3000:]}"
    assert "ada@mail.example" in said, f"no result:\n{said[-3000:]}"
    return "signed in, and the tool answered"


def native_library_opens() -> str:
    """Where a library is named it must open; where none is, the report must say so and still be ok."""
    from gopher_mcp_python import diagnose

    found = diagnose()
    assert found.ok, f"{found.why}; next: {found.remedy}"
    if os.environ.get("GOPHER_MCP_PYTHON_LIBRARY_PATH"):
        assert found.engine == "native", f"{found.why}; next: {found.remedy}"
    return f"engine {found.engine}: {found.why}"


def main() -> int:
    tag = f"{sys.implementation.cache_tag} {sys.platform}"
    for check in (package_is_whole, gil_stays_as_it_was, bridge_decodes, demo_runs, native_library_opens):
        try:
            print(f"{tag}: {check.__name__.replace('_', ' ')}: {check()}", flush=True)
        except AssertionError as error:
            print(f"{tag}: {check.__name__.replace('_', ' ')}: FAILED: {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
