"""For pytest: fixtures of the tests that run the documents' examples, and the line with their numbers at the end."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import children
from tests.support.canary import Canary
from tests.support.examples import PROPERTY, UNRUN_PROPERTY, told
from tests.support.servers import McpServer

if TYPE_CHECKING:
    from tests.support.examples.program import Programs
    from tests.support.examples.scratch import Scratch


@pytest.fixture(scope="module")
def programs() -> Iterator[Programs]:
    from tests.support.examples.program import Programs

    running = Programs()
    yield running
    running.close()


@pytest.fixture(scope="module")
def demo_url() -> Iterator[str]:
    from gopher_mcp_python.demo.child import DemoServer

    with DemoServer() as server:
        yield server.url


@pytest.fixture(scope="module")
def scenario_url() -> Iterator[str]:
    server = McpServer()
    yield server.url
    server.close()


@pytest.fixture(scope="module")
def protected_url() -> Iterator[str]:
    """Of a server that wants a sign-in, at a provider that lets everybody in at once."""
    process, told = children.start_server([sys.executable, "-m", "tests.support.idp"])
    yield told["url"]
    children.stop(process)


@pytest.fixture
def scratch(tmp_path: Path, canary: Canary) -> Scratch:
    """For commands."""
    from tests.support.examples.scratch import Scratch

    canary.allow_shown("http://127.0.0.1:", exact=False)  # pages that a person is asked to open
    return Scratch(tmp_path, canary)


@pytest.fixture
def python_scratch(tmp_path: Path, canary: Canary, programs: Programs) -> Scratch:
    """For programs, too."""
    from tests.support.examples.scratch import Scratch

    canary.allow_shown("http://127.0.0.1:", exact=False)
    return Scratch(tmp_path, canary, programs)


# ---- the numbers -----------------------------------------------------------------------------------------------------


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
    """Notes in a test's reports which examples it has run; so it comes from other processes of the run, too."""
    report: pytest.TestReport = (yield).get_result()
    names = [name for mark in item.iter_markers("examples") for name in mark.args]
    report.user_properties.extend((PROPERTY, name) for name in names)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """One line, where examples were run."""
    seen: dict[str, set[str]] = {"passed": set(), "failed": set(), "error": set(), "skipped": set()}
    unrun = 0
    for outcome, names in seen.items():
        for report in terminalreporter.stats.get(outcome, []):
            properties = dict.fromkeys(getattr(report, "user_properties", []))
            names |= {value for name, value in properties if name == PROPERTY}
            unrun = max([unrun, *(value for name, value in properties if name == UNRUN_PROPERTY)])
    bad = seen["failed"] | seen["error"] | seen["skipped"]
    if seen["passed"] or bad:
        terminalreporter.write_line(told(len(seen["passed"] - bad), unrun, len(bad)))
