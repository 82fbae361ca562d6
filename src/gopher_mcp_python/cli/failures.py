"""Exit codes, and failures as one line that ends with what to do next."""

from __future__ import annotations

import enum
import errno
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ..display import safe_line
from ..errors import AgentError, ApiKeyError, TimeoutError
from .colour import paint
from .secrecy import without_secrets

__all__ = [
    "EXIT_FAILED", "EXIT_INTERRUPTED", "EXIT_OK", "EXIT_USAGE", "ExitCode", "UsageError", "as_usage", "explain", "line",
    "say", "tell",
]  # fmt: skip


class ExitCode(enum.IntEnum):
    """Every exit code of `gopher-mcp`; docs/command-line.md has the same table."""

    OK = 0
    FAILED = 1
    """It failed, for a reason that the line says."""
    USAGE = 2
    """The command line was wrong; nothing was done."""
    DEFECT = 70
    """It failed in a way that nobody foresaw: a defect of this program. (EX_SOFTWARE of sysexits.h)"""
    INTERRUPTED = 130
    """Ctrl-C; as shells have it for SIGINT."""
    READER_GONE = 141
    """Whoever read the output has gone (`| head`); as shells have it for SIGPIPE."""


EXIT_OK, EXIT_FAILED, EXIT_USAGE, EXIT_INTERRUPTED = (
    ExitCode.OK, ExitCode.FAILED, ExitCode.USAGE, ExitCode.INTERRUPTED,
)  # fmt: skip

_OF_ERRNO = {
    errno.EACCES: "see that this user may read and write it",
    errno.EPERM: "see that this user may read and write it",
    errno.ENOSPC: "make room where the output goes",
    errno.EMFILE: "ulimit -n says how many files may be open",
}
_LONGEST = 2000  # characters of a line; a server's text may be endless
# A message that says itself what to do needs no second advice.
_REFUSED = re.compile(r"HTTP status 40[13]\b|\brefused the request|Unauthorized|Forbidden")
_HAS_ADVICE = re.compile(
    r"\?|--[a-z]|\b(gopher-mcp [a-z]|pip install|environment variable|export |unset |chmod |run |choose |check "
    r"|see that |set |use |Use |give |try again|see to |its own log|SSL_CERT_FILE|must be |must begin )"
    # A clause of its own that tells to do something: "no folder x: make it, or name another file".
    r"|(?:[:;,.] |\bor )(?i:close|copy|create|delete|end|install|leave|make|move|name|open|put|register|restart|restore"
    r"|run|sign in|start|unlock|update|upgrade|wait|write) "
)


class UsageError(Exception):
    """The command line can't be understood; the text names the argument."""


@contextmanager
def as_usage(option: str = "") -> Iterator[None]:
    """A ValueError in here is about the value of an option, such as "--store": it becomes a UsageError."""
    try:
        yield
    except ValueError as error:
        raise UsageError(f"{option}: {error}" if option else str(error)) from None


def explain(error: BaseException, command: str = "") -> str | None:
    """The one line for this failure; None when it is not an expected one.

    command: the command that failed, such as "run"; it stands in the line, and in its advice.
    """
    if isinstance(error, UsageError):
        return line(str(error), command, f"{_program(command)} --help")
    if isinstance(error, AgentError):
        text, advice = _parted(str(error))
    elif isinstance(error, (ValueError, OSError)):
        text, advice = _parted(_plain(error))
    else:
        return None
    return line(text, command, advice or _remedy(error, text, command))


def line(text: str, command: str = "", advice: str | None = None) -> str:
    """`gopher-mcp COMMAND: text - next: advice`, harmless for a terminal and without the secrets that were given."""
    said = safe_line(without_secrets(text), limit=_LONGEST)
    said = said.rstrip(" .") + (f" - next: {without_secrets(advice)}" if advice else "")
    return f"{paint(f'{_program(command)}:', 'failure', sys.stderr)} {said}"


def tell(text: str, command: str = "", advice: str | None = None) -> None:
    """Print such a line on standard error. Without `advice` it is found, as for an AgentError of that text."""
    say(line(text, command, advice or _remedy(None, text, command)))


def say(text: str) -> None:
    """Print it on standard error; where that is closed, nobody wants to know."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            print(text, file=sys.stderr, flush=True)


def _program(command: str) -> str:
    return f"gopher-mcp {command}".strip()


def _parted(text: str) -> tuple[str, str | None]:
    """A message of several lines: its first one, and the advice that its last one is. `--debug` shows all of it, and
    so does `gopher-mcp doctor`."""
    lines = [part for part in text.strip().splitlines() if part.strip()]
    if len(lines) < 2 or not lines[-1].startswith("Next: "):
        return " ".join(lines), None
    return lines[0].removesuffix(" Places tried:"), lines[-1].removeprefix("Next: ")


def _plain(error: Exception) -> str:
    """Without `[Errno 28]`, which tells nobody anything."""
    if isinstance(error, UnicodeError):
        return f"a text is not in the expected encoding ({error.reason})" if hasattr(error, "reason") else str(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename is not None else error.strerror
    return str(error) or type(error).__name__


def _remedy(error: BaseException | None, text: str, command: str) -> str | None:
    """The next thing to type, unless the message has one already."""
    if isinstance(error, TimeoutError):
        if text.startswith("connecting to "):
            return "see that an MCP server answers at that address"
        return "--timeout SECONDS gives the run more time (0: no limit)"
    if "certificate was not accepted" in text and "SSL_CERT_FILE" not in text:
        return "SSL_CERT_FILE=FILE names the authority that signed it"
    if _HAS_ADVICE.search(text):
        return None
    if isinstance(error, ApiKeyError) or _REFUSED.search(text):
        return "--token-env NAME sends a token to the MCP server; models take theirs from OPENAI_API_KEY and its like"
    if "server configuration" in text:
        return 'it has the form {"servers": [{"name": "mail", "url": "https://host/mcp"}]}'
    if isinstance(error, OSError) and error.errno in _OF_ERRNO:
        return _OF_ERRNO[error.errno]
    if isinstance(error, ValueError):
        return f"{_program(command)} --help"
    return f"{_program(command)} --debug shows more"
