"""Tests with windows; on Qt's platform "offscreen", unless they start a display of their own.

    QT_QPA_PLATFORM=offscreen pytest -p pytestqt.plugin tests/qt
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from tests.qt.dialogs import no_window_left, show, warm_windows  # noqa: F401  # fixtures, after the platform is set


@pytest.fixture(scope="session")
def warm_qt(qapp: object) -> None:
    """Qt keeps a few descriptors from its first window and its first timer on, which are nobody's leak."""
    from PySide6.QtTest import QTest

    from gopher_mcp_python.handlers.qt import QtPrompt
    from gopher_mcp_python.handlers.watch import Watch
    from tests.support import desk

    asking = desk.Asking(QtPrompt(any_platform=True).ask, desk.form(), Watch.for_limit(60_000))
    desk.wait_for()[0].close()
    asking.outcome()
    QTest.qWait(1)


@pytest.fixture
def desktop(warm_qt: None) -> Iterator[None]:
    """For tests that show prompts: none may be left."""
    from tests.support import desk

    yield
    assert desk.nothing_left(), "a test left a window behind"
