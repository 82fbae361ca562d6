"""Requests of any thread, answered in windows of the GUI thread; this file's tests are on that thread."""

from __future__ import annotations

import gc
import logging
import threading
import time
from typing import Any

import pytest
from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QWidget
from shiboken6 import Shiboken

from gopher_mcp_python import AgentError, ElicitationPolicy
from gopher_mcp_python.handlers.occupied import occupying
from gopher_mcp_python.handlers.person import Person
from gopher_mcp_python.handlers.prompts import PersonAnswer, PromptUnavailable
from gopher_mcp_python.handlers.qt import QtElicitationHandler, QtPrompt, QtPromptUnavailable, vigil, window_guard
from gopher_mcp_python.handlers.qt.desk import MAX_WINDOWS
from gopher_mcp_python.handlers.watch import Watch
from gopher_mcp_python.policy.decisions import RememberedResponse
from tests.support import desk
from tests.support.desk import Asking, form, page

pytestmark = pytest.mark.usefixtures("warm_qt", "desktop")
THREADS_ADVICE = ("run_async", "worker thread", "threading.Thread")


def prompt(parent: QWidget | None = None, **more: Any) -> QtPrompt:
    return QtPrompt(parent, any_platform=True, **more)


def ask(request: Any, watch: Watch | None = None, **more: Any) -> Asking:
    return Asking(prompt(**more).ask, request, watch or Watch())


# ---- answers ---------------------------------------------------------------------------------------------------------


def test_a_form_is_answered_from_another_thread() -> None:
    asking = Asking(QtElicitationHandler(), form())
    desk.send_name(desk.wait_for()[0], "Ada")
    response = asking.outcome()
    assert (response.action, dict(response.content)) == ("accept", {"name": "Ada"})


@pytest.mark.parametrize(("button", "action"), [("Decline", "decline"), ("Cancel", "cancel"), ("I finished", "accept")])
def test_a_page_is_answered(button: str, action: str) -> None:
    asking = ask(page())
    desk.press(desk.wait_for()[0], button)
    assert asking.outcome() == PersonAnswer(action)


def test_closing_the_window_is_a_cancel_whatever_was_filled_in() -> None:
    asking = ask(form())
    dialog = desk.wait_for()[0]
    desk.fill(dialog, "Name", "Ada")
    dialog.close()
    assert asking.outcome() == PersonAnswer("cancel")


def test_the_window_says_who_asks() -> None:
    asking = ask(form())
    dialog = desk.wait_for()[0]
    assert any("files.test (move) asks you" in text for text in desk.labels_of(dialog))
    dialog.close()
    asking.outcome()


def test_an_answer_is_there_the_moment_it_is_given() -> None:
    """Not when the window is gone, or the event loop comes round again."""
    asking = ask(form())
    dialog = desk.wait_for()[0]
    desk.send_name(dialog, "Ada")
    asking.join(desk.LONG)  # without serving any event
    assert asking.result.content == {"name": "Ada"}


@pytest.mark.parametrize("lasts", ["session", "always"])
def test_declining_everything_of_a_server(lasts: Any) -> None:
    """The choice comes from a menu, as a person makes it."""
    asking = Asking(QtElicitationHandler(lasting=("session", "always")), form())
    dialog = desk.wait_for()[0]
    desk.press(dialog, "Decline all ...")
    menu = desk.wait_until(QApplication.activePopupWidget)
    next(action for action in menu.actions() if lasts in action.text()).trigger()
    menu.close()
    response = asking.outcome()
    assert isinstance(response, RememberedResponse)
    assert (response.action, response.lasts, response.whole_server) == ("decline", lasts, True)


