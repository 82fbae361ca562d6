"""The dialog's answers: three that are not interchangeable, each given once, and never by accident."""

from __future__ import annotations

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import mcp_types
import pytest
from PySide6.QtCore import QEvent, Qt, QTimer
from PySide6.QtGui import QKeyEvent, QShortcut
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog, QMenu, QWidget

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.prompts import CANCELLED, PersonAnswer
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog
from tests.support import children

from .dialogs import Show, settle

pytestmark = pytest.mark.usefixtures("no_window_left")

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3}, "size": {"type": "integer", "default": 3}},
    "required": ["name"],
}
FORM = mcp_types.ElicitRequestFormParams(message="Who?", requested_schema=SCHEMA)
URL = mcp_types.ElicitRequestURLParams(message="Go there.", url="https://pay.example.com/x", elicitation_id="1")


def fill(dialog: McpElicitationDialog, name: str, text: str) -> None:
    """Types into a field as a person does."""
    line = dialog._view.row(name).editor.line
    line.setFocus()
    line.selectAll()
    line.insert(text)
    line.textEdited.emit(line.text())


def heard(dialog: McpElicitationDialog) -> list[str]:
    actions: list[str] = []
    dialog.answered.connect(actions.append)
    return actions


# ---- the three answers -----------------------------------------------------------------------------------------------


def test_a_sent_form_gives_its_content(show: Show) -> None:
    dialog = show(FORM)
    actions = heard(dialog)
    assert (dialog.action, dialog.content, dialog.is_url_request, dialog.is_answered) == ("cancel", {}, False, False)
    fill(dialog, "name", "Ada")
    dialog._footer.send.click()
    assert actions == ["accept"] and dialog.action == "accept" and dialog.is_answered
    assert dialog.content == {"name": "Ada", "size": 3}
    assert dialog.answer == PersonAnswer("accept", {"name": "Ada", "size": 3})
    assert dialog.to_result() == mcp_types.ElicitResult(action="accept", content={"name": "Ada", "size": 3})
    assert not dialog.isVisible()


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_the_other_buttons_give_no_content(show: Show, action: str) -> None:
    dialog = show(FORM)
    actions = heard(dialog)
    fill(dialog, "name", "Ada")
    getattr(dialog._footer, action).click()
    assert actions == [action] and dialog.content == {}
    assert dialog.to_result() == mcp_types.ElicitResult(action=action)
    assert "content" not in dialog.to_result().model_dump(exclude_unset=True)


@pytest.mark.parametrize("params", [FORM, URL, mcp_types.ElicitRequestFormParams(message="", requested_schema={})])
@pytest.mark.parametrize("end", ["close", "reject", "accept"])
def test_whatever_closes_the_window_is_no_consent(show: Show, params: Any, end: str) -> None:
    dialog = show(params)
    actions = heard(dialog)
    getattr(dialog, end)()
    assert actions == ["cancel"] and dialog.to_result() == mcp_types.ElicitResult(action="cancel")
    assert not dialog.isVisible()


def test_closing_drops_a_half_filled_form_at_once(show: Show) -> None:
    dialog = show(FORM)
    actions = heard(dialog)
    fill(dialog, "name", "Ada")
    dialog.close()
    assert actions == ["cancel"]


def test_it_answers_once(show: Show) -> None:
    dialog = show(FORM)
    actions = heard(dialog)
    dialog._footer.decline.click()
    dialog._footer.cancel.click()
    dialog._footer.send.click()
    dialog.withdraw("timeout")
    dialog.close()
    dialog.reject()
    assert actions == ["decline"] and dialog.action == "decline"


def test_an_answer_from_within_the_answer_is_none(show: Show) -> None:
    dialog = show(FORM)
    actions = heard(dialog)
    dialog.answered.connect(lambda _: dialog.withdraw("withdrawn"))
    dialog.answered.connect(lambda _: dialog.close())
    dialog._footer.decline.click()
    assert actions == ["decline"]


def test_a_visited_page_is_accepted_without_content(show: Show) -> None:
    dialog = show(URL)
    actions = heard(dialog)
    assert dialog.is_url_request
    dialog._footer.send.click()
    assert actions == ["accept"] and dialog.content == {}
    assert dialog.to_result() == mcp_types.ElicitResult(action="accept")
    assert "content" not in dialog.to_result().model_dump(exclude_unset=True)


def test_an_empty_form_is_a_confirmation(show: Show) -> None:
    dialog = show(mcp_types.ElicitRequestFormParams(message="Sure?", requested_schema={"type": "object"}))
    assert "asks you to confirm this" in dialog._header.sentence.text()
    dialog._footer.send.click()
    assert dialog.to_result() == mcp_types.ElicitResult(action="accept", content={})


