"""Nothing is asked twice: one elicitation id is answered once, by whoever was asked first.

A page that a server asks for on its session's own stream, outside any call (a gateway with a pending sign-in does so
right after the list of tools), and again in a call under another id, is one question, too: until the next run has
ended, an acceptance stands for one such repetition and a refusal for all of them. Otherwise another id is another
question, also with the same URL: the server asks again because the first visit was not enough.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .elicitation import GopherAgentElicitationRequest

__all__ = ["AnsweredOnce", "Key", "Record", "key_of"]

_LOOK_EVERY = 0.05  # seconds
_MOST_REMEMBERED = 1000
_ACCEPT = 1

Answer = tuple[int, "Mapping[str, Any] | None"]


@dataclass(frozen=True)
class Key:
    """What makes two requests the same one."""

    server: str | None
    identity: str
    url: str | None
    mode: str

    def same_page(self, other: Key) -> bool:
        return self.url is not None and (self.server, self.url, self.mode) == (other.server, other.url, other.mode)


def key_of(request: GopherAgentElicitationRequest) -> Key | None:
    """None when the server gave no id, so that nothing can be told; forms have none, whatever a server says."""
    identity = request.elicitation_id if request.mode != "form" else None
    return Key(request.server, identity, request.url, request.mode) if identity else None


class Record:
    """One request's way through: `known` is the answer given before, `decided` the new one, kept when `keep` is set."""

    def __init__(self) -> None:
        self.known: Answer | None = None
        self.decided: Answer = (3, None)
        self.keep = False


@dataclass
class _Question:
    """One that is being asked: where it came from, and the other ids that wait for its answer."""

    outside: bool
    joined: set[Key] = field(default_factory=set)


@dataclass
class _Given:
    """An answer. `run` counts the runs; one that is given between two belongs to the second."""

    answer: Answer
    run: int
    outside: bool
    spare: bool  # may stand for a repetition under another id

    @property
    def accepted(self) -> bool:
        return self.answer[0] == _ACCEPT


class AnsweredOnce:
    """Answers by request. A repeat that comes while the first is being asked waits for that answer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._given: OrderedDict[Key, _Given] = OrderedDict()
        self._asking: dict[Key, _Question] = {}
        self._run = 0

    @contextmanager
    def turn(self, key: Key | None, still_wanted: Callable[[], bool], *, outside: bool = False) -> Iterator[Record]:
        """`outside`: the request belongs to no call."""
        record = Record()
        if key is None:
            yield record
            return
        owner = self._claim(key, record, still_wanted, outside)
        try:
            yield record
        finally:
            if owner:
                self._settle(key, record)

    def begin_run(self) -> None:
        """Forgets what was refused in earlier runs. What was refused since the last one ended holds for this one."""
        with self._changed:
            kept = [(key, given) for key, given in self._given.items() if given.accepted or given.run >= self._run]
            self._given = OrderedDict(kept)

    def end_run(self) -> None:
        with self._changed:
            self._run += 1

    def _claim(self, key: Key, record: Record, still_wanted: Callable[[], bool], outside: bool) -> bool:
        with self._changed:
            while True:
                record.known = self._known(key, outside)
                if record.known is not None:
                    return False
                asked = self._being_asked(key, outside)
                if asked is None:
                    self._asking[key] = _Question(outside)
                    return True
                if not still_wanted():
                    record.known = (3, None)
                    return False
                asked.joined.add(key)
                self._changed.wait(_LOOK_EVERY)

    def _known(self, key: Key, outside: bool) -> Answer | None:
        given = self._given.get(key)
        if given is None:
            given = self._of_the_same_page(key, outside)
            if given is None:
                return None
            given.spare = not given.accepted
            self._given[key] = _Given(given.answer, self._run, outside, given.spare)
        return given.answer

    def _of_the_same_page(self, key: Key, outside: bool) -> _Given | None:
        """The latest answer of this run that may stand for another id."""
        for other, given in reversed(self._given.items()):
            if given.run != self._run:
                return None
            if given.spare and given.outside != outside and other.same_page(key):
                return given
        return None

    def _being_asked(self, key: Key, outside: bool) -> _Question | None:
        same = self._asking.get(key)
        pages = (q for k, q in self._asking.items() if k.same_page(key) and q.outside != outside)
        return same or next(pages, None)

    def _settle(self, key: Key, record: Record) -> None:
        with self._changed:
            question = self._asking.pop(key)
            if record.keep:
                others = question.joined - {key}
                accepted = record.decided[0] == _ACCEPT
                for each in (key, *others):
                    spare = not (accepted and others)
                    self._given[each] = _Given(record.decided, self._run, question.outside, spare)
                while len(self._given) > _MOST_REMEMBERED:
                    self._given.popitem(last=False)
            self._changed.notify_all()
