"""The elicitation store: questions kept until they are answered, cancelled or too old. One set of rules for every
backend.

    store = Store(SqliteBackend("elicitations.db"), FileKeys("elicitations.keys"))
    asked = store.create("ada", single_choice("Deploy where?", ["staging", "production"]))
    ended = store.wait("ada", asked.id)          # elsewhere: store.respond("ada", asked.id, {"choice": "staging"})
    store.result("ada", asked.id)

Every method may be called from any thread, and blocks it no longer than its transaction (`wait` apart);
`aio.AsyncStore` is for event loops. All of them raise StoreError when the store is closed, unreachable or was made
before a fork.
"""

from __future__ import annotations

import logging
import os
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from ..redaction import log_failure
from . import approvals, chores
from .acting import Act, acting, overdue
from .creation_rate import CreationRate
from .errors import ElicitationNotFound, NoAnswer, StoreError
from .listing import Page, next_rows, opened
from .model import LONGEST_TIMEOUT_S, ElicitationStatus, NewElicitation, StoredElicitation, confirmation
from .outcome import Change, ConfirmationState, ConsumeState, Outcome
from .payload import CALLER_CHARACTERS, clear_text
from .responses import WHOLE, validate_response
from .rows import (
    answer_facts,
    asked_of,
    check_caller,
    clear_facts,
    may_be_id,
    new_row,
    refused,
    sealed_question,
    shown,
    told,
)
from .sealing import Sealer
from .waiting import Waiters, wait_for

if TYPE_CHECKING:
    from .anchors import Anchor
    from .audit import Verification
    from .backend import Backend, Row
    from .keys import KeyProvider

__all__ = ["Change", "ConfirmationState", "ConsumeState", "Outcome", "Store"]

_log = logging.getLogger("gopher_mcp_python.store")


