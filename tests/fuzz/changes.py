"""Changes JSON documents as JSON: a mutation of bytes would hardly ever leave one."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

__all__ = ["bytes_changed", "changed", "json_mutator"]

LEAVES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 0.5, -0.0, 2**31, 2**53 + 1, 10**30, 1e308, 1e-320, "", "a", " ", "null", "0",
    "true", "__proto__", "\u202e", "\ud800", "\x00", "é", "e\u0301", "😀", "ſ", "K", "a" * 300, [], {}, [[]],
    {"": None},
]  # fmt: skip
Node = tuple[Any, Any]  # the list or dict, and the index or name in it


def json_mutator(words: Sequence[Any]) -> Callable[[bytes, int, int], bytes]:
    """A custom mutator as libFuzzer wants it: (data, largest size, seed) -> data.

    Args:
        words: values and names that the target knows.
    """

    def mutate(data: bytes, most: int, seed: int) -> bytes:
        chance = Random(seed)
        try:
            value = json.loads(data)
        except (ValueError, RecursionError):
            return bytes_changed(data, most, seed)
        if chance.random() < 0.05:
            return bytes_changed(data, most, seed)
        for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
            value = changed(value, chance, words)
        result = json.dumps(value).encode()
        return result if len(result) <= most else bytes_changed(data, most, seed)

    return mutate


def changed(value: Any, chance: Random, words: Sequence[Any]) -> Any:
    """The value with one change somewhere in it. It is changed in place, unless it is no list or dict."""
    nodes = list(_nodes(value))
    if not nodes:
        return _leaf(chance, words)
    place, key = chance.choice(nodes)
    how = chance.randrange(9)
    if how == 0:
        del place[key]
    elif how == 1:
        place[key] = _leaf(chance, words)
    elif how == 2:
        there, name = chance.choice(nodes)
        place[key] = _copy(there[name])
    elif how == 3:
        _add(place, chance, words, _copy(chance.choice(nodes)[0]) if chance.random() < 0.3 else _leaf(chance, words))
    elif how == 4 and isinstance(place, dict):
        place[_name(chance, words)] = place.pop(key)
    elif how == 5:
        place[key] = [place[key]] if chance.random() < 0.5 else {_name(chance, words): place[key]}
    elif how == 6 and isinstance(place, list):
        place.insert(key, _copy(place[key]))
    elif how == 7 and isinstance(place, list):
        chance.shuffle(place)
    else:
        place[key] = _near(place[key], chance, words)
    return value


def _nodes(value: Any) -> Any:
    inside = [value]
    while inside:
        place = inside.pop()
        keys = list(place) if isinstance(place, dict) else range(len(place)) if isinstance(place, list) else ()
        for key in keys:
            yield place, key
            inside.append(place[key])


def _copy(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _leaf(chance: Random, words: Sequence[Any]) -> Any:
    return _copy(chance.choice(words if words and chance.random() < 0.6 else LEAVES))


def _name(chance: Random, words: Sequence[Any]) -> str:
    names = [word for word in words if isinstance(word, str)] or ["a"]
    return chance.choice(names)


def _add(place: Any, chance: Random, words: Sequence[Any], value: Any) -> None:
    if isinstance(place, dict):
        place[_name(chance, words)] = value
    else:
        place.append(value)


def _near(value: Any, chance: Random, words: Sequence[Any]) -> Any:
    if isinstance(value, bool) or value is None:
        return chance.choice((True, False, None))
    if isinstance(value, (int, float)):
        near = [value + 1, value - 1, -value, value * 2, value / 2 if abs(value) < 1e300 else 0, int(abs(value) < 2)]
        return chance.choice(near)
    if isinstance(value, str):
        return _near_text(value, chance, words)
    return _leaf(chance, words)


def _near_text(text: str, chance: Random, words: Sequence[Any]) -> str:
    at, upto = sorted((chance.randrange(len(text) + 1), chance.randrange(len(text) + 1)))
    letter = chr(chance.randrange(chance.choice((0x250, 0x110000))))
    put = chance.choice(("", text[at:upto] * 2, letter, letter * 3, str(_leaf(chance, words))))
    return text[:at] + put + text[upto:]


def bytes_changed(data: bytes, most: int, seed: int) -> bytes:
    """Some bytes taken out, put in, repeated or changed."""
    chance = Random(seed)
    changed = bytearray(data)
    for _ in range(chance.choice((1, 1, 2, 4, 8))):
        at = chance.randrange(len(changed) + 1)
        how = chance.randrange(4)
        if how == 0:
            del changed[at : at + chance.randrange(1, 9)]
        elif how == 1:
            changed[at:at] = bytes(chance.getrandbits(8) for _ in range(chance.randrange(1, 5)))
        elif how == 2 and at < len(changed):
            changed[at] = chance.choice((0, 0x1E, 0xFF, changed[at] ^ 1 << chance.randrange(8)))
        else:
            upto = chance.randrange(len(changed) + 1)
            changed[at:at] = changed[min(at, upto) : max(at, upto)]
    return bytes(changed[:most])
