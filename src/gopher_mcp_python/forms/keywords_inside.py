"""Keywords of JSON Schema that hold other schemas, or look at the members of a value (see keywords.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .judging import SHOWN, Fault, Run, Spot

# ---- rules that hold other schemas for the same value ---------------------------------------------------------------


def ref(run: Run, argument: str, spot: Spot) -> bool:
    return run.fits(run.vetted.targets[argument], spot.value, spot.name, spot)


def _every(results: Iterable[bool]) -> bool:
    """Whether all are true; does not stop at the first that is not, for its fault is not the only one to tell."""
    return all(list(results))


def all_of(run: Run, argument: list[Any], spot: Spot) -> bool:
    return _every(run.fits(each, spot.value, spot.name, spot) for each in argument)


def any_of(run: Run, argument: list[Any], spot: Spot) -> bool:
    results = (run.silently(each, spot.value, spot) for each in argument)
    return any(list(results)) if run.watching else any(results)


def one_of(run: Run, argument: list[Any], spot: Spot) -> bool:
    fitting = 0
    for each in argument:
        fitting += run.silently(each, spot.value, spot)
        if fitting > 1:
            return False
    return fitting == 1


def not_(run: Run, argument: Any, spot: Spot) -> bool:
    return not run.silently(argument, spot.value)


def if_(run: Run, argument: Any, spot: Spot) -> bool:
    branch = spot.schema.get("then" if run.silently(argument, spot.value, spot) else "else")
    return branch is None or run.fits(branch, spot.value, spot.name, spot)


# ---- rules of all answers together ----------------------------------------------------------------------------------


def required(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, dict) or isinstance(argument, bool):
        return True
    run.charge(len(argument))
    missing = [name for name in argument if name not in spot.value]
    for name in missing[:SHOWN]:
        run.tell(Fault(name, "required", argument))
    return not missing


def depend(run: Run, argument: dict[str, Any], spot: Spot) -> bool:
    """For each answer that is there: the other answers, or the schema, that it asks for."""
    if not isinstance(spot.value, dict):
        return True
    run.charge(len(argument))
    asked = [inner for name, inner in argument.items() if name in spot.value]
    return _every(
        required(run, each, spot) if isinstance(each, list) else run.fits(each, spot.value, spot.name, spot)
        for each in asked
    )


def _members(run: Run, keyword: str, spot: Spot, schemas: Iterable[tuple[str, Any]]) -> bool:
    """Judges answers one by one, each by its schema."""
    good = True
    for name, schema in schemas:
        spot.names.add(name)
        if not run.fits(schema, spot.value[name], name):
            good = False
            if schema is False:
                run.tell(Fault(name, keyword, schema))
    return good


def properties(run: Run, argument: dict[str, Any], spot: Spot) -> bool:
    if not isinstance(spot.value, dict):
        return True
    fewer, others = (argument, spot.value) if len(argument) <= len(spot.value) else (spot.value, argument)
    run.charge(len(fewer))
    return _members(run, "properties", spot, [(name, argument[name]) for name in fewer if name in others])


def additional(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, dict):
        return True
    run.charge(len(spot.value))
    known = spot.schema.get("properties") or ()
    return _members(run, "additionalProperties", spot, [(name, argument) for name in spot.value if name not in known])


def unevaluated(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, dict):
        return True
    run.charge(len(spot.value))
    return _members(
        run, "unevaluatedProperties", spot, [(name, argument) for name in spot.value if name not in spot.names]
    )


def property_names(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, dict):
        return True
    run.charge(len(spot.value))
    return all(run.silently(argument, name) for name in spot.value)


# ---- rules of lists -------------------------------------------------------------------------------------------------


def _judge_items(run: Run, spot: Spot, schemas: Iterable[tuple[int, Any]]) -> bool:
    pairs = list(schemas)
    run.charge(len(pairs))
    spot.items.update(index for index, _ in pairs)
    return _every(run.fits(schema, spot.value[index], spot.name) for index, schema in pairs)


def items(run: Run, argument: Any, spot: Spot) -> bool:
    """A list of schemas is draft 2019-09's way (and before) of saying prefixItems."""
    if not isinstance(spot.value, list):
        return True
    if isinstance(argument, list):
        return prefix_items(run, argument, spot)
    first = len(spot.schema.get("prefixItems") or ()) if run.version >= 2020 else 0
    return _judge_items(run, spot, ((index, argument) for index in range(first, len(spot.value))))


def prefix_items(run: Run, argument: list[Any], spot: Spot) -> bool:
    if not isinstance(spot.value, list):
        return True
    return _judge_items(run, spot, enumerate(argument[: len(spot.value)]))


def additional_items(run: Run, argument: Any, spot: Spot) -> bool:
    first = spot.schema.get("items")
    if not isinstance(spot.value, list) or not isinstance(first, list):
        return True
    return _judge_items(run, spot, ((index, argument) for index in range(len(first), len(spot.value))))


def contains(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, list):
        return True
    run.charge(len(spot.value))
    fitting = [index for index, item in enumerate(spot.value) if run.silently(argument, item)]
    spot.items.update(fitting)
    if run.version < 2019:
        return bool(fitting)
    least, most = spot.schema.get("minContains"), spot.schema.get("maxContains")
    return (1 if least is None else least) <= len(fitting) and (most is None or len(fitting) <= most)


def unevaluated_items(run: Run, argument: Any, spot: Spot) -> bool:
    if not isinstance(spot.value, list):
        return True
    run.charge(len(spot.value))
    return _judge_items(run, spot, [(at, argument) for at in range(len(spot.value)) if at not in spot.items])
