"""Plants secrets and fails the test in which one shows up where it must not.

A planted secret is a random-looking word with a mark in it. Fixtures and tests put such words wherever real secrets
are: `code`, `state`, tokens and the like of authorization URLs, userinfo, fragments, bearer tokens, header values, API
keys. The plugin looks for the mark (also percent-encoded and base64-encoded) in

- captured standard output and error of every test and of every child process that a test reads (subprocess, pexpect),
- every log record, formatted, with its traceback (the package logs at DEBUG during the whole suite),
- `repr` and `str` of every public object of the package, when it is made,
- every exception that `pytest.raises` catches, with traceback, causes and contexts; every warning; every failure text.

The one way out is narrow: a prompt has to show the whole URL to the person. A test that looks at a prompt says
`canary.allow_shown(url)`: lines of a standard stream that consist of that URL (with `exact=False`: of a URL that begins
so) and nothing else are then no leak, in that test only. Logs, reprs, exceptions and tracebacks have no exception.
"""

from __future__ import annotations

import base64
import contextlib
import inspect
import logging
import re
import subprocess
import threading
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable
from typing import Any
from urllib.parse import urlencode

import pytest

MARK = "Qz7" + "Canary"  # in two parts, so that this line in a traceback is no leak
SECRET_PARAMETERS = ("code", "state", "token", "access_token", "refresh_token", "id_token", "client_secret")


def secret(kind: str) -> str:
    """A secret to plant; `kind` says in a failure what leaked."""
    return f"{MARK}{re.sub('[^a-zA-Z0-9]', '', kind)}x41"


def authorization_url(
    base: str = "https://accounts.example.test/o/oauth2/auth", *, userinfo: bool = False, fragment: bool = True
) -> str:
    """A provider's authorization URL in which everything that may be secret is."""
    query = {"response_type": "code", "client_id": "app-1"} | {name: secret(name) for name in SECRET_PARAMETERS}
    if userinfo:
        base = base.replace("://", f"://{secret('user')}:{secret('password')}@", 1)
    return f"{base}?{urlencode(query)}" + (f"#access_token={secret('fragment')}" if fragment else "")


def headers() -> dict[str, str]:
    """Request headers with secret values."""
    return {"Authorization": f"Bearer {secret('bearer')}", "X-Api-Key": secret("header")}


def _encodings() -> re.Pattern[str]:
    """The mark as it is (in any case), and as base64 shows it at each of the three alignments."""
    forms = {MARK}
    for shift in range(3):
        encoded = base64.b64encode(b"\0" * shift + MARK.encode()).decode().rstrip("=")
        forms.add(encoded[(0, 2, 3)[shift] : -1])
    return re.compile("|".join(re.escape(form) for form in forms), re.IGNORECASE)


_PATTERN = _encodings()


def leaks(text: str) -> list[str]:
    """Excerpts around each planted secret in the text, with the secret's own mark taken out."""
    found = [text[max(0, hit.start() - 60) : hit.end() + 24] for hit in _PATTERN.finditer(text)]
    return [_PATTERN.sub("<planted secret>", excerpt) for excerpt in found]


class Canary:
    """What tests use: secrets to plant, and the narrow exception for prompts."""

    secret = staticmethod(secret)
    authorization_url = staticmethod(authorization_url)
    headers = staticmethod(headers)
    parameters = SECRET_PARAMETERS

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self.shown: list[str] = []
        self.shown_from: list[str] = []
        self.terminals: dict[int, list[str]] = {}

    def allow_shown(self, url: str, *, exact: bool = True) -> None:
        """Until the end of this test, a line of a standard stream may consist of this URL (of one that begins so)."""
        (self.shown if exact else self.shown_from).append(url)

    def _is_prompt(self, line: str) -> bool:
        line = line.strip()
        return line in self.shown or (" " not in line and line.startswith(tuple(self.shown_from)))

    def check(self, channel: str, text: str) -> None:
        """Notes every secret in a text that nobody may see."""
        if _PATTERN.search(text):
            self.found.extend((channel, excerpt) for excerpt in leaks(text))

    def check_stream(self, channel: str, text: str) -> None:
        """Same for a standard stream, where prompts are shown."""
        if _PATTERN.search(text):
            text = "\n".join(line for line in text.splitlines() if not self._is_prompt(line))
        self.check(channel, text)

    def check_exception(self, channel: str, error: BaseException) -> None:
        parts = [repr(error), str(error), *traceback.format_exception(type(error), error, error.__traceback__)]
        self.check(channel, "\n".join(parts))

    def take(self) -> list[tuple[str, str]]:
        """What was found since the last call."""
        found, self.found = self.found, []
        return list(dict.fromkeys(found))


