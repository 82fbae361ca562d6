"""The chores of a store on a thread of their own, at intervals. Any number of processes may do so on the same rows."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

from ..redaction import log_failure
from .errors import StoreError
from .threads import started

if TYPE_CHECKING:
    from .core import Store

__all__ = ["Housekeeping"]

_log = logging.getLogger("gopher_mcp_python.store")


class Housekeeping:
    """Expires, prunes and anchors until it is closed, before the store is. A chore that fails is logged, once until it
    works again, and tried anew at its next turn."""

    def __init__(
        self,
        store: Store,
        *,
        sweep_every_s: float = 5.0,
        prune_every_s: float = 3_600.0,
        keep_days: float = 30.0,
        anchor_every_s: float = 60.0,
    ) -> None:
        """Starts the thread.

        Args:
            sweep_every_s: seconds between looks for questions whose time is up.
            prune_every_s: seconds between removals of what ended `keep_days` days ago.
            anchor_every_s: seconds between writes of the audit's end to the store's anchor.

        Raises ValueError for an interval that is not positive, StoreError without a thread.
        """
        if min(sweep_every_s, prune_every_s, anchor_every_s) <= 0:
            raise ValueError("the intervals of housekeeping must be more than 0 seconds")
        self._chores: list[tuple[str, float, Callable[[], object]]] = [
            ("expiring", sweep_every_s, store.sweep),
            ("pruning", prune_every_s, lambda: store.prune(keep_days)),
            ("anchoring", anchor_every_s, store.write_anchor),
        ]
        self._due = dict.fromkeys((name for name, _, _ in self._chores), 0.0)
        self._failing: set[str] = set()
        self._stop = threading.Event()
        self._thread = started("gopher-mcp-housekeeping", self._run)

    def __enter__(self) -> Housekeeping:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends the thread, after the chore that it is at. Idempotent."""
        self._stop.set()
        if self._thread is not threading.current_thread():
            self._thread.join(30.0)

    def _run(self) -> None:
        while not self._stop.is_set():
            for name, every_s, chore in self._chores:
                if not self._stop.is_set() and monotonic() >= self._due[name]:
                    self._due[name] = monotonic() + every_s
                    self._do(name, chore)
            self._stop.wait(max(0.0, min(self._due.values()) - monotonic()))

    def _do(self, name: str, chore: Callable[[], object]) -> None:
        try:
            chore()
        except StoreError as error:
            if name not in self._failing:
                _log.warning("%s elicitations failed and will be tried again: %s", name, error)
            self._failing.add(name)
        except Exception as error:
            log_failure(_log, f"{name} elicitations failed", error)
        else:
            self._failing.discard(name)
