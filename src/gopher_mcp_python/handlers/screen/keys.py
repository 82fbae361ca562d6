"""What was typed, from bytes: keys by the names of prompt_toolkit, pastes as a whole, no escape sequence as text."""

from __future__ import annotations

import codecs
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

__all__ = ["ESCAPE_AFTER", "Key", "KeyReader"]

ESCAPE_AFTER = 0.2  # seconds without another byte; then an ESC was the key and not the beginning of a sequence
HELD = 1.0  # seconds; keyboards wait up to that long before they repeat a key that is held down, then much less
_MOST_PASTED = 1 << 20  # characters; what comes after them is dropped
_NAMES = {"c-i": "tab", "c-m": "enter", "c-j": "enter", "c-h": "backspace", "s-tab": "backtab"}


@dataclass(frozen=True)
class Key:
    """A key by its name ("enter", "up", "c-o", "f1"), or what was typed or pasted ("text", "paste").

    `alone`: nothing else came with it and no letter shortly before, so that it is no part of a paste that the terminal
    did not mark; and it does not repeat the key before, as one does that is held down."""

    name: str
    text: str = field(default="", repr=False)
    alone: bool = True


class KeyReader:
    """Bytes in, keys out. Control characters in what is pasted stay; they do nothing."""

    def __init__(self, encoding: str) -> None:
        try:
            self._decoder = codecs.getincrementaldecoder(encoding)("replace")
        except LookupError:
            self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._presses: list[KeyPress] = []
        self._parser = Vt100Parser(self._presses.append)
        self._unfinished = False
        self._before: tuple[Keys | str | None, float] = None, float("-inf")  # the last key, and when it came

    @property
    def is_waiting(self) -> bool:
        """Whether it may hold the beginning of a sequence; `flush` says that nothing follows."""
        return self._unfinished

    def feed(self, data: bytes) -> list[Key]:
        self._parser.feed(self._decoder.decode(data))
        self._unfinished = True
        return self._keys()

    def flush(self) -> list[Key]:
        """What there is without waiting for more. An ESC that came alone is the key."""
        found: list[Key] = []
        while True:
            self._parser.flush()
            if not self._presses:
                break
            found += self._keys()
        self._unfinished = False
        return found

    def forget(self) -> None:
        self._parser.reset()
        self._decoder.reset()
        self._presses.clear()
        self._unfinished = False

    def _keys(self) -> list[Key]:
        presses, self._presses[:] = list(self._presses), []
        alone = bool(presses) and not self._goes_on(presses)
        return [Key(key.name, key.text, alone) for press in _without_sequences(presses) if (key := _key(press))]

    def _goes_on(self, presses: list[KeyPress]) -> bool:
        """Whether it belongs to what came before: a key that is held down, a paste in several parts."""
        (key, at), now = self._before, time.monotonic()
        self._before = presses[-1].key, now
        is_text = not isinstance(key, Keys) or key in (Keys.ControlM, Keys.ControlJ)
        return len(presses) > 1 or (now - at < HELD and (is_text or key == presses[0].key))


def _key(press: KeyPress) -> Key | None:
    if press.key == Keys.BracketedPaste:
        return Key("paste", press.data[:_MOST_PASTED].replace("\r\n", "\n").replace("\r", "\n"))
    if isinstance(press.key, Keys):
        name = press.key.value
        return None if name.startswith("<") else Key(_NAMES.get(name, name))
    return Key("text", press.key)


def _without_sequences(presses: list[KeyPress]) -> Iterator[KeyPress]:
    """Without what prompt_toolkit does not know: Alt and a key, a terminal's reports. They begin with an ESC, too."""
    left = iter(presses)
    for press in left:
        if press.key != Keys.Escape:
            yield press
            continue
        following = next(left, None)
        if following is None:
            yield press
        elif following.key == Keys.Escape:
            yield press
            yield following
        else:
            _skip(following, left)


def _skip(first: KeyPress, left: Iterator[KeyPress]) -> None:
    if first.key == "[":
        next((press for press in left if len(press.key) == 1 and "@" <= press.key <= "~"), None)
    elif first.key == "O":
        next(left, None)
    elif first.key in ("]", "P", "_", "^"):
        next((press for press in left if press.key in (Keys.ControlG, "\\")), None)