class Store:
    """Elicitations of any number of callers, none of whom sees another's."""

    def __init__(
        self,
        backend: Backend,
        keys: KeyProvider,
        *,
        rate: tuple[int, float] | None = (60, 60.0),
        approval_s: float = 300.0,
        anchor: Anchor | None = None,
    ) -> None:
        """
        Args:
            backend: where the rows are; closed with the store.
            keys: what they are sealed with; all who use the same rows need the same keys.
            rate: how many elicitations a caller may create in how many seconds; None: any number.
            approval_s: for how many seconds after a yes the approved call may be made.
            anchor: what remembers the head of the audit's chain.

        Raises ValueError for a rate or a time that is not positive.
        """
        if not 0 < approval_s <= 86_400:
            raise ValueError("approval_s must be more than 0 and at most 86400 seconds")
        self._backend = backend
        self._sealer = Sealer(keys)
        self._rate = CreationRate(rate)
        self._approval = timedelta(seconds=approval_s)
        self._anchor = anchor
        self._pid = os.getpid()
        self._closed = False
        self._waiters = Waiters(backend)

    def __repr__(self) -> str:
        return f"Store({self._backend.name})"

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- Asking -----------------------------------------------------------------------------------------------------

    def create(self, caller: str, new: NewElicitation, *, timeout_s: float = 300) -> StoredElicitation:
        """Stores a question of `caller`, to be answered within `timeout_s` (1 to 1800 seconds).

        Raises ValueError, RateLimited when the caller asks too often, StoreError.
        """
        return self._create(caller, new, timeout_s)

    def _create(
        self, caller: str, new: NewElicitation, timeout_s: float, *, once: bool = False
    ) -> StoredElicitation:
        check_caller(caller)
        if not isinstance(timeout_s, (int, float)) or not 1 <= timeout_s <= LONGEST_TIMEOUT_S:
            raise ValueError(f"timeout_s must be from 1 to {LONGEST_TIMEOUT_S} seconds")
        id = f"el_{secrets.token_urlsafe(16)}"
        facts = clear_facts(caller, new, approvals.binding_of(self._sealer, caller, new))
        question, lasts = sealed_question(self._sealer, id, new, facts), timedelta(seconds=timeout_s)
        with acting(self._usable(), caller) as act:
            # From here on nobody else creates for this caller until this ends.
            recent = self._rate.recent(act) if self._rate.is_bounded or once else ()
            waiting = approvals.waiting(act, self._sealer, caller, new) if once else None
            if waiting is not None:
                return told(self._sealer, waiting)
            self._rate.check(recent, act.now)
            row = act.add(new_row(id, facts, question, act.now, lasts))
        return shown(row, new.message, new.params)

    def create_confirmation(
        self,
        caller: str,
        *,
        tool: str,
        arguments: Mapping[str, Any],
        server: str | None = None,
        message: str | None = None,
        timeout_s: float = 300,
        once: bool = False,
    ) -> StoredElicitation:
        """Asks whether `tool` of `server` may be called with exactly these arguments. Raises as `create`.

        Args:
            message: what is asked; None: a sentence that names the tool.
            timeout_s: seconds to answer, 1 to 1800.
            once: where the newest confirmation of this very call still waits for its answer, whoever asked for it, that
                one is returned and nothing is created.
        """
        text = message if message is not None else f"May the tool {str(tool)[:200]} be called?"
        return self._create(
            caller, confirmation(text, tool=tool, arguments=arguments, server=server), timeout_s, once=once
        )

    # ---- Answering --------------------------------------------------------------------------------------------------

    def respond(self, caller: str, id: str, response: Any, *, by: str | None = None) -> Outcome:
        """Answers a question of `caller`. Of several answers the first valid one counts; see Outcome for the rest.
        `by` is who answers, for the audit. Raises ElicitationNotFound, ValueError for `caller` and `by`, StoreError."""
        check_caller(caller)
        clear_text("by", by, CALLER_CHARACTERS)
        facts = answer_facts(id, response)
        with acting(self._usable(), caller) as act:
            row = self._locked(act, id)
            if row.status != "pending" or row.mode != "form":
                return self._answered(act, row, facts, by, lambda: self._judged(row, response))
            question = row  # a form's rules may take a second, in which nobody should have to wait for the lock
        judged = self._judged(question, response)
        with acting(self._usable(), caller) as act:
            return self._answered(act, self._locked(act, id), facts, by, lambda: judged)

    def _judged(self, row: Row, response: Any) -> tuple[dict[str, str], Any]:
        kind = row.type or row.mode
        params = {} if kind in ("confirmation", "url") else asked_of(self._sealer, row)[1]
        return validate_response(kind, params, response)

    def _answered(
        self,
        act: Act,
        row: Row,
        facts: list[Any] | None,
        by: str | None,
        judge: Callable[[], tuple[dict[str, str], Any]],
    ) -> Outcome:
        if row.status != "pending":
            same = row.status == "responded" and facts is not None and self._sealer.mac_is_of(row.response_mac, facts)
            return Outcome("already_recorded" if same else "conflict", ElicitationStatus(row.status))
        errors, kept = judge()
        if errors or facts is None:
            return refused(act, row, by, errors or {WHOLE: "can't be stored"})
        act.change(
            row,
            "responded",
            by,
            status="responded",
            response=self._sealer.seal(row.id, "response", kept),
            response_mac=self._sealer.mac(facts),
            confirmed=kept["confirmed"] if row.type == "confirmation" else None,
            ended_at=act.now,
        )
        return Outcome("recorded", ElicitationStatus.RESPONDED)

    def cancel(self, caller: str, id: str, *, by: str | None = None) -> Outcome:
        """Ends a question without an answer: "recorded", "already_recorded" or "conflict". Raises as `respond`."""
        check_caller(caller)
        clear_text("by", by, CALLER_CHARACTERS)
        with acting(self._usable(), caller) as act:
            row = self._locked(act, id)
            if row.status != "pending":
                same = row.status == "cancelled"
                return Outcome("already_recorded" if same else "conflict", ElicitationStatus(row.status))
            act.change(row, "cancelled", by, status="cancelled", ended_at=act.now)
        return Outcome("recorded", ElicitationStatus.CANCELLED)

    def _locked(self, act: Act, id: str) -> Row:
        """The row, held until the transaction ends, and expired if its time is up."""
        row = act.tx.lock(id) if may_be_id(id) else None
        if row is None:
            raise ElicitationNotFound
        return act.expire(row) if overdue(row, act.now) else row

    # ---- Looking ----------------------------------------------------------------------------------------------------

    def get(self, caller: str, id: str) -> StoredElicitation:
        """An elicitation of `caller`. Raises ElicitationNotFound, SealError when it can't be unsealed, StoreError."""
        return told(self._sealer, self._row(caller, id))

    def pending(self, caller: str, *, limit: int = 100, after: str | None = None) -> Page:
        """What `caller` has to answer, oldest first: at most `limit` (1 to 1000) of them, those behind the elicitation
        `after`. It is a list that says by `next` where to go on; it has fewer where the questions are large (8 MB of
        them at rest, and one). One that can't be unsealed is left out, and logged.

        Raises ValueError for the limit, ElicitationNotFound for `after`, StoreError.
        """
        check_caller(caller)
        if not 1 <= limit <= 1000:
            raise ValueError("limit must be from 1 to 1000")
        with self._usable().transaction(caller, write=False) as tx:
            rows, next = next_rows(tx, limit, after)
        return Page(opened(self._sealer, rows), next)

    def result(self, caller: str, id: str) -> Any:
        """The answer. Raises NoAnswer when there is none (any more), and as `get`."""
        row = self._row(caller, id)
        if row.status != "responded" or row.response is None:
            why = "it was removed after its time" if row.status == "responded" else f"it is {row.status}"
            raise NoAnswer(f"The elicitation has no answer: {why}")
        return self._sealer.open(row.id, "response", row.response)

    def _row(self, caller: str, id: str, *, surely_over: bool = False) -> Row:
        row, _ = self._find(caller, id, surely_over=surely_over)
        if row is None:
            raise ElicitationNotFound
        return row

    def _find(self, caller: str, id: str, *, surely_over: bool = False) -> tuple[Row | None, datetime]:
        """The row as it stands now, and the time: what is overdue is expired first (`surely_over`: whatever the clock
        says)."""
        check_caller(caller)
        if not may_be_id(id):
            id = "none"  # is not there either, and the store has to be asked all the same: it may be down
        with self._usable().transaction(caller, write=False) as tx:
            row, now = tx.get(id), tx.now()
        if row is None or row.status != "pending" or not (surely_over or overdue(row, now)):
            return row, now
        with acting(self._usable(), caller) as act:
            row = act.tx.lock(id)
            if row is not None and row.status == "pending" and (surely_over or overdue(row, act.now)):
                row = act.expire(row)
            return row, act.now

    # ---- Approvals --------------------------------------------------------------------------------------------------

    def confirmation_state(self, caller: str, id: str) -> ConfirmationState:
        """Where a confirmation stands; "absent" for what is none of this caller's. Raises StoreError."""
        row, now = self._find(caller, id)
        return approvals.state_of(self._sealer, row, now, self._approval)

    def find_confirmation(
        self, caller: str, *, tool: str, arguments: Mapping[str, Any], server: str | None = None
    ) -> StoredElicitation | None:
        """The newest confirmation of exactly this call, whatever came of it: by it a call that is made again is known.
        None when none was created in the last two days (and among this tool's last thousand).

        Raises ValueError for arguments that no confirmation could be for, StoreError.
        """
        check_caller(caller)
        facts = approvals.facts_of(caller, server, tool, arguments)
        with self._usable().transaction(caller, write=False) as tx:
            bound = tx.bound(tool, tx.now() - approvals.RECOGNISED, approvals.MOST_BOUND)
        id = approvals.newest_of(self._sealer, bound, facts)
        return self.get(caller, id) if id is not None else None

    def is_confirmed(self, caller: str, id: str) -> bool:
        """Whether the answer is yes, and may still be used."""
        return self.confirmation_state(caller, id) == "approved"

    def consume(
        self, caller: str, id: str, *, tool: str, arguments: Mapping[str, Any], server: str | None = None
    ) -> ConsumeState:
        """Uses an approval for one call, which may be made when the answer is "consumed", and only then. It is once,
        for exactly this caller, server, tool and arguments, and for `approval_s` after the answer.

        "mismatch": the approval is for another call. "unknown": it was used, and nobody said that the call has its
        result (`complete`): it may have been made, and must not be made again by itself. Raises StoreError; ValueError
        for arguments that no approval could be for.
        """
        check_caller(caller)
        facts = approvals.facts_of(caller, server, tool, arguments)
        with acting(self._usable(), caller) as act:
            row = act.tx.lock(id) if may_be_id(id) else None
            if row is not None and overdue(row, act.now):
                row = act.expire(row)
            return approvals.consume(act, self._sealer, row, facts, self._approval)

    def complete(self, caller: str, id: str) -> None:
        """Says that the call that consumed this approval has its result. Idempotent. Raises ElicitationNotFound,
        ValueError when it was not consumed, StoreError."""
        check_caller(caller)
        with acting(self._usable(), caller) as act:
            row = self._locked(act, id)
            if row.consumed_at is None:
                raise ValueError("this approval was not consumed, so no call of it can be complete")
            if row.completed_at is None:
                act.change(row, "completed", completed_at=act.now)

    # ---- Waiting ----------------------------------------------------------------------------------------------------

    def wait(
        self,
        caller: str,
        id: str,
        *,
        timeout_s: float | None = None,
        still_wanted: Callable[[], bool] | None = None,
    ) -> StoredElicitation:
        """Returns the elicitation when it has ended: answered (also before this call), cancelled, failed or expired.

        It returns what is still pending when `timeout_s` seconds are over, `still_wanted` (asked every second) says no
        or the work of this thread is called off. Raises ElicitationNotFound, StoreError.
        """
        return wait_for(self, caller, id, timeout_s, still_wanted)

    def subscribe(self, callback: Callable[[Change], object]) -> Callable[[], None]:
        """Calls `callback` for every change of every caller's elicitations, in any process, on a thread of the store's.
        It should be quick; what it raises is logged. Returns a function that ends it. Raises StoreError."""
        self._usable()
        return self._waiters.subscribe(callback)

    # ---- Housekeeping -----------------------------------------------------------------------------------------------

    def sweep(self, limit: int = 1000) -> int:
        """Expires at most `limit` elicitations whose time is up; returns how many. Raises StoreError."""
        return chores.sweep(self._usable(), limit)

    def prune(self, days: float = 30) -> int:
        """Removes questions and answers of what ended more than `days` ago; returns of how many. Raises StoreError."""
        return chores.prune(self._usable(), days)

    def verify(self) -> Verification:
        """Looks at the audit's whole chain, and at the anchor. Raises StoreError."""
        return chores.verify(self._usable(), self._anchor)

    def write_anchor(self) -> bool:
        """Gives the chain's head to the anchor, where there is one. False when it knew that. Raises StoreError, also
        when the chain is not the one that the anchor knows."""
        return self._anchor is not None and chores.write_anchor(self._usable(), self._anchor)

    def check(self) -> None:
        """Raises StoreError unless the store can be used now."""
        with self._usable().transaction(None, write=False) as tx:
            tx.now()

    def close(self) -> None:
        """Ends waits and subscriptions, and closes the backend. Idempotent; in a forked child it does nothing."""
        if self._closed or self._pid != os.getpid():
            return
        if self._anchor is not None:
            try:
                self.write_anchor()
            except StoreError as error:
                _log.warning("the audit's anchor was not written at the end: %s", error)
            except Exception as error:  # of an anchor of the program's own
                log_failure(_log, "the audit's anchor was not written at the end", error)
        self._closed = True
        self._backend.close()
        self._waiters.close()

    def _usable(self) -> Backend:
        if self._pid != os.getpid():  # before any lock, which a thread of the parent may have held
            raise StoreError("This store was opened before a fork; open one in this process")
        if self._closed:
            raise StoreError("The store is closed")
        return self._backend

    def _unsealed(self, row: Row) -> StoredElicitation:
        return told(self._sealer, row)
