"""The default handler of URL requests: show who asks for what and where it leads, open the page, wait for the person.

Everything is shown before anything is opened. The URL is always printed, whole and on one line, so that the flow works
over SSH, in a container, and where a browser claims to have opened a page that nobody sees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from ..display import quoted_block, rows_of, safe_line
from ..errors import UnsafeUrlError
from ..weburl import WebUrl, parse_web_url
from . import dialogue
from .console import Console, End, columns, open_console
from .prompts import CANCELLED, DECLINED, PersonAnswer
from .turns import TERMINAL
from .watch import Watch

if TYPE_CHECKING:
    from ..elicitation import GopherAgentElicitationRequest

__all__ = ["INSTRUCTION", "OpenUrl", "ReadLine", "Turn", "UrlPrompt", "asker_of", "turn_at_terminal"]

INSTRUCTION = (
    'Complete the OAuth flow in the browser, then press Enter to continue. Type "cancel" and press Enter to cancel.'
)
OpenUrl = Callable[[str, "bool | None"], "dict[str, Any]"]
ReadLine = Callable[["int | None"], "str | None"]
Turn = Callable[[Watch], "AbstractContextManager[Console | None]"]  # a console of somewhere else, once it is free

_ACCEPT = frozenset(("", "done", "finished", "ok", "y", "yes", "continue"))
_TO_OPEN = "open the page"
_OPEN = frozenset(("open", "o"))
_MOST_RETRIES = 10  # lines that are no answer; a person gives up sooner, a script must not go on for ever


class UrlPrompt:
    """Asks one person, on this process's terminal, one request at a time.

    Args:
        open_browser: None or True: open the page after it was shown; "ask": ask before; False: only print.
        open_url: opens a page, like `oauth_browser.open_authorization_url`.
        read_line: takes lines from somewhere else than the terminal: called with the time limit (in milliseconds, None:
            no limit), returns a line, or None when there is nobody to ask.
        turn: asks on another console than the terminal's; like `turn_at_terminal`.
    """

    def __init__(
        self, open_browser: Any, open_url: OpenUrl, read_line: ReadLine | None = None, *, turn: Turn | None = None
    ) -> None:
        self._open_browser = open_browser
        self._open_url = open_url
        self._turn = turn or (lambda watch: turn_at_terminal(watch, read_line))

    def ask(self, request: GopherAgentElicitationRequest, watch: Watch) -> str:
        """The action of `answer`: "accept", "decline" or "cancel"."""
        return self.answer(request, watch).action

    def answer(self, request: GopherAgentElicitationRequest, watch: Watch) -> PersonAnswer:
        """The person's answer. KeyboardInterrupt passes, for the caller to cancel."""
        if request.mode != "url" or not request.url:
            return DECLINED
        with self._turn(watch) as console:
            if console is None:
                return CANCELLED
            dialog = _Dialogue(self, console, request, watch)
            action = dialog.run()
            return PersonAnswer(action, whole_server=dialog.whole_server if action == "decline" else None)

    def wait_only(self, watch: Watch) -> str:
        """Only the question whether the person has finished, without a request."""
        with self._turn(watch) as console:
            return "cancel" if console is None else _Dialogue(self, console, None, watch).finish()

    def open(self, url: str) -> str | None:
        """Opens the page; None when it was opened, else why not."""
        try:
            result = self._open_url(url, None if self._open_browser == "ask" else self._open_browser)
        except Exception as error:  # whatever a replaced opener does, the URL is printed and the person can go there
            return f"the browser could not be started ({type(error).__name__})"
        return None if result.get("opened") else str(result.get("reason") or "it could not be started")

    @property
    def opens(self) -> bool:
        return self._open_browser is not False

    @property
    def asks_first(self) -> bool:
        return bool(self._open_browser == "ask")


@contextmanager
def turn_at_terminal(watch: Watch, read_line: ReadLine | None = None) -> Iterator[Console | None]:
    """Waits for the turn at this process's terminal, and gives it back at the end; None when the answer was not wanted
    any more before the turn came. `read_line`: see `UrlPrompt`."""
    with TERMINAL.turn(watch.wanted) as mine:
        if not mine:
            yield None
        elif read_line is not None:
            yield _Lines(read_line)
        else:
            with open_console() as console:
                yield console


def asker_of(request: GopherAgentElicitationRequest | None) -> str:
    """Who asks, harmless for a terminal."""
    name = safe_line((request and request.server) or "", limit=60) or "An MCP server"
    tool = safe_line((request and request.tool) or "", limit=60)
    return f"{name} ({tool})" if tool else name


def _begun(text: str) -> str:
    """A line that begins with a server's words: what does not fit is marked as theirs."""
    return "\n  | ".join(rows_of(text, columns() - 5))