@pytest.mark.parametrize("policy", [None, ElicitationPolicy(max_waiting=100)], ids=["alone", "behind a policy"])
def test_declining_everything_declines_what_is_open_and_in_line_too(policy: ElicitationPolicy | None) -> None:
    """A server that asks a hundred times at once is answered with one click."""
    handler = QtElicitationHandler()
    person = Person.behind(handler if policy is None else policy.around(handler), None)
    assert person is not None
    other = Asking(person.ask, form("another server", server="mail.test"), Watch())
    asked = [Asking(person.ask, form(f"number {number}"), Watch()) for number in range(MAX_WINDOWS + 2)]
    windows = desk.wait_for(MAX_WINDOWS)
    one = next(window for window in windows if desk.message_of(window) != "another server")
    one._footer.declined_all.emit("session")
    assert {asking.outcome()[0].action for asking in asked} == {"decline"}
    assert other.is_alive()
    desk.press(desk.wait_for_one("another server"), "Cancel")
    assert other.outcome()[0].action == "cancel"


def test_it_is_not_offered_where_it_would_hold_for_nothing() -> None:
    asking = ask(form())
    dialog = desk.wait_for()[0]
    with pytest.raises(AssertionError):
        desk.press(dialog, "Decline all ...")
    dialog.close()
    asking.outcome()


# ---- refusals --------------------------------------------------------------------------------------------------------


def test_on_the_gui_thread_it_refuses_at_once() -> None:
    with pytest.raises(QtPromptUnavailable) as refused:
        QtElicitationHandler()(form())
    assert isinstance(refused.value, PromptUnavailable) and isinstance(refused.value, AgentError)
    assert all(word in str(refused.value) for word in THREADS_ADVICE)
    assert "this is the GUI thread" in (prompt().unusable() or "")
    assert not desk.prompts()


def test_while_the_gui_thread_runs_an_agent_it_refuses_at_once() -> None:
    """The GUI thread waits for the thread that asks, as it would inside of agent.run() with a time limit."""
    with occupying():
        asking = Asking(QtElicitationHandler(), form())
        asking.join(desk.LONG)
    assert isinstance(asking.error, QtPromptUnavailable)
    assert "inside agent.run()" in str(asking.error)
    assert all(word in str(asking.error) for word in THREADS_ADVICE)


def test_a_gui_thread_that_begins_to_run_an_agent_before_it_took_the_request() -> None:
    asking = ask(form())
    time.sleep(0.1)  # it is posted; no event is served here meanwhile
    with occupying():
        asking.join(desk.LONG)
    assert isinstance(asking.error, QtPromptUnavailable)
    desk.wait_until(lambda: not desk.prompts())


def test_a_gui_thread_that_serves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vigil, "NO_LOOP_AFTER", 0.2)
    asking = ask(form())
    asking.join(desk.LONG)
    assert isinstance(asking.error, QtPromptUnavailable)
    assert "no Qt event loop is running" in str(asking.error) and "QApplication.exec()" in str(asking.error)
    desk.wait_until(lambda: not desk.prompts())


def test_a_gui_thread_that_is_busy_for_too_long(monkeypatch: pytest.MonkeyPatch, qapp: QApplication) -> None:
    """Its event loop runs: it is only given up on after longer, since a program may compute for a while."""
    monkeypatch.setattr(vigil, "NO_LOOP_AFTER", 0.0)
    monkeypatch.setattr(vigil, "BUSY_AFTER", 0.3)
    found: list[Asking] = []

    def blocked() -> None:
        found.append(ask(form()))
        found[0].join(desk.LONG)
        qapp.quit()

    QTimer.singleShot(0, blocked)
    qapp.exec()
    assert "has not served its events" in str(found[0].error)
    assert qapp.thread().loopLevel() == 0


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), "3", True])
def test_what_is_no_time_limit_is_refused(wrong: Any) -> None:
    with pytest.raises(ValueError, match="timeout_s must be a number of seconds"):
        QtElicitationHandler(timeout_s=wrong)


def test_what_lasting_may_hold() -> None:
    with pytest.raises(ValueError, match='"session" and "always"'):
        QtElicitationHandler(lasting=("for ever",))  # type: ignore[arg-type]
    assert repr(QtElicitationHandler(timeout_s=3)) == "QtElicitationHandler(timeout_s=3.0)"


# ---- ends that come from outside -------------------------------------------------------------------------------------


