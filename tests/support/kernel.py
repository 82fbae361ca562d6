"""A real Jupyter kernel, and the person in front of its frontend: cells are executed, questions below them answered.

kernel = Kernel(folder)
cell = kernel.begin("name = input('Who? ')")
cell.answer("Ada", to="Who?")
cell.end()
kernel.close()
"""

from __future__ import annotations

import html
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any

from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from tests.support import children

_WAIT = 60.0  # seconds for anything to happen: an answer that does not come is a failure, whatever the machine's load


class Kernel:
    """A kernel process and one frontend. `folder`: where it may keep files."""

    def __init__(self, folder: Path, *, kernel_name: str = "python3") -> None:
        self.manager = KernelManager(kernel_name=kernel_name, connection_file=str(folder / "connection.json"))
        self.manager.start_kernel(env=kernel_environment(folder), cwd=str(children.ROOT), stderr=subprocess.DEVNULL)
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=_WAIT)
        self._cells: dict[str, Cell] = {}

    @property
    def is_busy(self) -> bool:
        """Whether a test has left a cell that is not over."""
        return any(not cell.is_over for cell in self._cells.values())

    @contextmanager
    def other_frontend(self, *, stdin: bool) -> Iterator[None]:
        """Cells are executed by another frontend meanwhile, which may have no channel for input."""
        before, self.client = self.client, BlockingKernelClient(connection_file=self.manager.connection_file)
        try:
            self.client.load_connection_file()
            self.client.start_channels(stdin=stdin)
            self.client.wait_for_ready(timeout=_WAIT)
            yield
        finally:
            self.client.stop_channels()
            self.client = before

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def begin(self, code: str, *, allow_stdin: bool = True, subshell: str | None = None) -> Cell:
        """Executes a cell and does not wait for it."""
        content = {
            "code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": allow_stdin,
            "stop_on_error": False,
        }  # fmt: skip
        message = self.client.session.msg("execute_request", content)
        if subshell is not None:
            message["header"]["subshell_id"] = subshell
        self.client.shell_channel.send(message)
        identity = message["header"]["msg_id"]
        cell = self._cells[identity] = Cell(self, identity)
        return cell

    def look(self, seconds: float) -> None:
        """Gives cells what has come for them; waits so long for the first of it."""
        try:
            while True:
                message = self.client.get_iopub_msg(timeout=seconds)
                cell = self._cells.get(message["parent_header"].get("msg_id"))
                if cell is not None:
                    cell.take(message)
        except Empty:
            return

    def run(self, code: str, *answers: str, **options: Any) -> Cell:
        """Executes a cell, answers its questions in turn, and waits for its end, which must be a good one."""
        cell = self.begin(code, **options)
        for answer in answers:
            cell.answer(answer)
        return cell.end()

    def subshell(self) -> str:
        """Makes a second place where cells are executed at the same time. Returns its id."""
        message = self.client.session.msg("create_subshell_request", {})
        self.client.control_channel.send(message)
        reply = self.client.control_channel.get_msg(timeout=_WAIT)
        return str(reply["content"]["subshell_id"])

    def next_question(self) -> dict[str, Any] | None:
        """What has come on the stdin channel; not what cells had asked that are over."""
        try:
            message: dict[str, Any] = self.client.get_stdin_msg(timeout=0.05)
        except Empty:
            return None
        cell = self._cells.get(message["parent_header"].get("msg_id"))
        assert cell is not None and message["msg_type"] == "input_request"
        return None if cell.is_over else message

    def wait_for_its_end(self) -> None:
        process: Any = self.manager.provisioner
        process.process.wait(_WAIT)

    def close(self) -> None:
        self.client.stop_channels()
        self.manager.shutdown_kernel(now=True)
        self.manager.cleanup_resources()
        if self.manager._created_context:
            self.manager.context.destroy(linger=0)


