"""The rules of one field, applied to a value. Messages are the rest of a sentence that begins with the field's name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..display import safe_line
from . import limits, numbers
from .bounds import is_number, is_unsendable

if TYPE_CHECKING:
    from .fields import Field
    from .pattern import Budget, Pattern


class Broken(ValueError):
    """A value breaks a rule; the text says which, without the value."""


class Watch:
    """Counts the steps that the patterns of one form take together."""

    def __init__(self) -> None:
        self._budget: Budget | None = None  # of pattern.py, which is imported for the first pattern

    def search(self, pattern: Pattern, text: str) -> bool:
        """Whether the pattern is found in the text. Raises Broken when that takes too long."""
        if self._budget is None:
            from .pattern import Budget

            self._budget = Budget(limits.PATTERN_STEPS)
        try:
            return pattern.search(text, self._budget)
        except ValueError:  # PatternTimeout
            raise Broken(_too_long(self._budget)) from None


def _too_long(budget: Budget) -> str:
    from .pattern import PATTERN_STEPS

    steps = f"{PATTERN_STEPS} steps" if budget.steps > 0 else f"{limits.PATTERN_STEPS} steps with the form's others"
    return f"can't be checked: its pattern needs more than {steps}"


def cleaned(field: Field, value: Any, watch: Watch) -> Any:
    """`value` as it is sent: plain str, int, float, bool or list of str; a whole float of an integer field is an int,
    an option is the option's own value. Raises Broken."""
    if field.kind == "choices":
        return _cleaned_list(field, value, watch)
    if field.options:
        return _cleaned_option(field, _chosen(field, value), watch)
    if field.kind == "string":
        return cleaned_text(field, value, watch)
    if field.kind == "boolean":
        if not isinstance(value, bool):
            raise Broken("must be yes or no")
        return value
    return cleaned_number(field, value)


def _cleaned_option(field: Field, value: Any, watch: Watch) -> Any:
    if isinstance(value, bool):
        return value
    return cleaned_text(field, value, watch) if isinstance(value, str) else cleaned_number(field, value)


def _chosen(field: Field, value: Any) -> Any:
    fitting = isinstance(value, str) or isinstance(value, bool) or is_number(value)
    found = field.values.get(numbers.key(plain_value(value)), field) if fitting else field
    if found is field:
        raise Broken(_options_text(field))
    return found


def _options_text(field: Field) -> str:
    if field.kind == "boolean":
        return f"must be {field.options[0].title}"
    if len(field.options) > 5:
        return f"must be one of the {len(field.options)} options"
    listed = [f'"{safe_line(option.title, limit=40)}"' for option in field.options]
    return f"must be {', '.join(listed[:-1])} or {listed[-1]}" if len(listed) > 1 else f"must be {listed[0]}"


def _cleaned_list(field: Field, value: Any, watch: Watch) -> list[str]:
    if not isinstance(value, (list, tuple)):
        raise Broken("must be a list of options" if field.options else "must be a list of texts")
    if len(value) > limits.MAX_CHOSEN:
        raise Broken(f"must not have more than {limits.MAX_CHOSEN} items")
    items = [_cleaned_item(field, item, watch) for item in value]
    if field.min_items is not None and len(items) < field.min_items:
        raise Broken(f"needs at least {_count(field.min_items, 'item')}{_chosen_word(field)}")
    if field.max_items is not None and len(items) > field.max_items:
        raise Broken(f"takes at most {_count(field.max_items, 'item')}{_chosen_word(field)}")
    if field.unique_items and len(set(items)) < len(items):
        raise Broken("must not hold the same item twice")
    return items


def _chosen_word(field: Field) -> str:
    return " chosen" if field.options else ""


def _cleaned_item(field: Field, item: Any, watch: Watch) -> str:
    if not isinstance(item, str):
        raise Broken("must hold nothing but texts")
    if field.options and numbers.key(plain_value(item)) not in field.values:
        raise Broken("must hold nothing but options of the list")
    try:
        return cleaned_text(field, item, watch)
    except Broken as broken:
        raise Broken(f"holds an item that {broken}") from None


def cleaned_text(field: Field, value: Any, watch: Watch) -> str:
    """A text that keeps the field's rules. Raises Broken."""
    if not isinstance(value, str):
        raise Broken("must be text")
    text: str = plain_value(value)
    if len(text) > limits.MAX_TEXT:
        raise Broken(f"must not be longer than {limits.MAX_TEXT} characters")
    if is_unsendable(text):
        raise Broken("must not hold half a character (a lone surrogate)")
    if field.min_length is not None and len(text) < field.min_length:
        raise Broken(f"must be at least {_count(field.min_length, 'character')} long")
    if field.max_length is not None and len(text) > field.max_length:
        raise Broken(f"must be at most {_count(field.max_length, 'character')} long")
    if field.format is not None:
        from .formats import check_format

        reason = check_format(field.format, text)
        if reason is not None:
            raise Broken(reason)
    if field.compiled is not None and not watch.search(field.compiled, text):
        raise Broken(f'must match the pattern "{safe_line(field.pattern or "", limit=80)}"')
    return text


def cleaned_number(field: Field, value: Any) -> Any:
    """A number that keeps the field's rules. Raises Broken."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Broken("must be a whole number" if field.kind == "integer" else "must be a number")
    value = plain_value(value)
    if isinstance(value, int) and not is_number(value):
        raise Broken(f"must not have more than {limits.MAX_DIGITS} digits")
    if not is_number(value):
        raise Broken("must be a number that can be written down, not NaN or infinity")
    if field.kind == "integer":
        if isinstance(value, float) and not value.is_integer():
            raise Broken("must be a whole number")
        value = int(value)
    _check_range(field, value)
    return value


def _check_range(field: Field, value: float) -> None:
    if field.minimum is not None and value < field.minimum:
        raise Broken(f"must be {numbers.shown(field.minimum)} or more")
    if field.maximum is not None and value > field.maximum:
        raise Broken(f"must be {numbers.shown(field.maximum)} or less")
    if field.exclusive_minimum is not None and value <= field.exclusive_minimum:
        raise Broken(f"must be more than {numbers.shown(field.exclusive_minimum)}")
    if field.exclusive_maximum is not None and value >= field.exclusive_maximum:
        raise Broken(f"must be less than {numbers.shown(field.exclusive_maximum)}")
    if field.multiple_of is not None and not numbers.is_multiple(value, numbers.exact(field.multiple_of)):
        raise Broken(f"must be a multiple of {numbers.shown(field.multiple_of)}")


def plain_value(value: Any) -> Any:
    """A value without what a subclass adds to it (members of an Enum that is a str or an int)."""
    for kind in (str, bool, int, float):
        if isinstance(value, kind):
            return value if type(value) is kind else _stripped(kind, value)
    return value


def _stripped(kind: type, value: Any) -> Any:
    return str.__str__(value) if kind is str else getattr(kind, f"__{kind.__name__}__")(value)


def _count(number: int, noun: str) -> str:
    return f"{numbers.shown(number)} {noun}" if number == 1 else f"{numbers.shown(number)} {noun}s"