def test_what_nobody_waits_for_any_more_is_taken_off_the_screen() -> None:
    open_ = threading.Event()
    open_.set()
    asking = ask(form(), Watch(is_open=open_.is_set))
    dialog = desk.wait_for()[0]
    desk.fill(dialog, "Name", "Ada")
    open_.clear()
    assert asking.outcome() == PersonAnswer("cancel")
    desk.wait_until(lambda: not desk.prompts())


@pytest.mark.parametrize(("request_", "action"), [(page(), "accept"), (form(), "cancel")], ids=["page", "form"])
def test_what_the_server_calls_complete(request_: Any, action: str) -> None:
    finished = threading.Event()
    asking = ask(request_, Watch(is_finished=finished.is_set))
    desk.wait_for()
    finished.set()
    assert asking.outcome() == PersonAnswer(action)
    desk.wait_until(lambda: not desk.prompts())


@pytest.mark.parametrize("whose", ["watch", "handler"])
def test_the_time_limit_cancels_and_the_time_left_is_shown(whose: str) -> None:
    watch = Watch.for_limit(1500) if whose == "watch" else Watch()
    asking = ask(form(), watch, timeout_s=1.5 if whose == "handler" else None)
    dialog = desk.wait_for()[0]
    desk.wait_until(lambda: "Time left: 1 s." in desk.labels_of(dialog))
    assert asking.outcome() == PersonAnswer("cancel")
    assert watch.ran_out()
    desk.wait_until(lambda: not desk.prompts())


def test_the_handlers_limit_is_not_longer_than_the_requests() -> None:
    watch = Watch.for_limit(100)
    asking = ask(form(), watch, timeout_s=1000)
    assert asking.outcome() == PersonAnswer("cancel")


def test_it_is_told_when_the_person_has_it_before_them() -> None:
    shown: list[bool] = []
    gui = threading.get_ident()
    watch = Watch(on_shown=lambda: shown.append(threading.get_ident() != gui))
    asking = ask(form(), watch)
    dialog = desk.wait_for()[0]
    desk.wait_until(lambda: shown)
    assert dialog.windowHandle().isExposed()
    dialog.close()
    asking.outcome()
    assert shown == [True]  # once, and not on the GUI thread, which it might hold up


def test_what_is_withdrawn_before_it_came_up_is_never_shown() -> None:
    shown: list[bool] = []
    asking = ask(form(), Watch(is_open=lambda: False, on_shown=lambda: shown.append(True)))
    asking.join(desk.LONG)
    assert asking.result == PersonAnswer("cancel")
    for _ in range(20):
        QApplication.processEvents()
        assert not desk.prompts()
    assert not shown


def test_what_making_the_window_raises_is_the_askers(monkeypatch: pytest.MonkeyPatch) -> None:
    from gopher_mcp_python.handlers.qt import dialog

    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("no window today")

    monkeypatch.setattr(dialog, "McpElicitationDialog", broken)
    asking = ask(form())
    with pytest.raises(RuntimeError, match="no window today"):
        asking.outcome()


# ---- parents ---------------------------------------------------------------------------------------------------------


def test_a_window_that_belongs_to_another_goes_with_it() -> None:
    parent = QWidget()
    parent.show()
    asking = ask(form(), parent=parent)
    assert desk.wait_for()[0].parentWidget() is parent
    Shiboken.delete(parent)
    assert asking.outcome() == PersonAnswer("cancel")


def test_a_parent_that_is_gone_already() -> None:
    parent = QWidget()
    asker = prompt(parent)
    Shiboken.delete(parent)
    asking = Asking(asker.ask, form(), Watch())
    dialog = desk.wait_for()[0]
    assert dialog.parentWidget() is None
    dialog.close()
    asking.outcome()


# ---- several ---------------------------------------------------------------------------------------------------------


def test_each_answer_goes_to_its_own_request_in_any_order() -> None:
    asked = {name: ask(form(f"Who is {name}?")) for name in ("one", "two", "three")}
    desk.wait_for(3)
    for name in ("two", "three", "one"):
        desk.send_name(desk.wait_for_one(f"Who is {name}?"), name)
        asked[name].join(desk.LONG)  # the others are still open
        assert asked[name].result.content == {"name": name}
    desk.wait_until(lambda: not desk.prompts())


