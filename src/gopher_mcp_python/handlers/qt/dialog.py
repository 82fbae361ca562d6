"""The window that answers what an MCP server asks of a person: a form to fill in, or a page to open.

Three answers exist, and they are not interchangeable: accept gives the values, decline says no while the call goes on,
cancel leaves without an answer. Closing the window is a cancel, never consent.

    dialog = McpElicitationDialog("files.example.com", params)
    dialog.answered.connect(lambda action: send(dialog.to_result()))
    dialog.show()
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Union

from PySide6.QtCore import QEvent, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QCloseEvent, QKeyEvent, QKeySequence, QShortcut, QShowEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QDialog,
    QLineEdit,
    QPushButton,
    QRadioButton,
    QVBoxLayout,
    QWidget,
)

from ...forms import FormContentError
from ..dialogue import duration
from ..prompts import CANCELLED, DECLINED, PersonAnswer
from .asked import Asked
from .bodies import body_of
from .form_view import FormView, ScrollBody
from .frame import Footer, Header
from .problems import Problems
from .style import retone
from .url_view import Opener
from .window_guard import WindowGuard, check_thread

__all__ = ["ElicitValue", "McpElicitationDialog"]

#: What one answered field may carry, as the protocol's content has it.
ElicitValue = Union[str, int, float, bool, list[str], None]
_HINT_FOR = 6000  # milliseconds in which a second Esc counts
_ESCAPE_HINT = "Press Esc again to cancel; what you filled in is lost then."
_COLUMNS = 88  # average characters of a window's width
_NOTHING = frozenset((Qt.Key.Key_Return, Qt.Key.Key_Enter))


class McpElicitationDialog(QDialog):
    """Asks a person what one MCP server wants to know.

    `answered` is emitted once, with "accept", "decline" or "cancel". Show the dialog with `show()`; nothing has to wait
    for it. All texts of the server are shown as plain text.
    """

    answered = Signal(str)

    def __init__(
        self,
        server_id: str,
        params: Any,
        parent: QWidget | None = None,
        *,
        tool: str | None = None,
        lasting: Sequence[Literal["session", "always"]] = (),
        opener: Opener | None = None,
    ) -> None:
        """
        Args:
            server_id: the server that asks.
            params: the MCP SDK's ElicitRequestFormParams or ElicitRequestURLParams (1.x or 2.x), or a
                GopherAgentElicitationRequest.
            parent: the window that it belongs to.
            tool: the tool in whose call it is asked.
            lasting: how long "decline everything from this server" can be chosen for; empty: it is not offered.
            opener: opens a page in place of the browser, on this thread; returns whether it worked.

        Raises:
            TypeError: `params` is neither.
            RuntimeError: there is no QApplication, or this is not its thread.
        """
        check_thread()
        super().__init__(parent)
        self._asked = Asked.of(server_id, params, tool)
        self._answer: PersonAnswer | None = None
        self._problems: Problems | None = None  # those of the last time that somebody wanted to send
        body = body_of(self._asked, opener)
        self._model, self._view = body.model, body.view
        self.setModal(False)
        self.setAttribute(Qt.WidgetAttribute.WA_QuitOnClose, False)  # an answer does not end the program
        self.setSizeGripEnabled(True)
        self.setWindowTitle(f"Request from {self._asked.asker}")
        self._hint_timer = QTimer(self, singleShot=True, interval=_HINT_FOR)
        self._hint_timer.timeout.connect(self._forget_escape)
        self._header = Header(body.sentence, body.texts, is_url=self.is_url_request, screen=self.screen())
        self._footer = Footer(body.send)
        if lasting:
            self._footer.offer_decline_all(self._asked.asker, lasting)
        self._guard = WindowGuard(self)
        self._connect()
        column = QVBoxLayout(self)
        column.addWidget(self._header)
        column.addWidget(body.widget, 1)
        column.addWidget(self._footer)
        self._lay_out(column, body.widget)

    # ---- the answer ------------------------------------------------------------------------------------------------

    @property
    def action(self) -> str:
        """"accept", "decline" or "cancel"; "cancel" while there is no answer."""
        return self.answer.action

    @property
    def content(self) -> dict[str, ElicitValue]:
        """What the person gave; empty unless a form was accepted."""
        return dict(self.answer.content or {})

    @property
    def is_url_request(self) -> bool:
        """Whether the server asks to open a page."""
        return self._asked.is_url

    @property
    def answer(self) -> PersonAnswer:
        """The answer with all that the person chose; a cancel while there is none."""
        return self._answer or CANCELLED

    @property
    def is_answered(self) -> bool:
        """Whether there is an answer already."""
        return self._answer is not None

    def to_result(self) -> Any:
        """The answer as an `ElicitResult` of the SDK that the parameters are of. There is content only when a form was
        accepted: what a person does on a page stays there."""
        return self._asked.result(self.action, self.answer.content if self.action == "accept" else None)

    def withdraw(self, why: Literal["withdrawn", "timeout", "finished"]) -> None:
        """Closes the window because no answer is wanted any more: a cancel, unless there is an answer already. A page
        that the server calls "finished" is accepted."""
        self._finish(PersonAnswer("accept") if why == "finished" and self.is_url_request else CANCELLED)

    def hold_input(self) -> None:
        """For half a second clicks do nothing here, and neither do keys unless somebody is typing here: what was meant
        for a window that has just gone must not answer this one. It is so, too, when the window comes up."""
        self._guard.hold(keys=not self.isActiveWindow())

    def set_time_left(self, seconds: float | None) -> None:
        """Shows how long an answer will be taken (seconds); None: no limit."""
        self._footer.show_time("" if seconds is None else f"Time left: {duration(max(0.0, seconds))}.")

    def _finish(self, answer: PersonAnswer) -> None:
        """The one way to an answer."""
        if self._answer is not None:
            return
        self._answer = answer
        self._hint_timer.stop()
        if self._view is not None:
            self._view.stop()
        self._close_popup()
        accepted = QDialog.DialogCode.Accepted if answer.action == "accept" else QDialog.DialogCode.Rejected
        super().done(accepted.value)
        self.answered.emit(answer.action)

    def _close_popup(self) -> None:
        """A menu or a list of ours that stands open would outlive the window."""
        popup = above = QApplication.activePopupWidget()
        while above is not None and above is not self:
            above = above.parentWidget()
        if popup is not None and above is self:
            popup.close()

    # ---- how it is made --------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Bound methods only, which Qt holds weakly: a dialog that nobody holds is gone."""
        for keys in ("Ctrl+Return", "Ctrl+Enter"):
            shortcut = QShortcut(QKeySequence(keys), self)
            shortcut.setAutoRepeat(False)  # a key held down since another window
            shortcut.activated.connect(self._send)
        if self._footer.send is not None:
            self._footer.send.setToolTip("Ctrl+Enter")
            self._footer.send.clicked.connect(self._send)
        self._footer.decline.clicked.connect(self._decline)
        self._footer.cancel.clicked.connect(self._cancel)
        self._footer.declined_all.connect(self._decline_all)
        if isinstance(self._view, FormView):
            self._view.changed.connect(self._form_changed)
        app, parent = QApplication.instance(), self.parentWidget()
        if app is not None:
            app.aboutToQuit.connect(self._end)
        if parent is not None:
            parent.destroyed.connect(self._end)

    def _lay_out(self, column: QVBoxLayout, body: QWidget) -> None:
        retone(self)
        room = self.screen().availableGeometry().size()
        width = min(self.fontMetrics().averageCharWidth() * _COLUMNS, int(room.width() * 0.95))
        margins = column.contentsMargins()
        inner = width - margins.left() - margins.right()
        rest = column.totalHeightForWidth(width) - body.sizeHint().height()
        wanted = rest + (body.height_at(inner) if isinstance(body, ScrollBody) else body.sizeHint().height())
        self.resize(width, min(max(wanted, 200), int(room.height() * 0.88)))
        if self._view is not None:
            self._view.begin()
        else:  # where a key that was on its way does nothing
            self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
            (self._header.message or self).setFocus()

    @Slot()
    def _end(self) -> None:
        """Nobody can answer any more: the application ends, or the window goes with its parent."""
        self._finish(CANCELLED)

    # ---- what a person does ----------------------------------------------------------------------------------------

    def _decline(self) -> None:
        self._finish(DECLINED)

    def _cancel(self) -> None:
        self._finish(CANCELLED)

    def _decline_all(self, how_long: Literal["session", "always"]) -> None:
        self._finish(PersonAnswer("decline", whole_server=how_long))

    def _send(self) -> None:
        if self._footer.send is None:
            return
        if self._model is None:
            self._finish(PersonAnswer("accept"))
            return
        try:
            answer = PersonAnswer("accept", self._model.content())
        except FormContentError:
            self._problems = Problems(self._model, self._view, self._footer)
        else:
            self._finish(answer)

    def _form_changed(self) -> None:
        self._forget_escape()
        if self._problems is not None:
            self._problems.look_again()

    def _forget_escape(self) -> None:
        self._hint_timer.stop()
        self._footer.show_hint("")

    def _escape(self) -> None:
        """One Esc does not throw away what somebody filled in; a second one, while the hint is there, does."""
        if self._model is None or not self._model.changed or not self._footer.hint.isHidden():
            self._finish(CANCELLED)
            return
        self._footer.show_hint(_ESCAPE_HINT)
        self._hint_timer.start()

    def _go_on(self) -> None:
        """Enter: on a button it presses it, in a line it goes to the next field, and it never sends from there."""
        focus = self.focusWidget()
        if isinstance(focus, QPushButton):
            focus.click()
        elif isinstance(focus, (QLineEdit, QComboBox, QRadioButton)) and isinstance(self._view, FormView):
            following = self._view.next_stop(focus) or self._footer.send
            if following is not None:
                following.setFocus(Qt.FocusReason.TabFocusReason)
                self._view.ensureWidgetVisible(following, 0, 40)

    # ---- what Qt tells ---------------------------------------------------------------------------------------------

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Esc asks once more before it cancels; Enter answers nothing by mistake."""
        if event.matches(QKeySequence.StandardKey.Cancel):
            if not event.isAutoRepeat():  # one Esc that is held down is one
                self._escape()
        elif event.key() in _NOTHING:
            if not event.isAutoRepeat():
                self._go_on()
        else:
            super().keyPressEvent(event)

    def closeEvent(self, event: QCloseEvent) -> None:
        """Closing the window is a cancel, whatever was filled in."""
        self._finish(CANCELLED)
        event.accept()

    def done(self, result: int) -> None:
        """Whatever ends the dialog from outside is a cancel, never consent."""
        if self._answer is None:
            self._finish(CANCELLED)
        else:
            super().done(result)

    def showEvent(self, event: QShowEvent) -> None:
        """From now on it counts as seen."""
        super().showEvent(event)
        if not event.spontaneous():
            self._guard.begin()
        if isinstance(self._view, FormView):
            self._view.make_the_rest()

    def setVisible(self, visible: bool) -> None:
        """Shown or hidden, as Qt says."""
        super().setVisible(visible)
        if visible:
            self._guard.unlock()  # as of now; later it is told

    def changeEvent(self, event: QEvent) -> None:
        """It stays enabled, and looks as the palette says."""
        super().changeEvent(event)
        if event.type() == QEvent.Type.EnabledChange:
            self._stay_enabled()
        if event.type() in (QEvent.Type.PaletteChange, QEvent.Type.ApplicationPaletteChange):
            retone(self)

    def _stay_enabled(self) -> None:
        """A program that disables its window while it works still waits for this answer."""
        if not self.isEnabled() and not self.testAttribute(Qt.WidgetAttribute.WA_ForceDisabled):
            self.setEnabled(True)