# ---- Where it looks -------------------------------------------------------------------------------------------------


class Plugin:
    """Hooks of one pytest session; `Watch` below holds the patches that reach further than hooks do."""

    def __init__(self) -> None:
        self.canary = Canary()
        self._watch = Watch(self.canary)

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "canary_off: the canary's own tests, which leak on purpose")
        self._watch.start()

    def pytest_unconfigure(self) -> None:
        self._watch.stop()

    def pytest_collection_finish(self) -> None:
        self._watch.public_objects()

    def pytest_warning_recorded(self, warning_message: warnings.WarningMessage) -> None:
        self.canary.check("warning", str(warning_message.message))

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, None]:
        report: pytest.TestReport = (yield).get_result()
        for name, content in report.sections:
            if name.endswith(f" {call.when}"):
                check = self.canary.check if " log" in name else self.canary.check_stream
                check(name, content)
        if report.failed:
            self.canary.check("failure text", str(report.longrepr))
        if call.when == "teardown":
            self._end_of_test()
        found = self.canary.take()
        if found and not self._excused(item):
            lines = "\n".join(f"  {channel}: ...{excerpt!r}..." for channel, excerpt in found[:20])
            first = f"{report.longrepr}\n\n" if report.failed else ""
            report.outcome = "failed"
            report.longrepr = f"{first}planted secrets leaked ({call.when}):\n{lines}"

    @staticmethod
    def _excused(item: pytest.Item) -> bool:
        return item.path.name == "test_canary.py" and item.get_closest_marker("canary_off") is not None

    def _end_of_test(self) -> None:
        for pieces in self.canary.terminals.values():
            self.canary.check_stream("terminal", "".join(pieces).replace("\r", ""))
        self.canary.terminals.clear()
        self.canary.shown.clear()
        self.canary.shown_from.clear()

    @pytest.fixture(name="canary")
    def _fixture(self) -> Canary:
        """Secrets to plant (tests/support/canary.py)."""
        return self.canary