def test_a_confirmation_that_no_answer_can_keep(show: Show) -> None:
    dialog = show(requested_schema={"type": "object", "minProperties": 1})
    dialog._footer.send.click()
    assert not dialog.is_answered and dialog._footer.summary.isVisible()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"requested_schema": {"type": "object", "properties": {"a": {"type": "object"}}}}, "can't be shown"),
        ({"requested_schema": None}, "can't be shown"), ({"mode": "dance"}, "not known"),
        ({"mode": "url", "url": "javascript:alert(1)"}, "refused"), ({"mode": "url"}, "refused"),
    ],
)  # fmt: skip
def test_what_can_t_be_answered_can_only_be_refused(show: Show, params: dict[str, Any], said: str) -> None:
    dialog = show(**params)
    assert dialog._footer.send is None
    assert any(said in label.text() for label in dialog.findChildren(type(dialog._header.sentence)))
    dialog._send()
    assert not dialog.is_answered
    dialog._footer.decline.click()
    assert dialog.action == "decline"


# ---- more than one generation ----------------------------------------------------------------------------------------


def test_the_answer_is_of_the_parameters_generation() -> None:
    """mcp 1.x: the types' package is `mcp`. The SDK of 2.x has the same names there."""
    import mcp.types

    older = type("ElicitRequestFormParams", (mcp_types.ElicitRequestFormParams,), {"__module__": "mcp.types"})
    dialog = McpElicitationDialog("a", older(message="", requested_schema={}))
    assert type(dialog.to_result()) is mcp.types.ElicitResult
    dialog.deleteLater()


def test_a_request_of_our_own_is_answered_in_the_sdk_s_types(show: Show) -> None:
    dialog = show(requested_schema={"type": "object"})
    dialog._footer.send.click()
    assert dialog.to_result() == mcp_types.ElicitResult(action="accept", content={})


def test_other_parameters_are_refused(qapp: QApplication) -> None:
    with pytest.raises(TypeError, match="no parameter type"):
        McpElicitationDialog("a", {"message": "x"})


def test_a_request_names_its_own_server_and_tool(show: Show) -> None:
    request = GopherAgentElicitationRequest("form", message="", server="a.test", tool="mail", requested_schema={})
    assert show(request, server="").windowTitle() == "Request from a.test (mail)"
    assert show(request, server="b.test").windowTitle() == "Request from b.test (mail)"
    assert show(URL, server="").windowTitle() == "Request from An MCP server"


# ---- what others do to it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("params", "why", "action"),
    [(FORM, "withdrawn", "cancel"), (FORM, "timeout", "cancel"), (FORM, "finished", "cancel"),
     (URL, "withdrawn", "cancel"), (URL, "timeout", "cancel"), (URL, "finished", "accept")],
)  # fmt: skip
def test_a_request_that_ends_by_itself(show: Show, params: Any, why: Any, action: str) -> None:
    dialog = show(params)
    actions = heard(dialog)
    dialog.withdraw(why)
    assert actions == [action] and not dialog.isVisible()


def test_the_time_that_is_left(show: Show) -> None:
    dialog = show(FORM)
    assert dialog._footer.time_left.isHidden()
    dialog.set_time_left(90.2)
    assert dialog._footer.time_left.text() == "Time left: 1 min 30 s." and dialog._footer.time_left.isVisible()
    dialog.set_time_left(-1)
    assert dialog._footer.time_left.text() == "Time left: 0 s."
    dialog.set_time_left(None)
    assert dialog._footer.time_left.isHidden()


@pytest.mark.parametrize(("how_long", "words"), [("session", "for this session"), ("always", "always")])
def test_everything_of_a_server_can_be_declined(show: Show, how_long: Any, words: str) -> None:
    dialog = show(FORM, server="a&b.test", lasting=("session", "always"))
    actions = heard(dialog)
    dialog._footer.decline_all.click()
    (menu,) = dialog._footer.findChildren(QMenu)
    assert menu.isVisible()
    wanted = f"Decline everything from a&&b.test {words}"
    (action,) = (action for action in menu.actions() if action.text() == wanted)
    menu.setActiveAction(action)
    menu.close()
    action.trigger()
    assert actions == ["decline"] and dialog.answer == PersonAnswer("decline", None, how_long)


def test_it_offers_only_what_lasts(show: Show) -> None:
    assert show(FORM)._footer.decline_all is None
    dialog = show(FORM, lasting=("session",))
    dialog._footer.decline_all.click()
    (menu,) = dialog._footer.findChildren(QMenu)
    assert len(menu.actions()) == 1
    menu.close()