@pytest.mark.parametrize("how", ["key", "click"])
def test_what_was_meant_for_another_window_answers_nothing(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two confirmations, and a Ctrl+Enter or a click too many."""
    question = {"type": "object", "properties": {}}
    first, second = ask(form("one", question)), ask(form("two", question))
    desk.wait_for(2)
    monkeypatch.setattr(window_guard, "HELD_FOR", 3600.0)
    desk.press(desk.wait_for_one("one"), "Agree")
    assert first.outcome().action == "accept"
    left = desk.wait_for(1)[0]
    agree = left._footer.send

    def too_many() -> None:
        if how == "key":
            QTest.keyClick(left.windowHandle(), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        else:
            middle = agree.mapTo(left, agree.rect().center())
            QTest.mouseClick(left.windowHandle(), Qt.MouseButton.LeftButton, pos=middle)

    too_many()
    assert second.is_alive() and left.isVisible()
    left._guard.release()
    too_many()
    assert second.outcome().action == "accept"


def test_who_types_into_a_window_is_not_held_up_by_the_end_of_another() -> None:
    first, second = ask(form("one")), ask(form("two"))
    desk.wait_for(2)
    one, two = desk.wait_for_one("one"), desk.wait_for_one("two")
    two.activateWindow()
    desk.wait_until(two.isActiveWindow)
    two._guard.release()
    one.close()
    assert first.outcome().action == "cancel"
    QTest.keyClick(two.windowHandle(), "x")
    QTest.keyClick(two.windowHandle(), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
    assert second.outcome().content == {"name": "x"}


def test_no_window_covers_another() -> None:
    asked = []
    for number in range(MAX_WINDOWS):
        asked.append(ask(form(f"{number}")))
        desk.wait_for(number + 1)
    corners = [(one.pos().x(), one.pos().y()) for one in desk.prompts()]
    assert all(
        abs(x - other_x) >= 18 or abs(y - other_y) >= 18
        for place, (x, y) in enumerate(corners)
        for other_x, other_y in corners[:place]
    ), corners
    for one in desk.prompts():
        one.close()
    assert {asking.outcome().action for asking in asked} == {"cancel"}


def test_only_so_many_are_open_and_the_rest_come_in_turn() -> None:
    asked = [ask(form("early")) for _ in range(MAX_WINDOWS)]
    desk.wait_for(MAX_WINDOWS)
    watched = threading.Event()
    watched.set()
    late, withdrawn = ask(form("late")), ask(form("withdrawn"), Watch(is_open=watched.is_set))
    time.sleep(0.1)
    assert len(desk.wait_for(MAX_WINDOWS)) == MAX_WINDOWS
    watched.clear()  # while it waits in line
    assert withdrawn.outcome() == PersonAnswer("cancel")
    desk.wait_for_one("early").close()
    desk.send_name(desk.wait_for_one("late"), "Ada")
    assert late.outcome().content == {"name": "Ada"}
    for one in desk.prompts():
        one.close()
    assert {asking.outcome().action for asking in asked} == {"cancel"}


def test_the_same_work_again_leaves_nothing_behind() -> None:
    def once() -> None:
        asking = ask(form())
        desk.send_name(desk.wait_for()[0], "Ada")
        asking.outcome()
        desk.wait_until(desk.nothing_left)

    def objects() -> int:
        gc.collect()
        wanted = ("Case", "Vigil", "McpElicitationDialog", "FormModel", "QPushButton")
        return sum(type(one).__name__ in wanted for one in gc.get_objects())

    once()
    before = objects()
    for _ in range(3):
        once()
    assert objects() == before


def test_nothing_of_a_request_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        asking = ask(form("a secret question"))
        desk.send_name(desk.wait_for()[0], "a secret answer")
        asking.outcome()
    assert "secret" not in caplog.text