class Watch:
    """Patches that are there as long as the session: what they let through is exactly what was there before."""

    def __init__(self, canary: Canary) -> None:
        self._canary = canary
        self._undo: list[Callable[[], None]] = []
        self._making = threading.local()

    def start(self) -> None:
        self._log_records()
        self._caught_exceptions()
        self._captured_streams()
        self._child_processes()
        self._terminals()
        self._warnings()

    def stop(self) -> None:
        while self._undo:
            self._undo.pop()()

    def _replace(self, owner: Any, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
        own = name in vars(owner)
        before = getattr(owner, name)
        setattr(owner, name, make(before))
        self._undo.append(lambda: setattr(owner, name, before) if own else delattr(owner, name))

    def _log_records(self) -> None:
        before = logging.getLogRecordFactory()

        def factory(*arguments: Any, **named: Any) -> logging.LogRecord:
            record = before(*arguments, **named)
            self._canary.check(f"log record of {record.name}", _formatted(record))
            return record

        logging.setLogRecordFactory(factory)
        logger = logging.getLogger("gopher_mcp_python")
        level = logger.level
        logger.setLevel(logging.DEBUG)
        self._undo += [lambda: logging.setLogRecordFactory(before), lambda: logger.setLevel(level)]

    def _caught_exceptions(self) -> None:
        def make(before: Callable[..., Any]) -> Callable[..., Any]:
            def fill_unfilled(info: Any, exc_info: Any) -> Any:
                self._canary.check_exception("exception", exc_info[1])
                return before(info, exc_info)

            return fill_unfilled

        self._replace(pytest.ExceptionInfo, "fill_unfilled", make)

    def _captured_streams(self) -> None:
        def make(before: Callable[..., Any]) -> Callable[..., Any]:
            def readouterr(fixture: Any) -> Any:
                result = before(fixture)
                for name, text in zip(("stdout", "stderr"), result, strict=True):
                    self._canary.check_stream(name, text.decode(errors="replace") if isinstance(text, bytes) else text)
                return result

            return readouterr

        self._replace(pytest.CaptureFixture, "readouterr", make)

    def _child_processes(self) -> None:
        def make(before: Callable[..., Any]) -> Callable[..., Any]:
            def communicate(process: Any, *arguments: Any, **named: Any) -> Any:
                result = before(process, *arguments, **named)
                for name, text in zip(("child's stdout", "child's stderr"), result, strict=True):
                    if text:
                        text = text.decode(errors="replace") if isinstance(text, bytes) else text
                        self._canary.check_stream(name, text)
                return result

            return communicate

        self._replace(subprocess.Popen, "communicate", make)

    def _terminals(self) -> None:
        try:
            from pexpect.spawnbase import SpawnBase
        except ImportError:
            return

        def make(before: Callable[..., Any]) -> Callable[..., Any]:
            def _log(spawned: Any, text: Any, direction: str) -> Any:
                if direction == "read":
                    shown = text.decode(errors="replace") if isinstance(text, bytes) else text
                    self._canary.terminals.setdefault(id(spawned), []).append(shown)
                return before(spawned, text, direction)

            return _log

        self._replace(SpawnBase, "_log", make)

    def _warnings(self) -> None:
        def make(before: Callable[..., Any]) -> Callable[..., Any]:
            def init(warning: Any, message: Any, *arguments: Any, **named: Any) -> None:
                self._canary.check("warning", str(message))
                before(warning, message, *arguments, **named)

            return init

        self._replace(warnings.WarningMessage, "__init__", make)

    def public_objects(self) -> None:
        """Looks at `repr` and `str` of every public object from now on, when its `__init__` has ended."""
        try:
            import gopher_mcp_python as package
        except ImportError:
            return
        for cls in _python_classes(_attributes(package)):
            self._replace(cls, "__init__", self._looking)

    def _looking(self, before: Callable[..., Any]) -> Callable[..., Any]:
        def init(made: Any, *arguments: Any, **named: Any) -> None:
            depth = getattr(self._making, "depth", 0)
            self._making.depth = depth + 1
            try:
                before(made, *arguments, **named)
            finally:
                self._making.depth = depth
            if depth == 0:
                self._canary.check(f"repr of {type(made).__name__}", f"{made!r}\n{made!s}")

        init.__wrapped__ = before  # type: ignore[attr-defined]
        init.__doc__ = before.__doc__
        return init


def _attributes(package: Any) -> Iterable[Any]:
    for name in package.__all__:
        with contextlib.suppress(ImportError):  # a module that can't be imported is told by tests of its own
            yield getattr(package, name)


def _python_classes(values: Iterable[Any]) -> list[type]:
    """Classes that can be patched: no protocol, no enumeration, no extension type."""
    classes = [value for value in values if inspect.isclass(value) and value.__module__.startswith("gopher_mcp_python")]
    heap = 1 << 9  # Py_TPFLAGS_HEAPTYPE
    plain = [cls for cls in classes if cls.__flags__ & heap and not getattr(cls, "_is_protocol", False)]
    return [cls for cls in plain if not hasattr(cls, "__members__") and not issubclass(cls, (dict, tuple))]


def _formatted(record: logging.LogRecord) -> str:
    parts = [str(record.msg), repr(record.args)]
    try:
        parts.append(record.getMessage())
    except Exception as error:  # a wrong format string is that log call's own failure, told by logging itself
        parts.append(repr(error))
    if record.exc_info and record.exc_info[1] is not None:
        parts += traceback.format_exception(*record.exc_info)
    return "\n".join(parts)
