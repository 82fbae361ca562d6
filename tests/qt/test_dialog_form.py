"""Forms in the dialog: every kind of field, its states, what is wrong said beside it, and the keyboard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QPlainTextEdit, QToolButton, QWidget

from gopher_mcp_python.elicitation import GopherAgentElicitationRequest
from gopher_mcp_python.handlers.qt.dialog import McpElicitationDialog
from gopher_mcp_python.handlers.qt.editors import ComboEditor, LineEditor, YesNoEditor
from gopher_mcp_python.handlers.qt.field_row import FieldRow
from gopher_mcp_python.handlers.qt.lists import BoxesEditor, ListEditor
from tests.support.choices import FIVE_CHOICES

from .dialogs import Show, settle

pytestmark = pytest.mark.usefixtures("no_window_left")

STRING: dict[str, Any] = {"type": "string"}
FRUIT: dict[str, Any] = {"type": "array", "items": {"enum": ["apple", "banana", "cherry"]}}
MANY = [f"item {number}" for number in range(200)]


@pytest.fixture
def form(show: Show) -> Callable[..., McpElicitationDialog]:
    """Shows a form of the properties given; the names before them are required."""

    def shown(*required: str, **properties: Any) -> McpElicitationDialog:
        return show(requested_schema={"type": "object", "properties": properties, "required": list(required)})

    return shown


Form = Callable[..., McpElicitationDialog]


def row(dialog: McpElicitationDialog, name: str) -> FieldRow:
    found: FieldRow = dialog._view.row(name)
    return found


def write(dialog: McpElicitationDialog, name: str, text: str) -> None:
    """Types over what a field holds, key by key."""
    widget = row(dialog, name).editor.stops[0]
    widget.setFocus()
    QTest.keyClick(widget, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
    QTest.keyClick(widget, Qt.Key.Key_Delete)
    if text:
        QTest.keyClicks(widget, text)


def choose(dialog: McpElicitationDialog, name: str, index: int) -> None:
    """Chooses an option, as a click does."""
    editor = row(dialog, name).editor
    if isinstance(editor, ComboEditor):
        editor.box.setCurrentIndex(index + editor._first)
    elif isinstance(editor, BoxesEditor):
        editor.boxes[index].click()
    elif isinstance(editor, YesNoEditor):
        editor.buttons[index].click()
    else:
        assert isinstance(editor, ListEditor)
        item = editor.list.item(index)
        editor.list.scrollToItem(item)
        where = editor.list.visualItemRect(item).center()
        QTest.mouseClick(editor.list.viewport(), Qt.MouseButton.LeftButton, pos=where)


def ways(dialog: McpElicitationDialog, name: str) -> list[str]:
    return [words.replace("&", "") for words, _, _ in row(dialog, name)._ways()]


def way(dialog: McpElicitationDialog, name: str, words: str) -> None:
    """Takes one of the ways of the menu beside a field."""
    state = row(dialog, name).state
    assert state is not None
    state.click()
    (menu,) = row(dialog, name).findChildren(QMenu)
    assert menu.isVisible()
    (action,) = (action for action in menu.actions() if action.text().replace("&", "") == words)
    menu.close()
    action.trigger()
    settle()


def error(dialog: McpElicitationDialog, name: str) -> str:
    label = row(dialog, name).error
    return "" if label is None or label.isHidden() else label.text()


def sent(dialog: McpElicitationDialog) -> dict[str, Any] | None:
    dialog._footer.send.click()
    return dialog.content if dialog.is_answered else None


def summary(dialog: McpElicitationDialog) -> str:
    shown = dialog._footer.summary
    return "" if shown.isHidden() else shown.toPlainText()


# ---- what is sent ----------------------------------------------------------------------------------------------------


def test_untouched_optional_fields_are_left_out(form: Form) -> None:
    dialog = form(
        a=STRING, b={"type": "boolean"}, c={"type": "number"}, d={"enum": ["x", "y"]}, e=FRUIT,
        f={**FRUIT, "minItems": 1}, g={"type": "string", "format": "date"}, h={"type": "array", "items": STRING},
        i={"enum": MANY}, j={"type": "array", "items": {"enum": MANY}}, k={**STRING, "maxLength": 5000},
    )  # fmt: skip
    assert sent(dialog) == {}


def test_untouched_defaults_are_sent_as_they_are(form: Form) -> None:
    properties: dict[str, Any] = {
        "a": {**STRING, "default": ""}, "b": {"type": "boolean", "default": False},
        "c": {"type": "number", "default": 0},
        "d": {"enum": ["x", "y"], "default": "y"}, "e": {**FRUIT, "default": ["cherry", "apple"]},
        "f": {"type": "integer", "default": 90071992547409910}, "g": {**STRING, "default": "one\r\ntwo"},
        "h": {"type": "array", "items": STRING, "default": ["a, b", 'c"d', "e"]},
        "i": {"enum": MANY, "default": MANY[99]},
        "j": {"type": "array", "items": {"enum": MANY}, "default": MANY[::9]},
        "k": {**STRING, "default": "a\u00a0b\u202ec"},
        "l": {"type": "number", "default": 1e300}, "m": {**FRUIT, "default": []},
    }  # fmt: skip
    expected = {name: property["default"] for name, property in properties.items()}
    assert sent(form(**properties)) == expected
    assert sent(form(*properties, **properties)) == expected


def test_the_five_choices_of_the_conformance_suite(form: Form) -> None:
    for required in ((), tuple(FIVE_CHOICES)):
        dialog = form(*required, **FIVE_CHOICES)
        for name, index in (("untitledSingle", 0), ("titledSingle", 0), ("legacyEnum", 0)):
            choose(dialog, name, index)
        for index in (0, 1):
            choose(dialog, "untitledMulti", index)
        for index in (1, 0):
            choose(dialog, "titledMulti", index)
        assert sent(dialog) == {
            "untitledSingle": "option1", "titledSingle": "value1", "legacyEnum": "opt1",
            "untitledMulti": ["option1", "option2"], "titledMulti": ["value1", "value2"],
        }  # fmt: skip


def test_choices_show_their_titles(form: Form) -> None:
    dialog = form(**FIVE_CHOICES)
    combo, boxes = row(dialog, "legacyEnum").editor, row(dialog, "titledMulti").editor
    assert isinstance(combo, ComboEditor) and isinstance(boxes, BoxesEditor)
    assert [combo.box.itemText(n) for n in range(combo.box.count())] == ["(leave out)", "Option One", "Option Two"]
    assert [box.text() for box in boxes.boxes] == ["First Option", "Second Option", "Third Option"]


@pytest.mark.parametrize("is_required", [True, False])
def test_the_defaults_of_the_conformance_suite(form: Form, is_required: bool) -> None:
    properties = {
        "name": {**STRING, "default": "John Doe"}, "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5}, "verified": {"type": "boolean", "default": True},
        "status": {**STRING, "enum": ["active", "inactive"], "default": "active"},
    }  # fmt: skip
    dialog = form(*(properties if is_required else ()), **properties)
    editor = row(dialog, "score").editor
    assert isinstance(editor, LineEditor) and editor.line.text() == "95.5"
    values = {"name": "John Doe", "age": 30, "score": 95.5, "status": "active", "verified": True}
    assert sent(dialog) == values


def test_every_name_comes_back(form: Form) -> None:
    names = ["__proto__", "__class__", "class", "", "a b", "a.b", "self", "&amp;", "\u202eabc"]
    dialog = form(**dict.fromkeys(names, STRING))
    for name in names:
        write(dialog, name, "x")
    assert sent(dialog) == dict.fromkeys(names, "x")


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        ({"type": "integer"}, "90071992547409910", 90071992547409910), ({"type": "number"}, "1 . 5", 1.5),
        ({"type": "number"}, "none", None), ({"type": "integer"}, "-0", 0), ({"type": "integer"}, "12 000", 12000),
        (STRING, "  two  words ", "  two  words "), (STRING, "none", "none"), (STRING, '""', ""),
        ({"type": "string", "format": "email"}, " a@b.example ", "a@b.example"),
        ({"type": "array", "items": STRING}, 'a, "b, c",d', ["a", "b, c", "d"]),
        ({**STRING, "maxLength": 900}, "long", "long"),
    ],
)  # fmt: skip
def test_what_is_typed(form: Form, schema: dict[str, Any], typed: str, value: Any) -> None:
    dialog = form(f=schema)
    write(dialog, "f", typed)
    assert error(dialog, "f") == ""
    assert sent(dialog) == ({} if value is None else {"f": value})


def test_a_text_of_several_lines(form: Form) -> None:
    dialog = form(f={**STRING, "maxLength": 500})
    box = row(dialog, "f").editor.stops[0]
    assert isinstance(box, QPlainTextEdit)
    QTest.keyClicks(box, "one")
    QTest.keyClick(box, Qt.Key.Key_Return)
    box.insertPlainText("two\u00a0x")
    assert sent(dialog) == {"f": "one\ntwo\u00a0x"}


# ---- the four states -------------------------------------------------------------------------------------------------


def test_the_four_states_of_a_text(form: Form) -> None:
    for words, expected in (("Leave out", {}), ("Empty text", {"f": ""}), ("Default of the server", {"f": "hi"})):
        dialog = form(f={**STRING, "default": "hi"})
        write(dialog, "f", "mine")
        assert row(dialog, "f").state.text() == "Answered ▾"
        way(dialog, "f", words)
        assert sent(dialog) == expected
    dialog = form("f", f=STRING)
    assert ways(dialog, "f") == ["Empty text"] and row(dialog, "f").state.text() == "Not answered ▾"
    assert sent(dialog) is None
    way(dialog, "f", "Empty text")
    assert row(dialog, "f").state.text() == "Empty ▾" and error(dialog, "f") == "" and summary(dialog) == ""
    assert sent(dialog) == {"f": ""}


def test_only_what_the_form_allows_is_offered(form: Form) -> None:
    dialog = form(
        "b", "c", "e", a={**STRING, "minLength": 1}, b={**STRING, "minLength": 1}, c={"type": "integer", "default": 1},
        d=FRUIT, e={**FRUIT, "minItems": 1}, f={"type": "boolean"}, g={"enum": ["x"]}, h={"type": "number"},
    )  # fmt: skip
    assert ways(dialog, "a") == ["Leave out"] and ways(dialog, "b") == []
    assert ways(dialog, "c") == ["Default of the server"] and ways(dialog, "d") == ["Leave out", "Empty list"]
    assert [ways(dialog, name) for name in "efgh"] == [[], [], [], ["Leave out"]]
    assert row(dialog, "b").state is None and row(dialog, "f").state is None


@pytest.mark.parametrize(("index", "expected"), [(0, {"f": True}), (1, {"f": False}), (2, {})])
def test_an_optional_boolean_has_three_states(form: Form, index: int, expected: dict[str, bool]) -> None:
    dialog = form(f={"type": "boolean"})
    editor = row(dialog, "f").editor
    assert isinstance(editor, YesNoEditor)
    assert [button.isChecked() for button in editor.buttons] == [False, False, True]
    choose(dialog, "f", 0)
    choose(dialog, "f", index)
    assert sent(dialog) == expected


def test_a_required_boolean_is_nobody_s_yes(form: Form) -> None:
    dialog = form("f", f={"type": "boolean"})
    editor = row(dialog, "f").editor
    assert isinstance(editor, YesNoEditor)
    assert [(button.text(), button.isChecked()) for button in editor.buttons] == [("Yes", False), ("No", False)]
    assert sent(dialog) is None and error(dialog, "f") == "F needs an answer."
    choose(dialog, "f", 1)
    assert sent(dialog) == {"f": False}


def test_a_required_choice_is_nobody_s_first(form: Form) -> None:
    dialog = form("f", "g", f={"enum": ["x", "y"]}, g={"enum": MANY})
    assert sent(dialog) is None and error(dialog, "f") == "F needs an answer." and error(dialog, "g")
    choose(dialog, "f", 1)
    choose(dialog, "g", 3)
    assert sent(dialog) == {"f": "y", "g": "item 3"}


def test_a_choice_is_left_out_again(form: Form) -> None:
    dialog = form(f={"enum": ["x", "y"]}, g={"enum": MANY}, h=FRUIT)
    for name in "fgh":
        choose(dialog, name, 1)
    choose(dialog, "f", -1)
    way(dialog, "g", "Leave out")
    choose(dialog, "h", 1)
    assert sent(dialog) == {}


def test_a_list_is_empty_or_left_out(form: Form) -> None:
    for words, expected in (("Leave out", {}), ("Empty list", {"f": []}), ("Default of the server", {"f": ["apple"]})):
        dialog = form(f={**FRUIT, "default": ["apple"]})
        choose(dialog, "f", 1)
        way(dialog, "f", words)
        assert sent(dialog) == expected


# ---- long lists ------------------------------------------------------------------------------------------------------


def test_a_long_list_is_searched_and_keeps_what_was_chosen(form: Form) -> None:
    dialog = form(f={"type": "array", "items": {"enum": MANY}, "maxItems": 2})
    editor = row(dialog, "f").editor
    assert isinstance(editor, ListEditor)
    choose(dialog, "f", 5)
    QTest.keyClicks(editor.search, "ITEM 19")
    assert [n for n in range(200) if not editor.list.item(n).isHidden()] == [19, 119, *range(190, 200)]
    assert editor.count.text() == "1 of 200 chosen, 12 shown"
    choose(dialog, "f", 199)
    editor.search.clear()
    assert editor.count.text() == "2 of 200 chosen"
    choose(dialog, "f", 7)
    assert error(dialog, "f") == "F has 1 too many: choose at most 2." and editor.count.text() == "3 of 200 chosen"
    choose(dialog, "f", 7)
    assert error(dialog, "f") == "" and sent(dialog) == {"f": ["item 5", "item 199"]}


@pytest.mark.parametrize("required", [(), ("c",)])
def test_going_through_a_long_list_chooses_nothing(form: Form, required: tuple[str, ...]) -> None:
    """Qt makes the first one the current one when the keyboard comes there."""
    dialog = form(*required, a=STRING, c={"enum": MANY}, z=STRING)
    dialog.activateWindow()
    row(dialog, "a").editor.stops[0].setFocus()
    passed = []
    while dialog.focusWidget() is not row(dialog, "z").editor.stops[0]:
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
        passed.append(dialog.focusWidget())
    shown = row(dialog, "c").editor.list
    assert shown in passed and shown.selectedItems() == []
    assert row(dialog, "c").entry.state == "omitted"
    assert sent(dialog) == (None if required else {})


def test_a_long_list_is_chosen_from_by_the_keyboard(form: Form) -> None:
    dialog = form(c={"enum": MANY})
    dialog.activateWindow()
    shown, entry = row(dialog, "c").editor.list, row(dialog, "c").entry
    shown.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(shown, Qt.Key.Key_Space)
    assert entry.value == MANY[0]
    QTest.keyClick(shown, Qt.Key.Key_Down)
    assert entry.value == MANY[1]
    way(dialog, "c", "Leave out")
    assert shown.selectedItems() == []
    assert sent(dialog) == {}


def test_a_click_on_the_box_counts_once_and_so_does_the_space_key(form: Form) -> None:
    dialog = form(f={"type": "array", "items": {"enum": MANY}})
    editor = row(dialog, "f").editor
    assert isinstance(editor, ListEditor)
    at_box = editor.list.visualItemRect(editor.list.item(0)).topLeft() + QPoint(10, 8)
    QTest.mouseClick(editor.list.viewport(), Qt.MouseButton.LeftButton, pos=at_box)
    QTest.keyClick(editor.list, Qt.Key.Key_Down)
    QTest.keyClick(editor.list, Qt.Key.Key_Space)
    assert sent(dialog) == {"f": ["item 0", "item 1"]}


def test_the_wheel_changes_no_answer(form: Form) -> None:
    dialog = form(f={"enum": ["x", "y"], "default": "x"})
    box = row(dialog, "f").editor.stops[0]
    box.setFocus()
    where = box.rect().center()
    none, vertical = Qt.MouseButton.NoButton, QPoint(0, -120)
    event = QWheelEvent(where, box.mapToGlobal(where), vertical, vertical, none, Qt.KeyboardModifier.NoModifier,
                        Qt.ScrollPhase.NoScrollPhase, False)  # fmt: skip
    QApplication.sendEvent(box, event)
    assert sent(dialog) == {"f": "x"}


# ---- what is wrong ---------------------------------------------------------------------------------------------------


def test_an_error_stands_beside_its_field_as_it_is_typed(form: Form) -> None:
    dialog = form("f", "g", f={**STRING, "minLength": 3}, g=STRING)
    assert error(dialog, "f") == "" and error(dialog, "g") == ""
    write(dialog, "f", "a")
    assert error(dialog, "f") == "F needs 2 more characters (at least 3)." and error(dialog, "g") == ""
    QTest.keyClicks(row(dialog, "f").editor.stops[0], "b")
    assert error(dialog, "f") == "F needs 1 more character (at least 3)."
    QTest.keyClicks(row(dialog, "f").editor.stops[0], "c")
    assert error(dialog, "f") == ""


@pytest.mark.parametrize(
    ("schema", "typed", "said"),
    [
        ({"type": "integer"}, "abc", "must be a whole number"), ({"type": "number"}, "nan", "must be a number"),
        ({"type": "string", "format": "date"}, "20260131", "2026-01-31"), ({"type": "number"}, "inf", "number"),
        ({"type": "string", "format": "date-time"}, "2026-01-31", "2026-01-31T"),
        ({"type": "integer", "minimum": 18}, "17", "18"), ({**STRING, "pattern": "^[a-z]$"}, "A", "pattern"),
        ({"type": "string", "format": "uri"}, "a", "address"),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_not_sent(form: Form, schema: dict[str, Any], typed: str, said: str) -> None:
    dialog = form(f=schema)
    write(dialog, "f", typed)
    assert said in error(dialog, "f")
    assert sent(dialog) is None and not dialog.is_answered
    write(dialog, "f", "")
    assert sent(dialog) == {}


def test_sending_too_soon_sums_up_and_goes_to_the_first(form: Form) -> None:
    names = [f"field{number}" for number in range(40)]
    dialog = form(*names[20:], **dict.fromkeys(names, STRING))
    assert sent(dialog) is None
    first = row(dialog, "field20")
    assert dialog.focusWidget() is first.editor.stops[0]
    top = first.mapTo(dialog._view.viewport(), QPoint(0, 0)).y()
    assert 0 <= top < dialog._view.viewport().height()
    said = summary(dialog)
    assert said.startswith("It can't be sent yet. Field 20 needs an answer.") and said.endswith("... and 15 more.")
    assert error(dialog, "field39") and not error(dialog, "field0")
    for name in names[20:]:
        write(dialog, name, "x")
    assert summary(dialog) == "" and not error(dialog, "field20")
    assert sent(dialog) == dict.fromkeys(names[20:], "x")


def test_a_rule_for_the_whole_form(show: Show) -> None:
    schema = {"type": "object", "properties": {"a": STRING, "b": STRING}, "minProperties": 1}
    dialog = show(requested_schema=schema)
    assert sent(dialog) is None and summary(dialog)
    write(dialog, "a", "x")
    assert summary(dialog) == "" and sent(dialog) == {"a": "x"}


def test_a_rule_between_fields_is_told_beside_one_and_goes_with_the_other(show: Show) -> None:
    rule = {"if": {"required": ["a"]}, "then": {"properties": {"b": {"maxLength": 2}}}}
    schema = {"type": "object", "properties": {"a": STRING, "b": STRING}, **rule}
    dialog = show(requested_schema=schema)
    write(dialog, "a", "x")
    write(dialog, "b", "long")
    assert error(dialog, "b") == ""
    assert sent(dialog) is None and error(dialog, "b") and summary(dialog)
    assert dialog.focusWidget() is row(dialog, "b").editor.stops[0]
    write(dialog, "a", "")
    assert error(dialog, "b") == summary(dialog) == "" and sent(dialog) == {"b": "long"}


def test_a_default_against_the_rules_is_told_when_sent(form: Form) -> None:
    dialog = form(f={**STRING, "default": "a", "minLength": 2})
    assert error(dialog, "f") == ""
    assert sent(dialog) is None and "1 more character" in error(dialog, "f")


# ---- secrets ---------------------------------------------------------------------------------------------------------


def test_a_field_that_looks_like_a_secret_is_marked_and_masked(form: Form) -> None:
    dialog = form("password", password={**STRING, "default": "hunter2", "maxLength": 4000}, name=STRING)
    editor = row(dialog, "password").editor
    assert isinstance(editor, LineEditor) and editor.line.echoMode() == QLineEdit.EchoMode.Password
    texts = [label.text() for label in row(dialog, "password").findChildren(type(dialog._header.sentence))]
    assert any(text.startswith("WARNING: this looks like a secret") and "decline" in text for text in texts)
    assert not any("hunter2" in text for text in texts)
    assert "secret" in editor.line.accessibleDescription()
    assert "hunter2" not in editor.line.accessibleDescription() + editor.line.accessibleName()
    other = row(dialog, "name").editor
    assert isinstance(other, LineEditor) and other.line.echoMode() == QLineEdit.EchoMode.Normal
    way(dialog, "password", "Show what is typed")
    assert editor.line.echoMode() == QLineEdit.EchoMode.Normal


@pytest.mark.parametrize("properties", [{}, {"a": STRING}, {"a": {"type": "object"}}])
def test_the_warning_always_stands_there(form: Form, properties: dict[str, Any]) -> None:
    dialog = form(**properties)
    assert dialog._header.warning.isVisible()
    assert dialog._header.warning.text() == "Never give a password, a key or other credentials in a form."


# ---- the keyboard ----------------------------------------------------------------------------------------------------


def test_enter_goes_on_and_never_sends_from_a_line(form: Form) -> None:
    dialog = form(**{f"f{number}": STRING for number in range(30)}, g={"type": "boolean"}, h={"enum": ["x"]})
    for name in [*(f"f{number}" for number in range(30)), "g", "h"]:
        assert dialog.focusWidget() is row(dialog, name).editor.stops[0]
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
        assert not dialog.is_answered
    assert dialog.focusWidget() is dialog._footer.send
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return)
    assert dialog.action == "accept"


def test_ctrl_enter_sends_from_anywhere(form: Form) -> None:
    for schema in (STRING, {**STRING, "maxLength": 900}, {"type": "boolean"}):
        dialog = form(f=schema)
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Return, Qt.KeyboardModifier.ControlModifier)
        assert dialog.action == "accept" and dialog.content == {}


def test_tab_goes_through_all_fields_in_order_and_then_to_the_buttons(form: Form) -> None:
    names = [f"f{number}" for number in range(40)]
    dialog = form(*names, **{name: {"type": "integer"} for name in names})
    while not dialog._view.is_complete:
        settle()
    for name in names:
        assert dialog.focusWidget() is row(dialog, name).editor.stops[0], name
        QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab)
    for button in (dialog._footer.send, dialog._footer.decline, dialog._footer.cancel):
        assert dialog.focusWidget() is button
        QTest.keyClick(button, Qt.Key.Key_Tab)
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Tab, Qt.KeyboardModifier.ShiftModifier)
    assert dialog.focusWidget() is dialog._footer.cancel


def test_one_escape_does_not_throw_a_form_away(form: Form) -> None:
    dialog = form(f=STRING)
    write(dialog, "f", "x")
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert not dialog.is_answered and dialog._footer.hint.isVisible() and "again" in dialog._footer.hint.text()
    QTest.keyClicks(dialog.focusWidget(), "y")
    assert dialog._footer.hint.isHidden()
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert not dialog.is_answered
    dialog._hint_timer.timeout.emit()
    assert dialog._footer.hint.isHidden()
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert dialog.is_answered and dialog.action == "cancel"


def test_escape_leaves_an_untouched_form_at_once(form: Form) -> None:
    dialog = form(f={**STRING, "default": "x"})
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert dialog.is_answered and dialog.action == "cancel"


def test_what_is_wrong_counts_as_filled_in(form: Form) -> None:
    dialog = form(f={"type": "integer"})
    write(dialog, "f", "x")
    QTest.keyClick(dialog.focusWidget(), Qt.Key.Key_Escape)
    assert not dialog.is_answered


def test_who_can_t_see_it_is_told_everything(form: Form) -> None:
    properties: dict[str, Any] = {
        "a": {**STRING, "description": "Of the house."}, "b": {"type": "boolean"}, "c": {"enum": ["x"]}, "d": FRUIT,
        "e": {"enum": MANY}, "f": {**STRING, "maxLength": 900}, "g": {**STRING, "minLength": 2},
    }  # fmt: skip
    dialog = form("a", **properties)
    for name in properties:
        for stop in row(dialog, name).stops():
            assert name.upper() in stop.accessibleName(), (name, stop)
    line = row(dialog, "a").editor.stops[0]
    assert line.accessibleName() == "A, required" and "Of the house." in line.accessibleDescription()
    write(dialog, "g", "x")
    assert "Error: G needs 1 more character" in row(dialog, "g").editor.stops[0].accessibleDescription()
    write(dialog, "g", "xy")
    assert "Error" not in row(dialog, "g").editor.stops[0].accessibleDescription()
    named = [dialog._header.message, dialog._footer.summary, *row(dialog, "g").findChildren(QToolButton)]
    assert all(widget.accessibleName() for widget in named)


# ---- text of servers -------------------------------------------------------------------------------------------------


def texts_of(top: QWidget) -> list[str]:
    """Everything that is shown as text below a widget, tooltips and what a screen reader says included."""
    found = []
    for widget in [top, *top.findChildren(QWidget)]:
        for get in ("text", "toPlainText", "title", "placeholderText", "accessibleName", "accessibleDescription"):
            if hasattr(widget, get):
                found.append(str(getattr(widget, get)()))
    return found


def test_text_of_servers_is_nothing_but_text(show: Show) -> None:
    bad = "<img src='http://evil.test/x'><b>&Send</b>\x1b[2J\u202eabc\x07"
    schema = {
        "type": "object", "title": bad, "description": bad,
        "properties": {
            "a": {"type": "string", "title": bad, "description": bad * 20, "default": "x"},
            "b": {"enum": [bad, "y"], "description": bad}, "c": {"type": "array", "items": {"enum": [bad, "y"]}},
            "d": {"type": "array", "items": {"enum": [bad, *MANY]}}, "e": {"type": "string", "default": bad},
            bad: {"type": "string", "pattern": bad.replace("[", "")},
        },
    }  # fmt: skip
    dialog = show(requested_schema=schema, server=bad, tool=bad)
    editor = row(dialog, "e").editor
    shown = [text for text in [dialog.windowTitle(), *texts_of(dialog)] if isinstance(editor, LineEditor)
             and text != editor.line.text()]  # fmt: skip
    assert not [text for text in shown if any(c in text for c in "\x1b\u202e\x07")]
    assert any("\\u202e" in text for text in shown)
    labels = [label for label in dialog.findChildren(QLabel) if label.objectName() != "qt_spinbox_lineedit"]
    assert labels and all(label.textFormat() == Qt.TextFormat.PlainText for label in labels)
    tips = [widget.toolTip() for widget in dialog.findChildren(QWidget) if widget.toolTip()]
    assert any("&lt;img" in tip for tip in tips) and not any("<img" in tip for tip in tips)
    note = row(dialog, "e").note
    assert note is not None and "\\u202e" in note.text().replace("\u200b", "") and note.isVisible()
    assert sent(dialog) == {"a": "x", "e": bad}


def test_a_text_without_end_is_shown_as_far_as_anybody_reads(show: Show) -> None:
    """A script that is hard to lay out would hold up the program for seconds."""
    dialog = show(GopherAgentElicitationRequest("form", message="\u0e01\u0e34" * 50_000, requested_schema={}))
    shown = dialog._header.message.toPlainText()
    assert shown.endswith("(80000 more characters)") and len(shown) < 20_100


def test_what_a_default_hides_is_told(form: Form) -> None:
    dialog = form(a={**STRING, "default": "pay\u200bpal"}, b={**STRING, "default": "a\u00a0b\tc é"})
    assert row(dialog, "a").note is not None and row(dialog, "b").note is None
    write(dialog, "a", "plain")
    assert row(dialog, "a").note.isHidden()


@pytest.mark.parametrize("default", ["a\x00b", "x" * 40000, "line\nline", "\U0001f600" * 30])
def test_odd_defaults_are_sent_back_unharmed(form: Form, default: str) -> None:
    dialog = form(f={**STRING, "default": default})
    dialog._send()
    assert dialog.answer.content == {"f": default}


def test_a_pasted_text_stays_whole(form: Form) -> None:
    dialog = form(f=STRING, g={**STRING, "maxLength": 3})
    line = row(dialog, "f").editor.stops[0]
    assert isinstance(line, QLineEdit)
    QGuiApplication.clipboard().setText("x" * 50000)
    line.setFocus()
    QTest.keyClick(line, Qt.Key.Key_V, Qt.KeyboardModifier.ControlModifier)
    write(dialog, "g", "abcd")
    assert error(dialog, "g") == "G has 1 character too many (at most 3)."
    write(dialog, "g", "")
    assert sent(dialog) == {"f": "x" * 50000}
