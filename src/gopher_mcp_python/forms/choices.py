"""The options of a field: `enum` (with `enumNames`), `const`, and `oneOf` or `anyOf` of consts with titles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import limits, numbers
from .errors import FormSchemaError
from .flatten import ANNOTATIONS, Flattener, option_of


@dataclass(frozen=True, repr=False)
class Option:
    """One of the values to choose from.

    Attributes:
        value: what is sent: text, a number or a boolean.
        title: what people see; the value itself where the server gave no title.
    """

    value: Any
    title: str

    def __repr__(self) -> str:
        return f"Option({self.title!r})"


def read_options(flat: Mapping[str, Any], where: object, flattener: Flattener) -> tuple[Option, ...] | None:
    """The options that a flat schema offers; None when it is no choice. Where it lists them more than once, the first
    list counts for what is shown and the judge for what is valid.

    Raises FormSchemaError for options that can't be sent, too many, and none.
    """
    lists = [keyword for keyword in ("oneOf", "anyOf", "enum", "const") if keyword in flat]
    if not lists:
        return None
    flattener.judged |= len(lists) > 1
    keyword = lists[0]
    pairs = list(_pairs(flat, keyword, where))
    if len(pairs) > limits.MAX_OPTIONS:
        raise FormSchemaError(f"{where} offers {len(pairs)} options; more than {limits.MAX_OPTIONS} are not read")
    counts: dict[tuple[str, Any], int] = {}
    for value, _ in pairs:
        _check_value(value, where)
        counts[numbers.key(value)] = counts.get(numbers.key(value), 0) + 1
    if keyword in ("oneOf", "anyOf"):
        flattener.judged |= any(_says_more(branch) for branch in flat[keyword])
    options: dict[tuple[str, Any], Option] = {}
    for value, title in pairs:
        key = numbers.key(value)
        # A value that two of `oneOf` allow is not allowed at all.
        if value is not None and _fits(value, flat.get("type")) and not (keyword == "oneOf" and counts[key] > 1):
            options.setdefault(key, Option(_sent(value, flat.get("type")), _title(title, value, where)))
    if not options:
        raise FormSchemaError(f"{where} offers nothing to choose from")
    return tuple(options.values())


def _pairs(flat: Mapping[str, Any], keyword: str, where: object) -> Iterator[tuple[Any, Any]]:
    if keyword == "const":
        yield flat["const"], None
    elif keyword == "enum":
        values, names = flat["enum"], flat.get("enumNames")
        if not isinstance(values, (list, tuple)):
            raise FormSchemaError(f"{where} has an enum that is no list")
        names = names if isinstance(names, (list, tuple)) and len(names) == len(values) else [None] * len(values)
        yield from zip(values, names, strict=True)
    else:
        for branch in flat[keyword]:
            yield option_of(branch), branch.get("title")


def _says_more(branch: Mapping[str, Any]) -> bool:
    """Whether an option has rules beside its value, which only the judge minds."""
    rules = branch.keys() - ANNOTATIONS - {"const", "enum"}
    if rules == {"type"} and "const" in branch:
        return not _fits(branch["const"], branch["type"])
    return bool(rules) or len(branch.keys() & {"const", "enum"}) > 1


def _check_value(value: Any, where: object) -> None:
    if value is not None and not isinstance(value, (str, int, float)):
        raise FormSchemaError(f"{where} offers {_thing(value)} to choose; an option is text, a number or a boolean")
    if isinstance(value, str) and len(value) > limits.MAX_TITLE:
        raise FormSchemaError(f"{where} offers an option of more than {limits.MAX_TITLE} characters")


def _sent(value: Any, types: frozenset[str] | None) -> Any:
    """The 2.0 of a whole-number field is sent as 2."""
    whole = isinstance(value, float) and types is not None and "number" not in types
    return int(value) if whole else value


def _thing(value: Any) -> str:
    return "an object" if isinstance(value, dict) else "a list"


def _title(title: Any, value: Any, where: object) -> str:
    if not isinstance(title, str) or not title.strip():
        return shown_value(value)
    if len(title) > limits.MAX_TITLE:
        raise FormSchemaError(f"{where} has an option whose title is longer than {limits.MAX_TITLE} characters")
    return title


def shown_value(value: Any) -> str:
    """An option without a title, for people."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value if value.strip() else f'"{value}"'
    return numbers.plain(value)


def _fits(value: Any, types: frozenset[str] | None) -> bool:
    """Whether an option is of a type that the schema allows; others can't be chosen."""
    if types is None:
        return True
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, str):
        return "string" in types
    if value is None:
        return "null" in types
    whole = isinstance(value, int) or value.is_integer()
    return "number" in types or ("integer" in types and whole)
