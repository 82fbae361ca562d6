"""The Jupyter kernel that this process is: which of its cells asks, and what that cell's frontend can do.

Nothing is imported here that the kernel has not imported itself.
"""

from __future__ import annotations

import builtins
import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import Context, copy_context
from typing import Any, TypeVar

__all__ = ["Cell", "cell_that_asks"]

_T = TypeVar("_T")


class _Cells:
    """The cells that are being executed, as IPython's events tell: there can be several, in subshells."""

    def __init__(self, shell: Any) -> None:
        self.shell = shell
        self._kernel = shell.kernel
        self._depth: dict[str, int] = {}  # by the id of the request: cells can execute cells
        self._lock = threading.Lock()
        if getattr(builtins.input, "__self__", None) is self._kernel:  # one is being executed, which is the last one
            self._depth[_id_of(Context().run(_parent, self._kernel))] = 1
        shell.events.register("pre_execute", self._begun)
        shell.events.register("post_execute", self._over)

    def __contains__(self, identity: str) -> bool:
        return identity in self._depth

    def _begun(self) -> None:
        identity = _id_of(_parent(self._kernel))
        with self._lock:
            self._depth[identity] = self._depth.get(identity, 0) + 1

    def _over(self) -> None:
        identity = _id_of(_parent(self._kernel))
        with self._lock:
            if self._depth.get(identity, 0) > 1:
                self._depth[identity] -= 1
            else:
                self._depth.pop(identity, None)


def _nothing() -> None:
    pass


_known: _Cells | None = None
_making = threading.Lock()


def _cells_of(shell: Any) -> _Cells:
    global _known
    with _making:
        if _known is None or _known.shell is not shell:
            _known = _Cells(shell)
        return _known


def _parent(kernel: Any) -> dict[str, Any]:
    """The request that is being executed: that of this context, else the last one."""
    parent: dict[str, Any] = kernel.get_parent("shell")
    return parent


def _id_of(parent: dict[str, Any]) -> str:
    return str(parent.get("header", {}).get("msg_id", ""))


def cell_that_asks() -> Cell | str:
    """The cell in whose output this thread can ask a person, or the reason why there is none, as a phrase."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    shell: Any = get_ipython() if get_ipython is not None else None
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return "this process is no notebook's kernel"
    zmq, session = sys.modules.get("zmq"), getattr(kernel, "session", None)
    if zmq is None or session is None or not isinstance(getattr(kernel, "stdin_socket", None), zmq.Socket):
        return "this notebook's kernel has no input channel"
    if getattr(session, "pid", os.getpid()) != os.getpid():
        return "this process is a copy of a notebook's kernel, and not connected to its frontend"
    if hasattr(shell.display_pub, "outputs"):  # IPython's publisher that keeps what it is given, under %%capture
        return "what this cell displays is captured"
    return _running_cell(shell, _cells_of(shell))


def _running_cell(shell: Any, cells: _Cells) -> Cell | str:
    """What a thread inherited may be an earlier cell (the one that opened a session): then the last one asks."""
    for context in (copy_context(), Context()):
        parent = context.run(_parent, shell.kernel)
        if _id_of(parent) in cells:
            if parent.get("content", {}).get("allow_stdin"):
                return Cell(shell, cells, context, parent)
            return "the frontend that executes this cell takes no input (allow_stdin is off)"
    return "no cell is being executed that could show a question"


class Cell:
    """A cell that is being executed, and its frontend."""

    def __init__(self, shell: Any, cells: _Cells, context: Context, parent: dict[str, Any]) -> None:
        self._cells = cells
        self._context = context
        self._parent = parent
        self._shell = shell
        self.kernel = shell.kernel
        self.identity = _id_of(parent)
        self.frontend: list[bytes] = list(self._run(lambda: self.kernel._parent_ident["shell"]))

    @property
    def is_running(self) -> bool:
        return self.identity in self._cells

    def let_interrupt(self) -> None:
        """Wakes the kernel's event loop: while a cell awaits, it takes note of an interrupt only when something else
        happens (as of ipykernel 7.4)."""
        if threading.current_thread() is not threading.main_thread():
            with suppress(Exception):  # the loop has ended
                self.kernel.io_loop.add_callback(_nothing)

    def display(self, bundle: dict[str, str], display_id: str, *, update: bool = False) -> bool:
        """Shows the same in several formats (by MIME type) in the cell's output. Whether that could be sent."""
        try:
            transient = {"display_id": display_id}
            self._run(lambda: self._shell.display_pub.publish(bundle, {}, transient=transient, update=update))
        except Exception:  # whatever a kernel that ends, or a hook of the program's, does
            return False
        return True

    def send(self, socket: Any, kind: str, content: dict[str, Any]) -> Any:
        """Sends a message that belongs to this cell to its frontend. Returns the message."""
        return self.kernel.session.send(socket, kind, content, self._parent, ident=self.frontend)

    def _run(self, function: Callable[[], _T]) -> _T:
        """In the context in which the kernel finds this cell. One that is being entered already is copied."""
        return self._context.copy().run(function)