class _Dialogue:
    """One request on one console."""

    def __init__(
        self, prompt: UrlPrompt, console: Console, request: GopherAgentElicitationRequest | None, watch: Watch
    ) -> None:
        self._prompt = prompt
        self._console = console
        self._asker = asker_of(request)
        self._message = (request and request.message) or ""
        self._url = (request and request.url) or ""
        self._watch = watch
        self._page: WebUrl | None = None  # what "open" opens, once it was offered
        self.whole_server: dialogue.Lasting | None = None  # everything of this server is to be declined

    def run(self) -> str:
        try:
            page = parse_web_url(self._url)
        except UnsafeUrlError as reason:
            self._refuse(reason)
            return "decline"
        shown = self._console.write(self._introduction(page))
        self._watch.on_shown()
        if not self._console.can_read:
            return self._nobody()
        opened, answer = self._offer_browser(page)
        self._page = page
        if answer is not None or not (opened or shown):
            return answer or "cancel"
        return self.finish()

    def finish(self) -> str:
        """The question whether the person has finished."""
        if not self._console.can_read:
            return self._nobody()
        self._console.forget_typed()  # nobody can have answered it before
        lines = (INSTRUCTION, *self._more_words())
        self._console.write("".join(f"{line}\n" for line in lines) + dialogue.time_left(self._watch))
        return self._answer(self._wait(), "continue when you have finished in the browser")

    def _more_words(self) -> Iterator[str]:
        if self._can_open:
            yield '"open" opens the page again, "decline" says no.'
        if words := dialogue.lasting_words(self._watch):
            yield words

    @property
    def _can_open(self) -> bool:
        return self._page is not None and self._prompt.opens

    def _nobody(self) -> str:
        self._console.write(dialogue.nobody(self._console))
        return "cancel"

    def _refuse(self, reason: UnsafeUrlError) -> None:
        self._console.write(
            f"\n{_begun(f'{self._asker} asks you to open a page. It was refused: {reason}.')}\n"
            f"{quoted_block(self._url[:500], max_lines=3, columns=columns())}\n"
        )

    def _introduction(self, page: WebUrl) -> str:
        lines = ["", _begun(f"{self._asker} asks you to open a page in your browser.")]
        if self._message.strip():
            lines.append(quoted_block(self._message, columns=columns()))
        return "\n".join([*lines, *dialogue.page_lines(page), "Open this URL to continue:", page.href, ""])

    def _offer_browser(self, page: WebUrl) -> tuple[bool, str | None]:
        """Opens the page as configured. Whether it was opened, and an answer when the person ended it here."""
        if not self._prompt.opens:
            return False, None
        if self._prompt.asks_first or page.is_misleading:
            self._console.write(dialogue.OPEN_NOW)
            line = self._wait()
            answer = "decline" if line in ("n", "no") else self._answer(line, _TO_OPEN)
            if isinstance(line, End) or answer == "cancel" or self.whole_server is not None:
                return False, answer
            if answer == "decline":
                return False, None
        return self._opened(page), None

    def _opened(self, page: WebUrl) -> bool:
        reason = self._prompt.open(page.href)
        self._console.write(dialogue.opening(reason))
        return reason is None

    def _wait(self) -> str | End:
        """The next line, lower-case, or why there is none."""
        line = dialogue.next_line(self._console, self._watch)
        return line if isinstance(line, End) else line.strip().lower()

    def _answer(self, line: str | End, what: str) -> str:
        """The action that a line means; asks again when it means nothing."""
        for _ in range(_MOST_RETRIES):
            if isinstance(line, End):
                return self._ended(line)
            if line in dialogue.CANCEL:
                return "cancel"
            if self._declines(line):
                return "decline"
            if line in _ACCEPT:
                return "accept"
            if line in _OPEN and self._page is not None and self._prompt.opens:
                self._opened(self._page)
                line = self._wait()
                continue
            if line in _OPEN and what == _TO_OPEN:
                return "accept"
            self._console.forget_typed()  # an Enter that was pasted along is none either
            self._console.write(f'That is no answer. Press Enter to {what}, or type "cancel" and press Enter.\n')
            line = self._wait()
        return "cancel"

    def _declines(self, line: str) -> bool:
        self.whole_server = dialogue.whole_server_of(line, self._watch)
        return line in dialogue.DECLINE or self.whole_server is not None

    def _ended(self, end: End) -> str:
        self._console.write(dialogue.ENDINGS[end.why])
        return "accept" if end.why == "finished" else "cancel"


class _Lines:
    """A console whose lines come from a function; what is written goes to stderr."""

    can_read = True
    why_not = ""
    has_half_a_line = False

    def __init__(self, read_line: ReadLine) -> None:
        self._read = read_line

    def write(self, text: str) -> bool:
        from .console import write_stderr

        return write_stderr(text)

    def read_line(self, watch: Watch, until: float | None = None) -> str | End | None:
        from .console import NO_ANSWER

        try:
            line = self._read(watch.limit_ms)
        except EOFError:
            line = None
        if line is None:
            self.write("Cannot access an interactive terminal; canceling provider authorization.\n")
            return NO_ANSWER["eof"]
        return line

    def hidden(self) -> AbstractContextManager[None]:
        return nullcontext()

    def forget_typed(self) -> None:
        """Lines come when they are asked for."""
