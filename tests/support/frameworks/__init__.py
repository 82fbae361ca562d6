"""Other people's frameworks for the tests, in environments of their own: they want versions that exclude each other.

    adk         Google ADK, with mcp 2.x
    fastmcp     FastMCP's client, pydantic-ai and langchain-core, with mcp 2.x
    adapters    langchain-mcp-adapters, with mcp 1.x
    schemathesis    no framework: the command that tries a REST interface against its document

An environment is installed once by pip, into the cache of the test downloads (tests/support/vendor.py):

    frameworks/<name>-<hash of what is wanted>/bin/python

What pip is told of this package are its own requirements, as in pyproject.toml; its code is the one under test.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import gopher_mcp_python
from tests.support import children, local_wheel, requirements, vendor
from tests.support.servers import McpServer

WANTED = {
    "adk": ["google-adk[mcp]==2.13.0", "pytest>=8.3"],
    "fastmcp": ["fastmcp-slim[client]==4.2.3", "pydantic-ai-slim[mcp]==2.68.0", "langchain-core==1.8.3", "pytest>=8.3"],
    # mcp-types: left behind when pip installs the adapters where mcp 2.x was.
    "adapters": ["langchain-mcp-adapters==0.3.2", "mcp-types==2.3.0", "pytest>=8.3"],
    "schemathesis": ["schemathesis==4.32.5"],
}
OLDEST_PYTHON = {"adk": (3, 11), "fastmcp": (3, 11), "adapters": (3, 10), "schemathesis": (3, 10)}
HERE = Path(__file__).parent


def python(name: str) -> Path:
    """The interpreter of an environment, installed first where it is not. Fails the test when pip can't."""
    marks = [sys.version, *requirements.of_package(), *WANTED[name]]
    wanted = f"{name}-{hashlib.sha256(repr(marks).encode()).hexdigest()[:16]}"
    folder = vendor.cache() / "frameworks" / wanted
    with vendor.locked(f"frameworks-{name}"):
        if not (folder / ".ready").is_file():
            shutil.rmtree(folder, ignore_errors=True)
            _install(folder, WANTED[name])
    return folder / "bin" / "python"


def _install(folder: Path, wanted: list[str]) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    this = local_wheel.build(folder, code=False)
    pip = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "--disable-pip-version-check"]
    argv = [*pip, "install", "--quiet", "--no-input", "--no-compile", str(this), *wanted]
    environ = children.environment({"PIP_ROOT_USER_ACTION": "ignore"})
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, f"pip can't install {wanted} beside this package:\n{done.stderr[-3000:]}"
    (folder / ".ready").touch()


def package_alone(folder: Path) -> dict[str, str]:
    """Variables under which an environment has this package's code, and nothing else of the one that tests run in."""
    source = Path(gopher_mcp_python.__file__).parent
    (folder / source.name).symlink_to(source)
    path = os.pathsep.join((str(folder), str(children.ROOT)))
    return {"PYTHONPATH": path, "NO_GCE_CHECK": "true"}  # ADK asks the network for credentials of Google's machines


def cases(environment: str, frameworks: Sequence[str], folder: Path) -> None:
    """Runs the cases of frameworks (`cases_<framework>.py`) in one process; `folder` is empty and the test's own."""
    if sys.version_info[:2] < OLDEST_PYTHON[environment]:
        pytest.skip(f"{WANTED[environment][0]} needs Python 3.11")
    scripts = [str(HERE / f"cases_{framework}.py") for framework in frameworks]
    argv = ["-m", "pytest", "-q", "--noconftest", "-c", "/dev/null", "--rootdir", str(folder), "-p", "no:cacheprovider"]
    with _servers() as addresses:
        ended = run(environment, folder, [*argv, *scripts], addresses)
    assert ended.code == 0, ended.out[-8000:] + ended.err[-2000:]
    print(ended.out)


@contextmanager
def _servers() -> Iterator[dict[str, str]]:
    """The scenario server, and one that speaks the handshake protocols only, as variables for `cases`."""
    both, legacy = McpServer(), McpServer("--era", "legacy")
    try:
        yield {"SCENARIO_URL": both.url, "SCENARIO_LEGACY_URL": legacy.url}
    finally:
        both.close()
        legacy.close()


def run(name: str, folder: Path, argv: list[str], env: dict[str, str] | None = None) -> children.Ended:
    """Runs Python in an environment, with this package's code; `folder` is an empty one of the test's own."""
    # Bytecode is kept whatever the machine says: to compile a framework takes longer than its cases.
    environment = {**package_alone(folder), "PYTHONDONTWRITEBYTECODE": "", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment.update(env or {})
    return children.run([str(python(name)), *argv], env=environment, timeout=300)

