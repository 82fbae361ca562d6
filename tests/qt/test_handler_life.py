"""Programs whose application is missing, ends, or begins again, each in a process of its own: no hang, no crash, not a
word on stderr."""

from __future__ import annotations

import pytest

from tests.support import children

# What every program begins with. Its prompts are never answered unless it says so.
HEAD = """
import sys, threading
from PySide6.QtCore import QCoreApplication, QTimer
from PySide6.QtWidgets import QApplication, QWidget
from gopher_mcp_python.handlers.qt import QtElicitationHandler, QtPrompt, QtPromptUnavailable
from gopher_mcp_python.handlers.watch import Watch
from tests.support import desk
from tests.support.desk import Asking, form

def later(call):
    timer.timeout.connect(call)
    timer.start(5)

def once(true, call):
    def look():
        if true():
            timer.stop()
            timer.timeout.disconnect()
            call()
    later(look)

def begin(platform="offscreen"):
    global app, timer
    app = QApplication(["program"])
    timer = QTimer()
    return app

def printed(call, *arguments):
    try:
        sys.stdout.write(call(*arguments).action + "\\n")
    except QtPromptUnavailable as error:
        sys.stdout.write(str(error).partition(": ")[2].partition(":")[0] + "\\n")

def thread(daemon=False):
    one = threading.Thread(target=printed, args=(QtElicitationHandler(), form()), daemon=daemon)
    one.start()
    return one
"""


def play(body: str, *, platform: str = "offscreen", warnings: tuple[str, ...] = ()) -> list[str]:
    """The lines that a program prints. It has to end well and say nothing else, but for what the platform can't do."""
    ended = children.python(HEAD + body, env={"QT_QPA_PLATFORM": platform}, timeout=60).check()
    said = [line for line in ended.err.splitlines() if not line.startswith("This plugin does not support")]
    assert said == [], ended.err
    return ended.out.splitlines()


def test_without_an_application_nobody_can_be_asked() -> None:
    assert play("printed(QtElicitationHandler(), form())") == ["the program has no QApplication (any more)"]


def test_an_application_without_windows_is_not_enough() -> None:
    body = "app = QCoreApplication([])\nprint(QtPrompt(any_platform=True).unusable())"
    assert play(body) == ["the program's application is a QCoreApplication, which has no windows: make a QApplication"]


@pytest.mark.parametrize("platform", ["offscreen", "minimal"])
def test_a_platform_that_shows_nothing_is_for_who_asks_for_it(platform: str) -> None:
    body = """
begin()
Asking(lambda: print(QtPrompt().unusable(), QtPrompt(any_platform=True).unusable())).join()
"""
    assert play(body, platform=platform) == [f"Qt's platform {platform} has no display None"]


def test_an_event_loop_that_never_runs_is_told_after_a_few_seconds() -> None:
    body = "from gopher_mcp_python.handlers.qt import vigil\nvigil.NO_LOOP_AFTER = 0.2\nbegin()\nthread().join()"
    assert play(body) == ["no Qt event loop is running, so that no window can come"]


def test_when_the_application_quits_what_is_open_is_cancelled() -> None:
    body = """
begin()
one, two = thread(), thread()
once(lambda: len(desk.prompts()) == 2, app.quit)
app.exec()
one.join()
two.join()
printed(lambda: Asking(QtElicitationHandler(), form()).outcome())
"""
    assert play(body) == ["cancel", "cancel", "the application's event loop has ended"]


def test_an_event_loop_that_runs_again_asks_again() -> None:
    body = """
begin()
one = thread()
once(desk.prompts, app.quit)
app.exec()
one.join()
two = None
def again():
    global two
    two = thread()
    once(desk.prompts, lambda: desk.press(desk.prompts()[0], "Decline"))
    once_more.timeout.connect(lambda: two.is_alive() or app.quit())
    once_more.start(5)
once_more = QTimer()
QTimer.singleShot(0, again)
app.exec()
two.join()
"""
    assert play(body) == ["cancel", "decline"]


@pytest.mark.parametrize(
    ("daemon", "end"),
    [(False, "pass"), (True, "pass"), (False, "sys.exit(0)"), (True, "del app"), (False, "app.shutdown()"),
     (True, "app.shutdown()")],
)  # fmt: skip
def test_a_program_that_ends_with_an_open_prompt(daemon: bool, end: str) -> None:
    """Without aboutToQuit: it serves events by itself. A thread that is no daemon is waited for, so that it must get
    its answer before that."""
    body = f"""
begin()
one = thread({daemon})
desk.wait_for(1)
{end}
"""
    lines = play(body)
    assert lines == ["cancel"] or (daemon and lines == [])


def test_a_program_that_ends_with_prompts_in_line_and_under_way() -> None:
    body = """
begin()
several = [thread(number % 2) for number in range(9)]
desk.wait_for(6)
several += [thread(number % 2) for number in range(4)]
"""
    assert set(play(body)) <= {"cancel", "no Qt event loop is running, so that no window can come"}


def test_the_last_prompt_does_not_end_a_program_without_windows() -> None:
    """An application in the tray has no window of its own, and Qt would quit with the last one."""
    body = """
begin()
one = thread()
app.lastWindowClosed.connect(lambda: print("last window closed"))
once(desk.prompts, lambda: desk.prompts()[0].close())
check = QTimer()
goes_on = lambda: (print("on"), app.quit())
check.timeout.connect(lambda: one.is_alive() or (check.stop(), QTimer.singleShot(100, goes_on)))
check.start(5)
app.exec()
"""
    assert play(body) == ["cancel", "on"]


def test_a_program_that_closes_its_window_ends_though_a_prompt_is_open() -> None:
    body = """
begin()
window = QWidget()
window.show()
one = thread()
once(desk.prompts, window.close)
app.exec()
one.join()
"""
    assert play(body) == ["cancel"]


def test_ctrl_c_where_the_program_has_it_end_the_application() -> None:
    """As docs/desktop.md says: a handler that quits, and a timer in whose turns Python looks for signals."""
    body = """
import os, signal
begin()
signal.signal(signal.SIGINT, lambda *_: app.quit())
ticks = QTimer()
ticks.timeout.connect(lambda: None)
ticks.start(50)
one = thread()
once(desk.prompts, lambda: os.kill(os.getpid(), signal.SIGINT))
app.exec()
one.join()
"""
    assert play(body) == ["cancel"]


def test_the_asking_thread_may_be_the_main_one_and_be_interrupted() -> None:
    """The GUI thread is another one (Qt warns of that): Ctrl-C cancels the prompt and reaches the program."""
    body = """
import os, signal
ready = threading.Event()
def gui():
    begin()
    QTimer.singleShot(0, ready.set)
    once(desk.prompts, lambda: (os.kill(os.getpid(), signal.SIGINT), once(lambda: not desk.prompts(), app.quit)))
    app.exec()
    print("the window is gone", flush=True)
    os._exit(0)
other = threading.Thread(target=gui)
other.start()
ready.wait()
try:
    QtElicitationHandler()(form())
except KeyboardInterrupt:
    print("interrupted", flush=True)
other.join()
"""
    ended = children.python(HEAD + body, env={"QT_QPA_PLATFORM": "offscreen"}, timeout=60).check()
    assert ended.out.splitlines() == ["interrupted", "the window is gone"]
