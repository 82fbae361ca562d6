"""One page, two elicitation ids: when a question that came outside any call stands for its repetition in a call."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from gopher_mcp_python.elicitation import GopherAgentElicitationOptions, GopherAgentElicitationRequest
from gopher_mcp_python.elicitor import Elicitor

PAGE = "https://gateway.example.test/connect?state=1"
ACCEPT, DECLINE, CANCEL = 1, 2, 3


class Asked:
    """A pending request whose server we are; `outside_call` as the embedded engine sets it."""

    def __init__(self, identity: str, url: str = PAGE, *, outside: bool = False, server: str | None = None) -> None:
        self.request = GopherAgentElicitationRequest("url", identity, "", url, server=server)
        self.outside_call = outside
        self.given: list[int | str] = []

    def answer(self, action: int | str, content: Any = None) -> bool:
        self.given.append(action)
        return len(self.given) == 1

    def is_open(self) -> bool:
        return not self.given

    def remaining_ms(self) -> int | None:
        return None


class Person:
    """Answers as told, one answer after another, and counts."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = answers, 0
        self.elicitor = Elicitor(GopherAgentElicitationOptions(self))
        self.before = lambda: None

    def __call__(self, request: Any) -> str:
        self.asked += 1
        self.before()
        return self.answers[min(self.asked, len(self.answers)) - 1]

    def put(self, *asked: Asked) -> list[int | str]:
        for one in asked:
            self.elicitor.answer(one)
        return [one.given[0] for one in asked]


def test_an_acceptance_before_the_run_stands_for_one_other_id() -> None:
    person = Person("accept", "decline")
    assert person.put(Asked("stream")) == [ACCEPT]
    with person.elicitor.during_run():
        assert person.put(Asked("call")) == [ACCEPT] and person.asked == 1
        assert person.put(Asked("call")) == [ACCEPT] and person.asked == 1, "its repetition is known by its id"
        assert person.put(Asked("again")) == [DECLINE] and person.asked == 2, "the first visit was not enough"


@pytest.mark.parametrize(("answer", "code"), [("decline", DECLINE), ("cancel", CANCEL)])
def test_a_refusal_before_the_run_stands_for_all_of_the_run(answer: str, code: int) -> None:
    person = Person(answer, "accept")
    person.put(Asked("stream"))
    with person.elicitor.during_run():
        assert person.put(Asked("stream"), Asked("a"), Asked("b")) == [code] * 3
    assert person.asked == 1
    with person.elicitor.during_run():
        assert person.put(Asked("a")) == [ACCEPT]
    assert person.asked == 2


def test_what_was_refused_between_two_runs_holds_for_the_second() -> None:
    person = Person("accept", "decline", "accept")
    with person.elicitor.during_run():
        person.put(Asked("first", "https://other.example.test/"))
    person.put(Asked("stream"))
    with person.elicitor.during_run():
        assert person.put(Asked("call")) == [DECLINE]
    assert person.asked == 2


def test_an_acceptance_of_an_earlier_run_stands_for_no_other_id() -> None:
    person = Person("accept")
    person.put(Asked("stream"))
    with person.elicitor.during_run():
        pass
    with person.elicitor.during_run():
        person.put(Asked("stream"))
        assert person.asked == 1
        person.put(Asked("call"))
    assert person.asked == 2


def test_two_questions_of_calls_are_two_whatever_their_page() -> None:
    person = Person("accept")
    with person.elicitor.during_run():
        person.put(Asked("a"), Asked("b"))
    assert person.asked == 2


@pytest.mark.parametrize("stream_first", [True, False])
def test_within_a_run_the_engine_says_what_belongs_to_no_call(stream_first: bool) -> None:
    person = Person("accept")
    both = [Asked("stream", outside=True), Asked("call")]
    with person.elicitor.during_run():
        assert person.put(*(both if stream_first else reversed(both))) == [ACCEPT, ACCEPT]
    assert person.asked == 1


def test_another_page_or_server_is_another_question() -> None:
    person = Person("accept")
    person.put(Asked("stream", server="one"))
    with person.elicitor.during_run():
        person.put(Asked("a", PAGE + "2", server="one"), Asked("b", server="two"))
    assert person.asked == 3


def test_the_same_page_asked_meanwhile_waits_for_the_first_answer() -> None:
    person, first, second = Person("accept"), Asked("stream", outside=True), Asked("call")
    asking, waiting = threading.Event(), threading.Event()

    def before() -> None:
        asking.set()
        assert waiting.wait(10)

    person.before = before
    joined = second.is_open

    def is_open() -> bool:
        waiting.set()  # the second has found the first one being asked
        return joined()

    second.is_open = is_open  # type: ignore[method-assign]
    with person.elicitor.during_run():
        helper = threading.Thread(target=person.put, args=(first,))
        helper.start()
        assert asking.wait(10)
        assert person.put(second) == [ACCEPT]
        helper.join(10)
        assert person.asked == 1 and first.given == [ACCEPT]
        person.before = lambda: None
        person.put(Asked("third"))
    assert person.asked == 2, "the one visit stood for two questions already"


def test_who_waits_for_the_first_answer_goes_when_nobody_wants_it_any_more() -> None:
    person, first, second = Person("accept"), Asked("stream", outside=True), Asked("call")
    asking, over = threading.Event(), threading.Event()

    def before() -> None:
        asking.set()
        assert over.wait(10)

    person.before = before
    second.is_open = lambda: False  # type: ignore[method-assign]
    with person.elicitor.during_run():
        helper = threading.Thread(target=person.put, args=(first,))
        helper.start()
        assert asking.wait(10)
        assert person.put(second) == [CANCEL], "while the first is still being asked"
        assert first.given == []
        over.set()
        helper.join(10)
    assert person.asked == 1 and first.given == [ACCEPT]
