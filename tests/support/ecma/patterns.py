"""Random patterns and texts, from a source of randomness: three grammars, each with what it is to find out.

Plain generators and no Hypothesis strategies, since thousands of patterns are wanted in a few seconds, of which a
strategy makes fewer and duller ones. What fails is short as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

Atom = Callable[[Random], str]

_COUNTS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,2}", "{2,}", "{0,1}?", "{1,}?", "{2,3}?"]
_NO_COUNTS = ["{2,1}", "{,2}", "++", "{1", "{"]
_OPENINGS = ["("] * 5 + ["(?:"] * 3 + ["(?<n>", "(?=", "(?!", "(?<=", "(?<!"]
_LETTERS = [*"aab1_-é😀ä \n\r\u2028\ufeffαA", "\ud83d", "\ude00"]
_ESCAPES = r"""
\d \D \w \W \s \S . \b \B ^ $ [^] [] \t \n \x61 \u0061 \cJ \0 \. \/ \- \_ \8 \07 \1x \c \k } ] {1 { \u{61} \u{1F600}
\ud83d\ude00 \ud83d \ude00 \u{110000} \u12 \x1 \p{L} \P{Lu} \p{Nd} \p{Script=Greek} \p{sc=Latn} \p{gc=Ll} \p{L
\p{Greek} \p{ASCII} \P{Any} \k<n1> \k<n9>
""".split()
_CLASS_PIECES = [*_LETTERS[:8], *r"a-z b-a b-b - \- \b \d \w \s \S \W a-\d \w-a ^ [ ( . \] \0 \1 \c1 \c \k".split(),
                 r"\ud83d\ude00", r"\u{1F600}-\u{1F64F}", r"\p{L}", r"\P{L}", r"\p{Lu}", "é-ü", "\\n"]  # fmt: skip
_SIGNS = "(((()))[[]]{}}??**++||\\\\\\^$-,:=!<>>abkpux012"


def pattern(random: Random) -> str:
    """A pattern of one of the three grammars."""
    kind = random.random()
    if kind < 0.55:
        return _finished(random, _choice(random, 3, _plain))
    if kind < 0.9:
        return _finished(random, _choice(random, 2, _wide))
    return "".join(random.choices(_SIGNS, k=random.randint(1, 10)))


def texts(random: Random, source: str, count: int) -> list[str]:
    """Texts for it: of its letters, where it has no others than a and b; else of those that matter to some set."""
    letters = ["a", "b"] if re.fullmatch(r"[\x00-\x7f]*", source) and "[" not in source else [*"aab", *_LETTERS]
    if random.random() < 0.2:
        letters = [*_LETTERS, *"\\c{]nk\n"]
    return ["".join(random.choices(letters, k=random.randint(0, 6))) for _ in range(count)]


def _plain(random: Random) -> str:
    """Few letters, many references: what groups hold, how far loops go, in which order."""
    return random.choice(["a", "a", "a", "b", "b", ".", "\\1", "\\1", "\\2", "\\3", "^", "$", "\\b", "[ab]", ""])


def _wide(random: Random) -> str:
    """Each escape, each kind of class, letters of all widths, quantifiers that are none."""
    kind = random.random()
    if kind < 0.35:
        return random.choice(_LETTERS)
    if kind < 0.7:
        return random.choice(_ESCAPES)
    if kind < 0.74:
        return random.choice(_NO_COUNTS)
    pieces = "".join(random.choices(_CLASS_PIECES, k=random.randint(0, 3)))
    return f"[{random.choice(['', '^'])}{pieces}]"


def _choice(random: Random, depth: int, atom: Atom) -> str:
    options = [_sequence(random, depth, atom) for _ in range(random.choice([1, 1, 1, 2, 2, 3]))]
    return "|".join(options)


def _sequence(random: Random, depth: int, atom: Atom) -> str:
    return "".join(_term(random, depth, atom) for _ in range(random.choice([0, 1, 1, 2, 2, 3])))


def _term(random: Random, depth: int, atom: Atom) -> str:
    if depth and random.random() < 0.45:
        opening = random.choice(_OPENINGS)
        piece = f"{opening}{_choice(random, depth - 1, atom)})"
        counted = 0.5 if opening[1:2] != "?" or opening in ("(?:", "(?<n>") else 0.03
    else:
        piece = atom(random)
        counted = 0.25 if piece not in ("", "^", "$", "\\b", "\\B") else 0
    return piece + random.choice(_COUNTS) if random.random() < counted else piece


def _finished(random: Random, source: str) -> str:
    """Names and numbers of groups that exist, mostly; the whole text or a part of it."""
    names = iter(range(1, 1_000))
    # Two groups of one name are an error up to ES2024 and none since.
    source = re.sub(r"\(\?<n>", lambda _: f"(?<n{next(names)}>", source)
    groups = len(re.findall(r"\((?!\?)|\(\?<n", source))
    if random.random() < 0.95:
        source = re.sub(r"\\[123](?!x)", lambda _: f"\\{random.randint(1, groups)}" if groups else "b", source)
    if random.random() < 0.5:
        source = f"^(?:{source})$" if "|" in source else f"^{source}$"
    return source