def test_a_menu_that_stands_open_goes_with_the_window(show: Show) -> None:
    dialog = show(FORM, lasting=("session",))
    for begin in (dialog._footer.decline_all.click, dialog._view.row("size").show_ways):
        begin()
        assert QApplication.activePopupWidget() is not None
    dialog.withdraw("withdrawn")
    settle()
    assert QApplication.activePopupWidget() is None and not dialog.isVisible()


def test_a_key_that_was_on_its_way_confirms_nothing(show: Show) -> None:
    for message in ("", "Sure?"):
        dialog = show(mcp_types.ElicitRequestFormParams(message=message, requested_schema={"type": "object"}))
        for key in (Qt.Key.Key_Space, Qt.Key.Key_Return, Qt.Key.Key_G):
            QTest.keyClick(dialog.focusWidget() or dialog, key)
        assert not dialog.is_answered


def test_an_escape_that_is_held_down_is_one(show: Show) -> None:
    dialog = show(FORM)
    fill(dialog, "name", "Ada")
    line = dialog._view.row("name").editor.line
    for is_repeated in (False, True, True):
        key = QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_Escape, Qt.KeyboardModifier.NoModifier, "", is_repeated)
        QApplication.sendEvent(line, key)
    assert not dialog.is_answered
    QTest.keyClick(line, Qt.Key.Key_Escape)
    assert dialog.is_answered


def test_keys_that_are_held_down_send_nothing(show: Show) -> None:
    """As they may be since before the window came up."""
    shortcuts = show(FORM).findChildren(QShortcut)
    assert shortcuts and not any(shortcut.autoRepeat() for shortcut in shortcuts)


def test_its_end_is_not_the_program_s(show: Show) -> None:
    """As the last window of a program that lives in the tray."""
    dialog = show(FORM)
    assert not dialog.testAttribute(Qt.WidgetAttribute.WA_QuitOnClose)


# ---- windows ---------------------------------------------------------------------------------------------------------


def test_it_never_blocks(show: Show) -> None:
    dialog = show(FORM)
    assert not dialog.isModal() and dialog.windowModality() == Qt.WindowModality.NonModal
    assert QApplication.activeModalWidget() is None


def test_a_dialog_that_nobody_holds_is_gone(qapp: QApplication) -> None:
    for params in (FORM, URL, mcp_types.ElicitRequestFormParams(message="", requested_schema={})):
        dialog = McpElicitationDialog("a", params, lasting=("session",))
        dialog.show()
        settle()
        gone = weakref.ref(dialog)
        dialog._footer.decline.click()
        del dialog
        gc.collect()
        assert gone() is None


def test_a_parent_takes_it_along(qapp: QApplication) -> None:
    parent = QWidget()
    dialog = McpElicitationDialog("a", FORM, parent)
    assert isinstance(dialog, QDialog) and dialog.parent() is parent and dialog.isWindow()
    assert dialog.answer is CANCELLED
    actions = heard(dialog)
    dialog.show()
    parent.deleteLater()
    settle()
    assert actions == ["cancel"]


def test_the_end_of_the_program_is_a_cancel(show: Show, qapp: QApplication) -> None:
    """Whoever waits for the answer on another thread would keep the process from ending."""
    dialog = show(FORM)
    actions = heard(dialog)
    QTimer.singleShot(0, lambda: qapp.exit(0))
    qapp.exec()
    assert actions == ["cancel"] and not dialog.isVisible()


def test_where_it_can_t_be_made_is_told(qapp: QApplication) -> None:
    """Qt itself would end the process."""
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="on the thread of the QApplication"):
        pool.submit(McpElicitationDialog, "a", FORM).result()


@pytest.mark.parametrize("application", ["", "QCoreApplication([])"])
def test_without_an_application_it_is_told(application: str) -> None:
    script = f"""
from PySide6.QtCore import QCoreApplication
from gopher_mcp_python import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.qt import McpElicitationDialog
app = {application or None}
try:
    McpElicitationDialog("a", GopherAgentElicitationRequest("form", requested_schema={{}}))
except RuntimeError as error:
    print(error)
"""
    assert "needs a QApplication" in children.python(script).check().out


def test_no_answer_in_a_repr(show: Show) -> None:
    dialog = show(FORM)
    fill(dialog, "name", "hunter2")
    dialog._footer.send.click()
    assert "hunter2" not in repr(dialog) + repr(dialog.answer) + repr(dialog._asked) + repr(dialog._model)
