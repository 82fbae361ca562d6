"""What a policy remembers: of this session in memory, for ever in a file; dropped when the server becomes another."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from .asked import Asked
from .decisions import Lasting, Remembered, Verdict

if TYPE_CHECKING:
    from .store import DecisionFile

__all__ = ["MAX_REMEMBERED", "Memory", "decision_of"]

MAX_REMEMBERED = 2000  # decisions of a session; the oldest goes when there are more
_log = logging.getLogger("gopher_mcp_python.elicitation")


class Memory:
    """Any thread may use it. `store`: see DecisionFile; None: nothing outlives the process."""

    def __init__(self, store: Any) -> None:
        self._lock = threading.Lock()
        self._session: dict[tuple[object, ...], Remembered] = {}
        self.file: DecisionFile | None = None
        if store is not None and store is not False:
            from .store import DecisionFile

            self.file = DecisionFile(store)

    def all(self) -> list[Remembered]:
        """Everything that is remembered. Raises PolicyStoreError."""
        stored = [] if self.file is None else self.file.read()
        with self._lock:
            return list({**{one.key: one for one in stored}, **self._session}.values())

    def add(self, decision: Remembered, lasts: Lasting) -> None:
        """Remembers it instead of what was decided on the same thing. Raises PolicyStoreError."""
        if lasts == "always" and self.file is not None:
            self.file.change(lambda known: [*(one for one in known if one.key != decision.key), decision])
            with self._lock:
                self._session.pop(decision.key, None)
            return
        with self._lock:
            self._session.pop(decision.key, None)
            self._session[decision.key] = decision
            while len(self._session) > MAX_REMEMBERED:
                del self._session[next(iter(self._session))]

    def drop_stale(self, known: list[Remembered], asked: Asked) -> None:
        """Forgets what was decided on a server of this name that was another one. It holds no more even where the file
        can't be written now."""
        if not any(one.is_stale(asked) for one in known):
            return
        with self._lock:
            self._session = {key: one for key, one in self._session.items() if not one.is_stale(asked)}
        if self.file is not None:
            with suppress(Exception):
                self.file.change(lambda stored: [one for one in stored if not one.is_stale(asked)])
        with suppress(Exception):
            _log.debug("elicitation policy: the server has changed, what was remembered of it is dropped")

    def forget(self, server: str | None) -> int:
        """Forgets everything about the server of that name (None: about all). Returns how many decisions there were.
        Raises PolicyStoreError."""

        def kept(known: list[Remembered]) -> list[Remembered]:
            return [one for one in known if server is not None and one.server != server]

        gone: list[int] = []

        def change(known: list[Remembered]) -> list[Remembered]:
            after = kept(known)
            gone.append(len(known) - len(after))
            return after

        if self.file is not None and self.file.read():
            self.file.change(change)
        with self._lock:
            before = list(self._session.values())
            self._session = {one.key: one for one in kept(before)}
            return sum(gone) + len(before) - len(self._session)


def decision_of(asked: Asked, decision: Verdict) -> Remembered:
    """What is to be remembered of a decision on this request. Raises ValueError when that can't be, with the reason."""
    if decision not in ("allow", "decline", "block"):
        raise ValueError('what is remembered must be "allow", "decline" or "block"')
    if asked.server is None and asked.identity is None:
        raise ValueError("the request does not say which server asks: name it with around(name=..., server=...)")
    identity = asked.identity
    who = (asked.server, None if identity is None else identity.address, asked.digest)
    if decision == "block":
        return Remembered("block", *who)
    if asked.mode not in ("url", "form") or (asked.mode == "url" and asked.page is None):
        raise ValueError("such a request is always declined; only a block of its server can be remembered")
    if decision == "allow" and asked.mode == "form":
        raise ValueError("an accepted form can't be remembered (its answers are not kept): make a rule with answers=")
    if decision == "allow" and not asked.is_sound:
        raise ValueError(
            "a page over http, or with text before an @ sign in its address, can't be allowed unseen: ask each time"
        )
    return Remembered(decision, *who, asked.mode, asked.host)
