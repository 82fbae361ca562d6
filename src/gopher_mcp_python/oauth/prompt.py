"""The terminal side of a sign-in: says who wants it and where it leads, opens the page, takes a pasted address.

It runs on a thread of its own, since the event loop may be anybody's, and ends by itself when the browser comes back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ..handlers import dialogue
from ..handlers.console import Console, End, open_console
from ..handlers.turns import TERMINAL
from ..handlers.watch import Watch
from ..weburl import WebUrl

__all__ = ["Ask", "Prompt"]

_END_SECONDS = 1.0  # for the thread to give the terminal back; it takes a few milliseconds
_PIECE_SECONDS = 0.2  # lines that come closer together are one paste
_MOST_REPLIES = 20  # to lines that are no answer; what comes after them is still read

_INSTRUCTION = """\
Sign in in the browser. You need not press anything here: it continues by itself.
If the browser ends on a page that it can't load (a browser on another computer), copy the whole address of that page,
paste it here and press Enter. To cancel, type "cancel" and press Enter.
"""
_NOTHING_NEEDED = "The browser has not come back yet. It continues by itself when you have signed in there.\n"
_ENDINGS = {
    **dialogue.ENDINGS,
    "finished": "\nThe browser has come back. Finishing the sign-in.\n",
    "withdrawn": "\nThe sign-in was ended.\n",
}
_TAKEN = "The address was taken. Finishing the sign-in.\n"


class Ask:
    """What is asked: `server` (shown safely already), the page, and how."""

    def __init__(self, server: str, page: WebUrl, *, open_browser: bool | None, waits: bool, timeout: float) -> None:
        self.server = server
        self.page = page
        self.open_browser = open_browser
        self.waits = waits  # though there is neither a terminal nor a browser here
        self.timeout = timeout  # seconds from the moment at which it is shown; 0: no limit


class Prompt:
    """One sign-in on the terminal.

    `feed` takes a pasted address (None: taken, else a sentence about why not). `began` is called when everything is
    shown, `ended` with how it went: "taken", "cancelled", "timeout", "waits" (nobody is asked here, the browser is
    waited for), "withdrawn", or "nobody: <why>". Both are called on the prompt's thread.
    """

    def __init__(
        self, ask: Ask, feed: Callable[[str], str | None], began: Callable[[], None], ended: Callable[[str], None]
    ) -> None:
        self._ask = ask
        self._feed = feed
        self._began = began
        self._ended = ended
        self._noticed = threading.Event()  # set when the browser was started, and when all is over
        self._stopped = False
        self._finished = False
        self._watch = Watch(is_open=lambda: not self._stopped, is_finished=lambda: self._finished)
        self._wake: int | None = None
        self._thread = threading.Thread(target=self._run, name="sign-in prompt", daemon=True)

    def start(self) -> None:
        if os.name != "nt":  # a console is polled there; a pipe would be no help
            self._watch.wakes, self._wake = os.pipe()
        try:
            self._thread.start()
        except RuntimeError:  # no thread can be had
            self._close_wake()
            self._close_watch()
            raise

    def stop(self, *, finished: bool) -> None:
        """Ends the prompt and gives the terminal back; `finished`: because the browser has come back. Idempotent."""
        self._finished = self._finished or finished
        self._stopped = True
        self._noticed.set()
        self._close_wake()  # the other end becomes readable
        if self._thread.ident is not None:
            self._thread.join(_END_SECONDS)

    def _close_wake(self) -> None:
        wake, self._wake = self._wake, None
        if wake is not None:
            os.close(wake)

    def _close_watch(self) -> None:
        wakes, self._watch.wakes = self._watch.wakes, None
        if wakes is not None:
            os.close(wakes)

    def _run(self) -> None:
        how = "cancelled"  # also what a Ctrl-C on this thread means (Windows reads it as a key)
        try:
            with TERMINAL.turn(self._watch.wanted) as mine:
                how = self._on_terminal() if mine else "withdrawn"
        except KeyboardInterrupt:
            pass
        finally:
            self._close_watch()
            self._ended(how)

    def _on_terminal(self) -> str:
        with open_console(keys=True) as console:
            console.write(self._introduction())
            if self._ask.timeout:
                self._watch.deadline = time.monotonic() + self._ask.timeout
            self._began()
            if not console.can_read:
                return self._without_terminal(console)
            how = self._offer_browser(console)
            if how is None:
                console.write(_INSTRUCTION + dialogue.time_left(self._watch))
                how = self._answer(console)
            return how

    def _introduction(self) -> str:
        asks = f"{self._ask.server} wants you to sign in. This sign-in is to the MCP server itself."
        page = self._ask.page
        return "\n".join(["", asks, *dialogue.page_lines(page), "Open this URL to sign in:", page.href, ""])

    # ---- The browser ----

    def _without_terminal(self, console: Console) -> str:
        reason: str | None = "its address looks like another one"
        if not self._ask.page.is_misleading:
            reason = self._opened(console)
        if self._stopped:
            return "withdrawn"
        if reason is None or self._ask.waits:
            console.write("It continues by itself when you have signed in there.\n")
            return "waits"
        return f"nobody: {console.why_not}, and no browser was opened ({reason})"

    def _offer_browser(self, console: Console) -> str | None:
        """Opens the page as configured; how the sign-in went when it ended here already."""
        if self._ask.open_browser is False:
            return None
        if self._ask.page.is_misleading:
            console.write(dialogue.OPEN_NOW)
            line = dialogue.next_line(console, self._watch)
            if isinstance(line, End):
                return self._ended_by(line, console)
            word = line.strip().lower()
            if word in dialogue.CANCEL:
                return "cancelled"
            if word:
                return None
        self._opened(console)
        return None

    def _opened(self, console: Console) -> str | None:
        """Opens the page; why it was not opened. Starting a browser may take a while: a thread of its own does it, so
        that the terminal can be given back at any time."""
        if self._ask.open_browser is False:
            return "opening a browser is switched off"
        results: list[str | None] = []

        def start() -> None:
            results.append(_open(self._ask.page.href, self._ask.open_browser))
            self._noticed.set()

        try:
            threading.Thread(target=start, name="gopher-mcp-browser", daemon=True).start()
        except RuntimeError:  # no thread can be had
            results.append("no thread could be started for it")
        while not (results or self._stopped):
            self._noticed.wait()
        if not results:
            return None
        console.write(dialogue.opening(results[0]))
        return results[0]

    # ---- The person ----

    def _answer(self, console: Console) -> str:
        """Reads lines until one of them, or something else, ends it."""
        before, replies = "", 0
        while True:
            line = dialogue.next_line(console, self._watch)
            if isinstance(line, End):
                return self._ended_by(line, console)
            word = line.strip().lower()
            if word in dialogue.CANCEL or word in dialogue.DECLINE:
                console.write("Cancelled.\n")
                return "cancelled"
            text = line + self._rest_of_paste(console) if word else ""
            why = self._taken(text, before) if word else _NOTHING_NEEDED
            if why is None:
                console.write(_TAKEN)
                return "taken"
            before += text  # the beginning, perhaps, of an address that comes in pieces
            replies += 1
            if replies <= _MOST_REPLIES:
                console.write(why)

    def _taken(self, text: str, before: str) -> str | None:
        why = self._feed(text)
        if why is None or (before and self._feed(before + text) is None):
            return None
        return f'Not taken: {why}\n(Or type "cancel" and press Enter.)\n'

    def _rest_of_paste(self, console: Console) -> str:
        """The other lines of an address that was pasted with line breaks in it; its last line may wait for Enter."""
        rest = ""
        while True:
            line = console.read_line(self._watch, time.monotonic() + _PIECE_SECONDS)
            if isinstance(line, str):
                rest += line
            elif isinstance(line, End) or not console.has_half_a_line:
                return rest

    def _ended_by(self, end: End, console: Console) -> str:
        console.write(_ENDINGS[end.why])
        return {"timeout": "timeout", "finished": "withdrawn", "withdrawn": "withdrawn"}.get(end.why, "cancelled")


def _open(href: str, open_browser: bool | None) -> str | None:
    from .. import oauth_browser

    try:
        result = oauth_browser.open_authorization_url(href, open_browser)
    except Exception as error:  # whatever happens, the URL is printed and the person can go there
        return f"the browser could not be started ({type(error).__name__})"
    return None if result.get("opened") else str(result.get("reason") or "it could not be started")
