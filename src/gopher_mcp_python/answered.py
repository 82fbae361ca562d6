"""Nothing is asked twice: one elicitation id is answered once, by whoever was asked first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .elicitation import GopherAgentElicitationRequest

__all__ = ["AnsweredOnce", "Record", "key_of"]

_LOOK_EVERY = 0.05  # seconds
_MOST_REMEMBERED = 1000
_ACCEPT = 1

Answer = tuple[int, "Mapping[str, Any] | None"]
Key = tuple["str | None", str, "str | None", str]


def key_of(request: GopherAgentElicitationRequest) -> Key | None:
    """What makes two requests the same one; None when the server gave no id, so that nothing can be told."""
    identity = request.elicitation_id
    return (request.server, identity, request.url, request.mode) if identity else None


class Record:
    """One request's way through: `known` is the answer given before, `decided` the new one, kept when `keep` is set."""

    def __init__(self) -> None:
        self.known: Answer | None = None
        self.decided: Answer = (3, None)
        self.keep = False


class AnsweredOnce:
    """Answers by request. A repeat that comes while the first is being asked waits for that answer."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._answers: OrderedDict[Key, Answer] = OrderedDict()
        self._asking: set[Key] = set()

    @contextmanager
    def turn(self, key: Key | None, still_wanted: Callable[[], bool]) -> Iterator[Record]:
        record = Record()
        if key is None:
            yield record
            return
        owner = self._claim(key, record, still_wanted)
        try:
            yield record
        finally:
            if owner:
                self._settle(key, record)

    def forget_refusals(self) -> None:
        with self._changed:
            accepted = [(key, answer) for key, answer in self._answers.items() if answer[0] == _ACCEPT]
            self._answers = OrderedDict(accepted)

    def _claim(self, key: Key, record: Record, still_wanted: Callable[[], bool]) -> bool:
        with self._changed:
            while key in self._asking and key not in self._answers:
                if not still_wanted():
                    record.known = (3, None)
                    return False
                self._changed.wait(_LOOK_EVERY)
            record.known = self._answers.get(key)
            if record.known is not None:
                return False
            self._asking.add(key)
            return True

    def _settle(self, key: Key, record: Record) -> None:
        with self._changed:
            self._asking.discard(key)
            if record.keep:
                self._answers[key] = record.decided
                while len(self._answers) > _MOST_REMEMBERED:
                    self._answers.popitem(last=False)
            self._changed.notify_all()
