"""Random patterns and texts: of the grammar, mostly; and heaps of signs, which mostly are no patterns."""

from __future__ import annotations

import re

from hypothesis import strategies as st

_LETTERS = [*"aaabbb1_-é😀ä \n\u2028", "\ud83d", "\ude00"]
_ESCAPES = r"""
\d \D \w \W \s \S . \b \B ^ $ [^] [] \t \n \x61 \u0061 \cJ \0 \. \/ \- \_ \8 \07 \1x \c \k
\u{61} \u{1F600} \ud83d\ude00 \ud83d \ude00 \u{110000} \u12 \x1 { } ] {1 \p{L} \P{Lu} \p{Nd}
\p{Script=Greek} \p{sc=Latn} \p{gc=Ll} \p{L \p{Greek} \p{ASCII} \P{Any} \1 \1 \1 \2 \2 \3 \k<n1> \k<n2>
""".split()
_CLASSES = [
    "[ab]", "[^ab]", "[a-z]", "[^\\w]", "[\\w-]", "[\\w-a]", "[a-\\d]", "[\\b]", "[\\-a]", "[-a]", "[a-]", "[z-a]",
    "[\\u{1F600}-\\u{1F64F}]", "[😀]", "[^😀]", "[\\ud83d\\ude00]", "[\\p{L}1]", "[^\\P{L}]", "[\\c1]", "[\\c]",
    "[\\1]", "[\\0-9]", "[\\s\\S]", "[\\D1]", "[^\\d\\s]", "[.]", "[(]", "[\\]a]", "[[a]", "[é-ü]", "[\\k]",
]  # fmt: skip
_COUNTS = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0}", "{1,2}", "{2,}", "{0,1}?", "{1,}?", "{2,1}", "{,2}", "++"]
_COUNT = st.one_of(*[st.just("")] * 2, st.sampled_from(_COUNTS[:-3]), st.sampled_from(_COUNTS))
_OPENINGS = st.sampled_from(["(", "(", "(", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?<n>", "(?<n>"])

_ATOM = st.one_of(*[st.sampled_from(_LETTERS)] * 3, st.sampled_from(_ESCAPES), st.sampled_from(_CLASSES))


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds(lambda opening, body, count: f"{opening}{body}){count}", _OPENINGS, inner, _COUNT)
    return st.one_of(
        group, group, st.builds("{}|{}".format, inner, inner), st.builds("{}{}".format, inner, inner),
    )  # fmt: skip


def _numbered(pattern: str) -> str:
    """Groups of different names: two of one name are an error up to ES2024 and none since."""
    count = iter(range(1, 1_000))
    return re.sub(r"\(\?<n>", lambda _: f"(?<n{next(count)}>", pattern)


grammatical = st.recursive(st.builds("{}{}".format, _ATOM, _COUNT), _larger, max_leaves=12).map(_numbered)
heaps = st.lists(st.sampled_from("(((()))[[]]{}}??**++||\\\\\\^$-,:=!<>>abkpux012"), max_size=12).map("".join)
patterns = st.one_of(grammatical, grammatical, grammatical, heaps)
_CHARACTERS = [*_LETTERS, "α", "A", "\ufeff", "\r", "\\", "c", "{", "]", "n"]
texts = st.lists(st.sampled_from(_CHARACTERS), max_size=8).map("".join)
