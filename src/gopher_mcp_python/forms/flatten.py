"""One field's schema made flat: what `$ref`, `allOf` and an `anyOf` with null say is written out in one mapping.

What can't be written out is left to the judge (judge.py), which sees the schema as it was sent: flattening only finds
out what to ask, and may be laxer than the schema, never the last word.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import limits
from .errors import FormSchemaError
from .refs import resolve

# Keywords that demand nothing. The outer one counts, as in {"$ref": ..., "title": ...}.
ANNOTATIONS = frozenset(
    "title description default examples deprecated readOnly writeOnly enumNames nullable "
    "$schema $comment $id $anchor $defs definitions id contentEncoding contentMediaType contentSchema".split()
)
# Rules that are not written out as a field's: where one stands, the judge decides.
JUDGED = frozenset(
    "not if dependentRequired dependentSchemas dependencies propertyNames patternProperties minProperties "
    "maxProperties contains minContains maxContains prefixItems additionalItems unevaluatedItems unevaluatedProperties "
    "$dynamicRef $recursiveRef".split()
)
_WRITTEN_OUT = frozenset(("$ref", "allOf", "oneOf", "anyOf"))
PRIMITIVES = frozenset(("string", "number", "integer", "boolean"))
TYPES = PRIMITIVES | {"null", "array", "object"}


class Flattener:
    """Flattens the fields of one form.

    Attributes:
        judged: whether some rule could not be written out, so that the judge is needed.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._steps = 0
        self.judged = False

    def flat(self, schema: Any, where: object, refs: int = 0, *, based: bool = False) -> dict[str, Any]:
        """The keywords that a schema and what it refers to have together. "type" becomes a frozenset of names, with
        "null" in it if null is allowed; in `oneOf` and `anyOf` only options are left, flat ones, without null.

        Args:
            refs: how many $ref (and branches) led here.
            based: whether it stands below an $id of its own, from which its $ref would count.

        Raises FormSchemaError.
        """
        self._step(where, schema)
        if schema is True:
            return {}
        if not isinstance(schema, dict):
            raise FormSchemaError(f"{where} can't be answered: its schema is {_kind(schema)}")
        own = said(schema)
        based = based or isinstance(own.get("$id"), str)
        if "type" in own:
            own["type"] = _types(own["type"], where)
        if _WRITTEN_OUT.isdisjoint(own):
            return own
        ref, all_of = own.pop("$ref", None), own.pop("allOf", None)
        if ref is not None:
            if based:
                raise FormSchemaError(f"{where} has a $ref below an $id of its own; that is not followed")
            if refs >= limits.MAX_REFS:
                raise FormSchemaError(f"{where} refers to itself, or through more than {limits.MAX_REFS} $ref")
            self._merge(own, self.flat(resolve(self._root, ref, where), where, refs + 1))
        if all_of is not None:
            for part in listed(all_of, "allOf", where):
                self._merge(own, self.flat(part, where, refs + 1, based=based))
        for keyword in ("oneOf", "anyOf"):
            if keyword in own:
                branches = listed(own.pop(keyword), keyword, where)
                flat = [self.flat(one, where, refs + 1, based=based) for one in branches]
                self._alternatives(own, keyword, flat, where)
        return own

    def _step(self, where: object, schema: Any) -> None:
        self._steps += 1 + (len(schema) // 20 if isinstance(schema, dict) else 0)
        if self._steps > limits.MAX_STEPS:
            raise FormSchemaError(f"the form is too tangled to be read: more than {limits.MAX_STEPS} steps, at {where}")

    def _alternatives(self, own: dict[str, Any], keyword: str, branches: list[dict[str, Any]], where: object) -> None:
        """`oneOf` and `anyOf`: options to choose from, or one thing or null, or what only the judge understands."""
        real = [branch for branch in branches if not _is_null(branch)]
        nullable = len(real) < len(branches)
        if real and all(_option_of(branch) is not None for branch in real):
            own[keyword] = real
        elif len(real) == 1:
            self._merge(own, real[0])
        elif not real:
            self._merge(own, {"type": frozenset(("null",))})
        else:
            self._only_judged(own, real, where)
        if nullable:
            own["nullable"] = True

    def _only_judged(self, own: dict[str, Any], real: list[dict[str, Any]], where: object) -> None:
        self.judged = True
        if "type" in own or "enum" in own or "const" in own:
            return
        kinds = {kind for branch in real for kind in branch.get("type", ("anything",)) if kind != "null"}
        if kinds != {"integer", "number"} and (len(kinds) != 1 or not kinds <= PRIMITIVES):
            raise FormSchemaError(f"{where} may be of several kinds; a form's field has one")
        own["type"] = frozenset(kinds)

    def _merge(self, own: dict[str, Any], part: Mapping[str, Any]) -> None:
        """Adds what `part` says. Where both say something else the judge has to look."""
        for keyword, value in part.items():
            if keyword not in own:
                own[keyword] = value
            elif keyword == "type":
                own[keyword] = _both(own[keyword], value)
            elif keyword not in ANNOTATIONS and not _same(own[keyword], value):
                self.judged = True


def said(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What a schema says. A keyword that is null is not there, but for `const`: writers of schemas who send whatever
    they have not set as null mean nothing by it."""
    return {keyword: value for keyword, value in schema.items() if value is not None or keyword == "const"}


def listed(value: Any, keyword: str, where: object) -> list[Any]:
    """The members of a keyword that has to hold a list which is not empty."""
    if not isinstance(value, (list, tuple)) or not value:
        raise FormSchemaError(f"{where} has {article(keyword)} {keyword} that is no list, or an empty one")
    return list(value)


def article(keyword: str) -> str:
    return "an" if keyword[0] in "aeiou" else "a"


def _option_of(branch: Mapping[str, Any]) -> tuple[Any] | None:
    """The one value that a branch stands for, in a tuple; None when it is no option."""
    if "const" in branch:
        return (branch["const"],)
    enum = branch.get("enum")
    return (enum[0],) if isinstance(enum, (list, tuple)) and len(enum) == 1 else None


def option_of(branch: Mapping[str, Any]) -> Any:
    """The value of a flat branch that is an option."""
    found = _option_of(branch)
    assert found is not None
    return found[0]


def _is_null(branch: Mapping[str, Any]) -> bool:
    return branch.get("type") == {"null"} or _option_of(branch) == (None,)


def _same(one: Any, other: Any) -> bool:
    """Whether two keywords say the same, as far as that can be told at once."""
    if one is other:
        return True
    return isinstance(one, (str, int, float, bool)) and type(one) is type(other) and bool(one == other)


def _both(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Types that two schemas allow together; a whole number is a number."""
    both = one & other
    if "number" in one | other and "integer" in one | other:
        both |= {"integer"}
    return both


def _types(value: Any, where: object) -> frozenset[str]:
    if isinstance(value, str) and value in TYPES:
        return frozenset((value,))
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, (list, tuple)) or not names or not all(isinstance(name, str) for name in names):
        raise FormSchemaError(f"{where} has a type that is no text")
    unknown = [name for name in names if name not in TYPES]
    if unknown:
        raise FormSchemaError(f"{where} has the type {unknown[0][:40]!r}, which JSON Schema does not know")
    return frozenset(names)


def _kind(schema: Any) -> str:
    return "false" if schema is False else f"no object but a {type(schema).__name__}"
