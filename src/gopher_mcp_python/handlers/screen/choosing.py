"""Fields whose answer is chosen from a list: arrows and space, or some letters that the option has."""

from __future__ import annotations

from ...forms import MISSING, Option, numbers
from ..form import Entry
from .editors import INDENT
from .keys import Key
from .look import Drawing, Line, Look, columns_of

__all__ = ["ManyEditor", "OneEditor"]


class _Choosing:
    """A list with a highlight, of which only what was searched for is shown."""

    keys: tuple[tuple[str, str], ...] = (("Space", "choose"), ("letters", "search"))
    _marks = (("(•)", "(*)"), "( )")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self._titles = [option.title.casefold() for option in entry.options]
        self.reload()

    def reload(self) -> None:
        self._search = ""
        self._found = list(range(len(self.entry.options)))
        self._at = next((place for place in self._found if self._is_chosen(self.entry.options[place])), -1)
        self._first = 0

    def leave(self) -> None:
        """A search is over."""
        if self._search:
            self.reload()

    def typed(self) -> str:
        return ""

    def press(self, key: Key) -> bool:
        name = key.text if key.name == "text" and key.text == " " else key.name
        if name in ("up", "down"):
            return self._move(1 if name == "down" else -1)
        if name == " ":
            return self._take_highlighted()
        if name == "enter":
            self._enter()
            return False  # it also goes on to the next field
        if name == "text":
            self._search_for(self._search + key.text)
        elif name == "backspace":
            self._search_for(self._search[:-1])
        elif name == "escape" and self._search:
            self._search_for("")
        elif name == "paste":
            pass
        else:
            return False
        return True

    def _move(self, step: int) -> bool:
        """False at both ends: there is another field."""
        following = self._at + step
        if not 0 <= following < len(self._found):
            return False
        self._at = following
        return True

    def _search_for(self, text: str) -> None:
        highlighted = self._found[self._at] if 0 <= self._at < len(self._found) else -1
        self._search = text
        self._found = [place for place, title in enumerate(self._titles) if text.casefold() in title]
        if highlighted in self._found and not text:
            self._at = self._found.index(highlighted)
        else:
            self._at = 0 if text and self._found else -1

    def _highlighted(self) -> Option | None:
        return self.entry.options[self._found[self._at]] if 0 <= self._at < len(self._found) else None

    def _take_highlighted(self) -> bool:
        option = self._highlighted()
        if option is not None:
            self._take(option)
        elif self._found:
            self._at = 0
        return True

    def _enter(self) -> None:
        raise NotImplementedError

    def _take(self, option: Option) -> None:
        raise NotImplementedError

    def _is_chosen(self, option: Option) -> bool:
        raise NotImplementedError

    def draw(self, look: Look, most: int) -> Drawing:
        lines: list[Line] = []
        if self._search:
            count = f"   {len(self._found)} of {len(self._titles)}"
            text = look.line(self._search)
            lines.append((("", " " * INDENT + "Search: "), ("text", look.cut(text, look.columns // 2)), ("", count)))
        room = max(1, most - len(lines))
        self._scroll(room)
        for place in range(self._first, min(self._first + room, len(self._found))):
            lines.append(self._option(look, place, self._first, room))
        return Drawing(lines)

    def _scroll(self, room: int) -> None:
        at = max(0, self._at)
        self._first = max(min(self._first, at), at - room + 1, 0)
        self._first = max(0, min(self._first, len(self._found) - room))

    def _option(self, look: Look, place: int, first: int, room: int) -> Line:
        option = self.entry.options[self._found[place]]
        chosen = self._is_chosen(option)
        mark = look.sign(*self._marks[0]) if chosen else self._marks[1]
        hidden = len(self._found) - first - room
        more = f"  ({hidden} more)" if hidden > 0 and place == first + room - 1 and room > 1 else ""
        more = f"  ({first} above)" if first and place == first and room > 1 else more
        title = look.cut(look.line(option.title), look.columns - INDENT - 6 - columns_of(more))
        style = "chosen" if place == self._at else "strong" if chosen else ""
        return (("", " " * INDENT), (style, f" {mark} {title} "), ("", more))


class OneEditor(_Choosing):
    """One option. Enter takes the highlighted one and goes on."""

    def _enter(self) -> None:
        option = self._highlighted()
        if option is not None and not self._is_chosen(option):
            self._take(option)

    def _take(self, option: Option) -> None:
        self.entry.set_value(option.value)

    def _is_chosen(self, option: Option) -> bool:
        return self.entry.value is not MISSING and numbers.key(option.value) == numbers.key(self.entry.value)


class ManyEditor(_Choosing):
    """Any number of options. Space takes or leaves the highlighted one; an answer that is too short or too long stays
    on the screen until it is right."""

    _marks = (("[×]", "[x]"), "[ ]")

    def reload(self) -> None:
        value = self.entry.value
        self._taken = [] if value is MISSING else [numbers.key(item) for item in value]
        super().reload()
        self._at = max(0, self._at)

    def _enter(self) -> None:
        """What is chosen is chosen already."""

    def _take(self, option: Option) -> None:
        key = numbers.key(option.value)
        if key in self._taken:
            self._taken.remove(key)
        else:
            self._taken.append(key)
        if not self._taken and not self.entry.required:
            self.entry.omit()
        else:
            self.entry.set_value([each.value for each in self.entry.options if numbers.key(each.value) in self._taken])

    def _is_chosen(self, option: Option) -> bool:
        return numbers.key(option.value) in self._taken
