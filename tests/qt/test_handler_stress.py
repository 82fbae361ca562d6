"""Many requests of many threads at once, answered in random order, withdrawn and timed out in between."""

from __future__ import annotations

import random
import threading
import time
from typing import Any

import pytest
from PySide6.QtTest import QTest

from gopher_mcp_python.handlers.prompts import PersonAnswer
from gopher_mcp_python.handlers.qt import QtPrompt
from gopher_mcp_python.handlers.watch import Watch, deadline_after
from tests.support import desk
from tests.support.desk import Asking, form

pytestmark = pytest.mark.usefixtures("warm_qt", "desktop")
THREADS, EACH = 20, 10
# What becomes of a request: what the person does, who else ends it, or both at about the same time.
FATES = ("send", "send", "decline", "close", "withdrawn", "timeout", "send or timeout", "decline or withdrawn")
SCHEMA = {"type": "object", "properties": {"number": {"type": "string", "title": "Name"}}, "required": ["number"]}


class Request:
    """One request, its fate, and every answer that came to it."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.message = f"request {number}"
        self.number = str(number)
        self.fate = chance.choice(FATES)
        self.answers: list[PersonAnswer] = []
        self._delay = chance.uniform(0.0, 0.15)
        self._gone = float("inf")

    def ask(self) -> None:
        self._gone = time.monotonic() + self._delay if "withdrawn" in self.fate else float("inf")
        limit = max(1, round(self._delay * 1000)) if "timeout" in self.fate else None
        watch = Watch(is_open=lambda: time.monotonic() < self._gone, deadline=deadline_after(limit), limit_ms=limit)
        self.answers.append(QtPrompt(any_platform=True).ask(form(self.message, SCHEMA), watch))

    def answered_by(self, dialog: Any) -> None:
        """The person's part."""
        if "send" in self.fate:
            desk.send_name(dialog, self.number)
        elif "decline" in self.fate:
            desk.press(dialog, "Decline")
        elif self.fate == "close":
            dialog.close()

    @property
    def expected(self) -> list[PersonAnswer]:
        sent, declined, cancelled = (
            PersonAnswer("accept", {"number": self.number}), PersonAnswer("decline"), PersonAnswer("cancel"),
        )  # fmt: skip
        return {
            "send": [sent],
            "decline": [declined],
            "send or timeout": [sent, cancelled],
            "decline or withdrawn": [declined, cancelled],
        }.get(self.fate, [cancelled])


def test_each_is_answered_once_and_by_its_own_answer() -> None:
    seed = random.randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    requests = [Request(number, chance) for number in range(THREADS * EACH)]
    by_message = {request.message: request for request in requests}
    before = threading.active_count()
    most = 0

    def several(first: int) -> None:
        for request in requests[first::THREADS]:
            request.ask()

    threads = [Asking(several, number) for number in range(THREADS)]
    end = time.monotonic() + 120
    while any(thread.is_alive() for thread in threads):
        assert time.monotonic() < end, [request.fate for request in requests if not request.answers]
        QTest.qWait(1)
        open_ = desk.prompts()
        most = max(most, len(open_))
        if open_:
            one = chance.choice(open_)
            by_message[desk.message_of(one)].answered_by(one)
    for thread in threads:
        thread.outcome()
    assert [request.message for request in requests if len(request.answers) != 1] == []
    assert [request.message for request in requests if request.answers[0] not in request.expected] == []
    assert most > 1
    assert threading.active_count() == before
    desk.wait_until(desk.nothing_left)
