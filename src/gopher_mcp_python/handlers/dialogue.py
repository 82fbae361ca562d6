"""What the prompts have in common: how a page is announced, how time is told, what words mean."""

from __future__ import annotations

import time
from typing import Literal

from ..display import safe_line
from ..weburl import WebUrl
from .console import Console, End
from .watch import Watch

__all__ = [
    "CANCEL", "DECLINE", "ENDINGS", "OPEN_NOW", "WHOLE_SERVER", "duration", "lasting_words", "next_line", "nobody",
    "opening", "page_lines", "time_left", "whole_server_of",
]  # fmt: skip

Lasting = Literal["session", "always"]
CANCEL = frozenset(("cancel", "c", "q", "quit", "exit", "abort"))
DECLINE = frozenset(("decline", "n", "no"))
ENDINGS = {
    "eof": "\nThe input has ended: cancelled.\n",
    "withdrawn": "\nNo answer is needed any more: the request was withdrawn.\n",
    "finished": "\nThe server says that you have finished. Continuing.\n",
    "timeout": "\nThe time is up: cancelled.\n",
    "lost": "\nThe terminal was closed: cancelled.\n",
    "unreachable": "\nThe notebook's frontend can't be asked: cancelled.\n",
}
OPEN_NOW = 'Open it in your browser now? Enter opens it, "n" does not, "cancel" cancels: '
#: What is said after a person has declined everything of a server.
WHOLE_SERVER = {
    "session": "Everything that this server asks is declined for this session.",
    "always": "Everything that this server asks is declined from now on.",
}
_WORDS: dict[str, Lasting] = {"decline all": "session", "decline always": "always"}
_REMIND_AT = (60.0, 30.0, 10.0)  # seconds left


def whole_server_of(word: str, watch: Watch) -> Lasting | None:
    """How long everything of this server is to be declined, where a word (lower-case) says so and that is offered."""
    lasting = _WORDS.get(" ".join(word.split()))
    return lasting if lasting in watch.lasting else None


def lasting_words(watch: Watch) -> str:
    """Which words decline everything of a server, a sentence; empty where that is not offered."""
    meanings = {"session": "for this session", "always": "for good"}
    offered = [f'"{word}" {meanings[lasting]}' for word, lasting in _WORDS.items() if lasting in watch.lasting]
    return f"To decline everything that this server asks: {', '.join(offered)}." if offered else ""


def page_lines(page: WebUrl) -> list[str]:
    """Where a page leads, apart from the rest of its URL, and what is odd about it."""
    host = f"Host: {page.host}" + ("" if page.site == page.host else f"   (belongs to: {page.site})")
    return [host, *(f"WARNING: {warning}" for warning in page.warnings)]


def opening(reason: str | None) -> str:
    """What became of opening a page; `reason` is why it was not opened."""
    if reason is None:
        return "It was opened in your browser; if you see nothing, open the URL yourself.\n"
    return f"No browser was opened: {safe_line(reason)}. Open the URL yourself.\n"


def nobody(console: Console) -> str:
    """That there is no person before this console."""
    return f"Nobody can be asked: {console.why_not}. The request is cancelled.\n"


def time_left(watch: Watch) -> str:
    """A line about the time that is left; empty when there is no limit."""
    remaining = watch.remaining()
    return "" if remaining is None else f"Time left: {duration(remaining)}.\n"


def next_line(console: Console, watch: Watch, prompt: str = "") -> str | End:
    """The next line as it was typed, or why there is none; says when the time is running out. `prompt` was shown
    before, on the line on which is typed, and is shown again below the time."""
    while True:
        remaining = watch.remaining()
        mark = next((mark for mark in _REMIND_AT if remaining is not None and remaining > mark), None)
        until = None if mark is None or remaining is None else time.monotonic() + remaining - mark
        line = console.read_line(watch, until)
        if line is not None:
            return line
        console.write(f"\n{time_left(watch)}{prompt}" if prompt else time_left(watch))


def duration(seconds: float) -> str:
    """A time (in seconds) as people say it."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    if not minutes:
        return f"{rest} s"
    return f"{minutes} min {rest} s" if rest else f"{minutes} min"
