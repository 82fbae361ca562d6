"""What a form looks like on a terminal, line by line. All text of servers and people is made harmless here.

What a field's state is stands before the server's text on the line, so that no title or default can pass for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..display import quoted_block, rows_of, safe_line
from ..forms import MISSING
from .console import columns
from .form import Entry, FormModel
from .form_texts import NO_SECRETS, secret_warning, what_is_asked

__all__ = ["OPTIONS_AT_ONCE", "heading", "introduction", "options", "problem", "prompt", "review"]

OPTIONS_AT_ONCE = 30
_TYPING = (
    'Enter takes what is in [brackets], or leaves an optional field out; "" is an empty text. Some words mean more: '
    '"back" goes to the field before, "skip" leaves a field out, "cancel" cancels, "decline" declines. To answer with '
    "such a word, put it in quotes."
)


def introduction(asker: str, message: str, model: FormModel, *more: str, can_answer: bool = True) -> str:
    """Who asks for what and, where that is possible, how to answer; `more` are further sentences about that."""
    count = len(model.entries)
    lines = ["", _theirs(f"{asker} asks you to {what_is_asked(count)}.")]
    texts = (message, model.form.title or "", model.form.description or "")
    lines += [quoted_block(text, columns=columns()) for text in texts if text.strip()]
    lines += [_wrapped(NO_SECRETS)] if count else []
    if can_answer:
        lines += [_wrapped(rule) for rule in ((_TYPING, *more) if count else more) if rule]
    return "\n".join([*lines, ""])


def _wrapped(text: str, before: str = "") -> str:
    return "\n".join(before + row for row in rows_of(text, min(100, columns() - 1) - len(before)))


def _theirs(text: str) -> str:
    """A line with a server's words, or a person's: what does not fit on it is marked, and passes for no line of
    ours."""
    return "\n      | ".join(rows_of(text, columns() - 9))


def heading(entry: Entry, number: int, count: int) -> str:
    """What a field asks for."""
    lines = ["", _theirs(f"({number} of {count}{', required' if entry.required else ''}) {entry.label}")]
    if entry.description:
        lines.append(quoted_block(entry.description, columns=columns()))
    if entry.hint:
        lines.append(_theirs(f"  {entry.hint}"))
    if entry.is_secret_named:
        warning = f"WARNING: {secret_warning(entry.field)} What you type here is not shown."
        lines.append(_wrapped(warning, "  "))
    return "\n".join([*lines, ""])


def options(entry: Entry, first: int = 0) -> str:
    """The numbered options, so many at once; "" when there are none."""
    if entry.field.kind == "boolean" or first >= len(entry.options):
        return ""
    shown = list(enumerate(entry.options, 1))[first : first + OPTIONS_AT_ONCE]
    lines = [_theirs(f"  {number}  {safe_line(option.title, limit=100)}") for number, option in shown]
    rest = len(entry.options) - first - len(shown)
    if rest:
        lines.append(f'  ... {rest} more: "more" lists them')
    return "\n".join([*lines, ""])


def prompt(entry: Entry, *, can_go_back: bool) -> str:
    """The beginning of the line on which is typed."""
    return f"{safe_line(entry.label, limit=40)}{_filled(entry)}{_words(entry, can_go_back)}: "


def _filled(entry: Entry) -> str:
    return "" if entry.value is MISSING else f" [{_value(entry, 40)}]"


def _words(entry: Entry, can_go_back: bool) -> str:
    words = ["y/n"] if entry.field.kind == "boolean" and not entry.options else []
    if entry.value is MISSING and not entry.required:
        words.append("Enter: leave out")
    words += ["back"] if can_go_back else []
    words += ["skip"] if entry.value is not MISSING and not entry.required else []
    return f" ({', '.join(words)})" if words else ""


def _value(entry: Entry, limit: int) -> str:
    if entry.is_secret_named:
        return "not shown"
    return safe_line(entry.text, limit=limit) or '""'


def review(model: FormModel, asker: str) -> str:
    """All answers as they will be sent."""
    return "\n".join(["", _theirs(f"Your answers to {asker}:"), *map(_theirs, _reviewed(model)), ""])


def problem(entry: Entry, what: str) -> str:
    """What is wrong with an answer."""
    return _theirs(f"{entry.label} {what}.") + "\n"


def _reviewed(model: FormModel) -> Iterator[str]:
    for number, entry in enumerate(model.entries, 1):
        if entry.value is MISSING:
            yield f"  {number}  (left out) {entry.label}"
        elif entry.is_secret_named:
            yield f"  {number}  (not shown) {entry.label}"
        else:
            mark = {"default": "(default) ", "empty": "(empty) "}.get(entry.state, "")
            yield f"  {number}  {mark}{entry.label}: {_value(entry, 200)}"
