"""The matcher: ECMA-262's backtracking (22.2.2), with a stack of its own and a bound on its steps.

Everything that a step changes is in registers, and each change is in `trail`, so that going back means undoing the
trail down to the mark that was made at the fork. Nothing recurses.
"""

from __future__ import annotations

from typing import Any

from .ecma_errors import PatternTimeout
from .ecma_program import Loop, Op, Program
from .ecma_sets import WORD, limited_questions

_CHEAP = 8  # characters that are looked at in the time of one step
(_TEXT, _ONE, _RUN, _FORK, _JUMP, _KEEP, _CLOSE, _START, _TURN, _ENTER, _AGAIN, _EDGE, _BACK, _LOOK, _LOOKED, _SHUN,
 _SHUNNED, _BACK_TEXT, _BACK_ONE, _MATCH) = map(int, Op)  # fmt: skip


def search(program: Program, text: str, steps: int) -> tuple[bool, int]:
    """Whether the pattern fits anywhere in the text, and how many of the `steps` are left.

    Raises PatternTimeout when they do not suffice.
    """
    with limited_questions(steps // 2):
        return _search(program, text, steps)


def _search(program: Program, text: str, steps: int) -> tuple[bool, int]:
    first = program.first
    size = len(text)
    place, last = 0, 0 if program.anchored else size
    while place <= last:
        if first is not None:
            begin = place
            while place < size and not first[text[place]]:
                place += 1
            steps -= (place - begin) // _CHEAP
            if place == size or place > last:
                break
        found, steps = _fits(program, text, place, steps - program.registers // _CHEAP)
        if found:
            return True, steps
        place += 1
    return False, steps


def _fits(program: Program, text: str, place: int, steps: int) -> tuple[bool, int]:
    """Whether the pattern fits at the place. One loop, to be read whole: a step that fits ends with `continue`."""
    code = program.steps
    size = len(text)
    registers: list[Any] = [None] * program.registers
    trail: list[tuple[int, Any]] = []
    stack: list[tuple[int, int, int, int]] = []  # next step, place, length of the trail, first place of a run (or -1)
    step = 0
    while True:
        steps -= 1
        if steps < 0:
            raise PatternTimeout
        op, a, b = code[step]
        step += 1
        if op == _TEXT:
            if text.startswith(a, place):
                place += b
                continue
        elif op == _ONE:
            if place < size and a[text[place]]:
                place += 1
                continue
        elif op == _RUN:
            begun, (least, most) = place, b
            stop = size if most is None else min(size, place + most)
            least += place
            while place < stop and a[text[place]]:
                place += 1
            steps -= (place - begun) // _CHEAP
            if place > least:
                stack.append((step, place - 1, len(trail), least))
            if place >= least:
                continue
        elif op == _FORK:
            stack.append((a, place, len(trail), -1))
            continue
        elif op == _JUMP:
            step = a
            continue
        elif op == _KEEP:
            trail.append((a, registers[a]))
            registers[a] = place
            continue
        elif op == _CLOSE:
            trail.append((b, registers[b]))
            begun = registers[a]
            registers[b] = (begun, place) if begun <= place else (place, begun)
            continue
        elif op == _TURN:
            turns = registers[a.counter]
            if a.most is not None and turns >= a.most:
                step = a.after
                continue
            if turns < a.least:
                continue
            if a.greedy:
                stack.append((a.after, place, len(trail), -1))
            else:
                stack.append((step, place, len(trail), -1))
                step = a.after
            continue
        elif op == _ENTER:
            steps -= _enter(a, place, registers, trail)
            continue
        elif op == _AGAIN:
            # A turn beyond the least that took nothing is no turn (RepeatMatcher, step 2.b).
            if registers[a.counter] <= a.least or place != registers[a.place]:
                step = b
                continue
        elif op == _START:
            trail.append((a.counter, registers[a.counter]))
            registers[a.counter] = 0
            continue
        elif op == _EDGE:
            if _is_edge(a, text, place):
                continue
        elif op == _BACK:
            if registers[a] is None:
                continue
            begun, end = registers[a]
            length = end - begun
            steps -= length // _CHEAP
            begin = place - length if b else place
            if begin >= 0 and text.startswith(text[begun:end], begin):
                place = begin if b else place + length
                continue
        elif op == _LOOK or op == _SHUN:
            trail += [(register, registers[register]) for register in a]
            registers[a[0]], registers[a[1]] = len(stack), place
            if op == _SHUN:
                stack.append((b, place, len(trail), -1))
            continue
        elif op == _LOOKED:
            del stack[registers[a[0]] :]
            place = registers[a[1]]
            continue
        elif op == _SHUNNED:
            del stack[registers[a[0]] :]
        elif op == _BACK_ONE:
            if place and a[text[place - 1]]:
                place -= 1
                continue
        elif op == _BACK_TEXT:
            if place >= b and text.startswith(a, place - b):
                place -= b
                continue
        else:
            return True, steps
        if not stack:
            return False, steps
        step, place, mark, least = stack.pop()
        if place > least >= 0:
            stack.append((step, place - 1, mark, least))
        while len(trail) > mark:
            register, value = trail.pop()
            registers[register] = value


def _enter(loop: Loop, place: int, registers: list[Any], trail: list[tuple[int, Any]]) -> int:
    """Begins a turn: counted, its place kept, the groups in it forgotten. Returns the steps that this is worth."""
    trail.append((loop.counter, registers[loop.counter]))
    trail.append((loop.place, registers[loop.place]))
    registers[loop.counter] += 1
    registers[loop.place] = place
    for group in loop.groups:
        if registers[group] is not None:
            trail.append((group, registers[group]))
            registers[group] = None
    return len(loop.groups)


def _is_edge(kind: str, text: str, place: int) -> bool:
    if kind == "^":
        return place == 0
    if kind == "$":
        return place == len(text)
    before = place > 0 and WORD[text[place - 1]]
    after = place < len(text) and WORD[text[place]]
    return (before != after) == (kind == "b")
