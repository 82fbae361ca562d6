"""One answer, judged by one schema: counts its steps, and notes which members of the answer were looked at on the way
(JSON Schema 2020-12 Core, 7.7 and 11), so that `unevaluatedProperties` need not look a second time."""

from __future__ import annotations

from typing import Any, NamedTuple

from . import limits
from .rules import Watch
from .vetting import Vetted

SHOWN = 50  # faults that are looked for
_LATE = frozenset(("unevaluatedItems", "unevaluatedProperties"))  # what they are about the others have to say first


class TooMuch(Exception):
    """The limit on the work was passed."""


class TooDeep(Exception):
    """Schemas inside schemas, too many of them."""


class Fault(NamedTuple):
    """A rule that was broken: at which field (None: all answers together), by which keyword, of which value."""

    name: str | None
    keyword: str
    argument: Any


class Spot:
    """A value that is judged by a schema.

    Attributes:
        name: of the field to which the value belongs; None for all answers together.
        names, items: the value's members that were looked at.
    """

    __slots__ = ("items", "name", "names", "schema", "value")

    def __init__(self, schema: dict[str, Any], value: Any, name: str | None) -> None:
        self.schema, self.value, self.name = schema, value, name
        self.names: set[str] = set()
        self.items: set[int] = set()


class Run:
    """One judgement.

    Attributes:
        found: the faults, as far as they were looked for.
        watching: whether some rule asks which members were looked at.
    """

    def __init__(self, vetted: Vetted, version: int) -> None:
        from .keywords import checks_of

        self.vetted, self.version = vetted, version
        self.found: list[Fault] = []
        self.watching = not _LATE.isdisjoint(vetted.keywords)
        self._checks = checks_of(version)
        self._left, self._depth, self._quiet = limits.MAX_CHECKS, 0, 0
        self._watch = Watch()

    def charge(self, steps: int) -> None:
        """Raises TooMuch beyond the limit. A step is something like a microsecond."""
        self._left -= steps
        if self._left < 0:
            raise TooMuch

    def fits(self, schema: Any, value: Any, name: str | None, above: Spot | None = None) -> bool:
        """Whether the value keeps the schema's rules. `above` is where the same value is judged by the schema that this
        one belongs to; it is told what was looked at, if the value fits."""
        if isinstance(schema, bool):
            self.charge(1)
            return schema
        self.charge(2 + 2 * len(schema))
        self._depth += 1
        if self._depth > limits.MAX_NESTED:
            raise TooDeep
        spot = Spot(schema, value, name)
        good = self._all_hold(spot)
        self._depth -= 1
        if good and above is not None and self.watching:
            self.charge(len(spot.names) + len(spot.items))
            above.names |= spot.names
            above.items |= spot.items
        return good

    def _all_hold(self, spot: Spot) -> bool:
        schema = spot.schema
        if self.version <= 7 and schema.get("$ref") is not None:
            return self._holds("$ref", spot)  # up to draft 7, what stands beside a $ref does not count
        good = True
        for keyword in schema:
            if keyword in self._checks and keyword not in _LATE and not self._holds(keyword, spot):
                good = False
                if self._quiet:
                    return False
        for keyword in _LATE & schema.keys() if self.watching else ():
            if keyword in self._checks and not self._holds(keyword, spot):
                good = False
        return good

    def _holds(self, keyword: str, spot: Spot) -> bool:
        argument = spot.schema[keyword]
        if argument is None and keyword != "const":
            return True
        told = len(self.found)
        good = self._checks[keyword](self, argument, spot)
        if not good and len(self.found) == told:  # whoever looked further inside has said it already
            self.tell(Fault(spot.name, keyword, argument))
        return good

    def silently(self, schema: Any, value: Any, above: Spot | None = None) -> bool:
        """The same as `fits`, where it is no fault not to fit."""
        self._quiet += 1
        good = self.fits(schema, value, None, above)
        self._quiet -= 1
        return good

    def tell(self, fault: Fault) -> None:
        """Notes a fault, unless it is none or there are enough."""
        if not self._quiet:
            self.found.append(fault)
            self._quiet += len(self.found) == SHOWN

    def search(self, source: str, text: str) -> bool:
        """Whether a pattern is found in a text. Raises Broken when that takes too long."""
        pattern = self.vetted.patterns[source]
        # without the u flag a text is first written as UTF-16
        self.charge(10 + (len(text) // 5 if pattern.unicode or text.isascii() else len(text) * 2 // 5))
        return self._watch.search(pattern, text)

    def equal(self, one: Any, other: Any) -> bool:
        """Equal as JSON: 1 and 1.0 are, 1 and true are not."""
        self.charge(1)
        if isinstance(one, bool) or isinstance(other, bool):
            return one is other
        if isinstance(one, str) or isinstance(other, str):
            self.charge(len(one) // 100 if isinstance(one, str) else 0)
            return type(one) is type(other) and bool(one == other)
        if isinstance(one, list) or isinstance(other, list):
            alike = isinstance(one, list) and isinstance(other, list) and len(one) == len(other)
            return alike and all(map(self.equal, one, other))
        if isinstance(one, dict) or isinstance(other, dict):
            alike = isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys()
            return alike and all(self.equal(value, other[name]) for name, value in one.items())
        return bool(one == other)