class Cell:
    """A cell's execution, as its frontend sees it.

    Attributes:
        outputs: what it displays, by display id where it has one, else in order: MIME bundles.
        streams: its standard output and standard error, together.
        asked: the questions (`input_request`), whole messages.
        is_over: whether it has ended, as far as was looked.
    """

    def __init__(self, kernel: Kernel, identity: str) -> None:
        self.identity = identity
        self.outputs: dict[str, dict[str, str]] = {}
        self.streams = ""
        self.asked: list[dict[str, Any]] = []
        self.error: str | None = None
        self._kernel = kernel
        self.is_over = False

    @property
    def text(self) -> str:
        """What is displayed now, as plain text."""
        return "\n".join(bundle.get("text/plain", "") for bundle in self.outputs.values())

    @property
    def html(self) -> str:
        return "\n".join(bundle.get("text/html", "") for bundle in self.outputs.values())

    @property
    def html_text(self) -> str:
        """What the HTML shows, without its elements."""
        return html.unescape(re.sub(r"<[^>]*>", "", self.html))

    def question(self) -> dict[str, Any]:
        """The next question; what was displayed before it is here, too."""
        end = time.monotonic() + _WAIT
        while True:
            message = self._kernel.next_question()
            if message is not None and message["parent_header"].get("msg_id") == self.identity:
                break
            self._kernel.look(0.01)
            assert not self.is_over, f"the cell ended without a question: {self.error}\n{self.streams}{self.text}"
            assert time.monotonic() < end, f"no question; {self.streams}{self.text}"
        self.asked.append(message)
        return message

    def answer(self, value: str, *, to: str = "", hidden: bool = False, named: bool = True) -> dict[str, Any]:
        """Answers the next question, whose prompt has `to` in it. `named`: saying which question is meant."""
        asked = self.question()
        assert to in asked["content"]["prompt"], f"{to!r} is not in {asked['content']['prompt']!r}"
        assert asked["content"]["password"] is hidden
        self.reply(value, asked if named else None)
        return asked

    def reply(self, value: str, asked: dict[str, Any] | None) -> None:
        """An answer to that question, whether or not anybody waits for it; None: to none in particular."""
        session = self._kernel.client.session
        message = session.msg("input_reply", {"value": value, "status": "ok"}, parent=asked)
        self._kernel.client.stdin_channel.send(message)

    def shows(self, text: str) -> Cell:
        """Waits until it displays or prints that."""
        end = time.monotonic() + _WAIT
        while text not in self.text + self.streams:
            assert not self.is_over, f"ended without {text!r}: {self.error}\n{self.streams}{self.text}"
            assert time.monotonic() < end, f"{text!r} is not shown: {self.streams}{self.text}"
            self._kernel.look(0.1)
        return self

    def end(self, *, error: str | None = None) -> Cell:
        """Waits for its end, with an error of that kind or none."""
        end = time.monotonic() + _WAIT
        while not self.is_over:
            assert time.monotonic() < end, f"the cell does not end; {self.streams}{self.text}"
            self._kernel.look(0.1)
        assert (self.error or "").split(":")[0] == (error or ""), f"{self.error}\n{self.streams}"
        return self

    def take(self, message: dict[str, Any]) -> None:
        """A message for it from the kernel."""
        kind, content = message["msg_type"], message["content"]
        if kind in ("display_data", "update_display_data"):
            place = content.get("transient", {}).get("display_id") or f"output {len(self.outputs)}"
            assert kind == "display_data" or place in self.outputs, "an update of what was never shown"
            self.outputs[place] = content["data"]
        elif kind == "stream":
            self.streams += content["text"]
        elif kind == "error":
            self.error = f"{content['ename']}: {content['evalue']}"
        elif kind == "status" and content["execution_state"] == "idle":
            self.is_over = True


def kernel_environment(folder: Path) -> dict[str, str]:
    """An environment for a kernel that keeps its files in a folder of the test's."""
    places = ("HOME", "IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR")
    more = {"JUPYTER_PLATFORM_DIRS": "1", "PYDEVD_DISABLE_FILE_VALIDATION": "1", "GOPHER_MCP_ENGINE": "embedded"}
    return children.environment({**dict.fromkeys(places, str(folder)), **more})
