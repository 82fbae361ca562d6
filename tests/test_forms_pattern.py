"""Patterns of forms mean what they mean in JavaScript; Node is the judge, of named cases and of random ones."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gopher_mcp_python.forms import ecma_names, ecma_sets, pattern
from gopher_mcp_python.forms.pattern import Budget, PatternError, PatternTimeout, compile_pattern
from tests.support.ecma import RegExps, Verdict, patterns

# pattern, texts in which it is found, texts in which it is not
CASES: list[tuple[str, list[str], list[str]]] = [
    ("b", ["abc", "b"], ["", "ac", "B"]),
    ("^abc$", ["abc"], ["abc\n", "\nabc", "abc\nabc", "abc\r", "xabc"]),
    ("", ["", "x"], []),
    ("^.$", ["a", "é", "😀", "\x85", "\x0b", "\ud83d", "\ud83d\ude00"], ["", "\n", "\r", "\u2028", "\u2029", "ab"]),
    ("^[^]$", ["\n", "😀", "\u2028"], ["", "ab"]),
    ("[]", [], ["", "a", "]"]),
    ("^\\d$", ["0", "9"], ["٣", "９", "a"]),
    ("^\\w+$", ["aZ_09"], ["é", "ß", "ſ", "\u212a", "-"]),
    ("^\\s$", [*"\t \t\n\v\f\r\xa0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"], [*"\u200b\x85\x1c"]),
    ("^\\S$", ["\u200b", "\x85", "😀"], ["\ufeff", " "]),
    ("\\bü", ["aü"], ["ü", " ü"]),
    ("\\Bü", ["ü", " ü"], ["aü"]),
    ("^[\\b]$", ["\b"], ["b", "\\"]),
    ("^[^\\d\\s-]$", ["a", "é"], ["1", " ", "-", "\ufeff"]),
    ("^[a\\-z]$", ["a", "-", "z"], ["b", "\\"]),
    ("^\\x41\\u0042\\u{43}\\u{0000044}\\cJ\\0$", ["ABCD\n\0"], ["ABCDJ0", "ABCD"]),
    ("^\\ud83d\\ude00$", ["😀", "\ud83d\ude00"], ["\ud83d", "\ude00"]),
    ("\\ud83d", ["\ud83d", "\ud83dx", "x\ud83d"], ["😀", "\ud83d\ude00"]),
    ("\\ude00", ["\ude00", "\ude00\ud83d"], ["😀"]),
    ("^[😀-😂]{2}$", ["😀😂", "😁😁"], ["😀", "😃😀", "\ud83d\ude00"]),
    ("^\\p{L}+$", ["aéßЖ中𝒜"], ["a1", "_", "😀"]),
    ("^\\P{L}$", ["1", "😀", " "], ["é"]),
    ("^[\\p{Lu}\\p{Nd}]$", ["A", "Ж", "5", "٣"], ["a", "½"]),
    ("^[^\\p{L}]$", ["1", "😀"], ["a", "é"]),
    ("^\\p{Script=Greek}$", ["α", "Ω"], ["a", "а", "1"]),
    ("^\\p{scx=Hira}$", ["あ", "ー"], ["a", "ア"]),
    ("^\\p{General_Category=Decimal_Number}$", ["5", "٣"], ["½", "a"]),
    ("^\\p{gc=Lu}\\p{sc=Latn}\\p{Uppercase_Letter}$", ["AbC"], ["AbC1", "abc"]),
    ("^\\p{Emoji_Presentation}\\p{ASCII}\\p{Any}\\P{Assigned}$", ["😀a\ud83d\uffff"], ["aaaa"]),
    ("^(?<year>\\d{4})-\\k<year>$", ["2026-2026"], ["2026-2025"]),
    ("\\k<$_ä>(?<$_ä>a)", ["a"], ["b"]),
    ("(?<\\u0061b\\u{63}>x)\\k<abc>", ["xx"], ["x"]),
    ("^(?=.*\\d)(?=.*[a-z]).{4,}$", ["abc1", "1abc"], ["abcd", "a1"]),
    ("^(?!.*(.).*\\1)[ab]+$", ["ab", "b"], ["aa", "aba"]),
    ("(?<=\\$)\\d+", ["$1"], ["1", "€1"]),
    ("(?<!\\$)\\b\\d", ["1", "€1"], ["$1"]),
    ("^(?<=^(\\d+)(\\d+))x|(?<=(\\d+)(\\d+))y\\3$", ["1234y1"], ["1234y123"]),
    ("(?<=\\1(a))b", ["aab"], ["b", "ab x" * 0]),
    ("(?<=(?<q>a){2})b\\k<q>", ["aaba"], ["aba"]),
    ("^a+?b??a{2,3}?$", ["aaa", "aaaa", "aaaaaaa"], ["aa", "ab", "aaba" * 2]),
    ("^a{2}b{2,}c{0,1}$", ["aabb", "aabbbc"], ["abb", "aabbcc", "aab"]),
    ("^a{0}b{0,0}$", [""], ["a", "b"]),
    ("^(?:(a)|b)*\\1$", ["ab", "aa" * 2, "b"], ["aba"]),
    ("^(z)((a+)?(b+)?(c))*\\4$", ["zaacbbbcac"], ["zaacbbbcacbbb"]),
    ("^(a\\1)+$", ["aaa"], ["b"]),
    ("^\\2(a)(b)?$", ["a", "ab"], ["ba"]),
    ("^(?:a?)*?b$", ["aab", "b"], ["a"]),
    ("^(?:|a)+b$", ["b", "ab"], ["c"]),
    ("^(?:a|()){3}\\1b$", ["aaab", "ab"], ["aaaab"]),
    ("^(?:(?!(x)a).)+\\1$", ["bc"], ["xa"]),
    ("^(?=(a+))a*b\\1$", ["aabaa"], ["baaa"]),
    ("(?=(a+))a*b\\1", ["baaabac"], ["bbb"]),
    ("^(?:a|ab)(?:c|bcd)(?:d*)$", ["abcd", "abbcd"], ["abbccd"]),
    ("^\\/\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\^\\$\\|\\\\$", ["/.*+?()[]{}^$|\\"], ["/"]),
    ("^(a{1000}){1000}$", [], ["a" * 1000]),
    ("^\\f\\n\\r\\t\\v$", ["\f\n\r\t\v"], ["\f\n\r\t\f", "\v\n\r\t\v"]),
    ("^\\ud83d\\u0041$", ["\ud83dA"], ["A", "\ud83d", "😀"]),
    ("^\\ud83d\\ue000$", ["\ud83d\ue000"], ["\ue000", "😀"]),
    ("^.{2}$", ["\u2027\u202a", "\x0b\x0c"], ["\u2028\u202a", "\u2027\u2029"]),
]
# No patterns with the u flag, but without it: what Annex B makes of them.
WITHOUT_THE_FLAG: list[tuple[str, list[str], list[str]]] = [
    ("^\\d{3}\\-\\d{4}$", ["555-1234"], ["5551234"]),
    ("^\\_\\@\\A\\Z$", ["_@AZ"], ["_@"]),
    ("^{a}]$", ["{a}]"], ["a"]),
    ("^a{,2}x{1$", ["a{,2}x{1"], ["aax"]),
    ("^[\\w-a]$", ["-", "b"], ["+"]),
    ("^(?=a)*a$", ["a"], ["b"]),
    ("^\\101\\7\\8\\08$", ["A\x078\x008"], ["A"]),
    ("^(a)\\2$", ["a\x02"], ["aa"]),
    ("^\\c\\cA\\c1$", ["\\c\x01\\c1"], ["\x01"]),
    ("^[\\c1\\c]$", ["\x11", "\\", "c"], ["1"]),
    ("^\\u{2}\\x1\\u12$", ["uux1u12"], ["\x02"]),
    ("^\\k<a>$", ["k<a>"], ["a"]),
    ("^\\p{L}\\-$", ["p{L}-"], ["a-"]),
    ("^.\\-$", ["a-", "\ud83d-"], ["😀-"]),
    ("^[😀]{2}\\-$", ["😀-"], ["😀😀-"]),
    ("^\\p{Nonsense}$", ["p{Nonsense}"], ["a"]),
]
REFUSED = [
    "a++", "a*+", "a?+", "a{2}+", "*a", "+", "?", "a**", "a|*", "(*)", "(?:+)", "{1}", "a{2,1}", "^*", "$+", "\\b?",
    "(?<=a)*", "(?<!a){2}", "(?>a)", "(?i)a", "(?-i:a)", "(?P<n>a)", "(?P=n)", "(?#x)", "(?", "(?<", "(?<>a)",
    "(?<1a>a)", "(?<a", "(?<a-b>c)", "(?<😀>a)", "(?<a\\u{110000}>b)", "(?<a\\x62>b)", "(?<a>b)\\k<c>", "(?<a>b)\\k",
    "(?<a>b)\\k<a", "(?<a>b)[\\k]", "(", "a(b", ")", "a)", "((a)", "[", "[a", "[\\]", "[z-a]", "[\\u{62}-a]", "\\",
    "a\\", "[a\\", "(?=a", "(?<=a", "(?1)", "(?R)", "(?(1)a)", "(?|a)", "(?'n'a)", "(?&n)", "[b-a]\\-",
]  # fmt: skip


@pytest.fixture(scope="module")
def node() -> Iterator[RegExps]:
    judge = RegExps()
    yield judge
    judge.close()


def _ours(source: str, texts: list[str]) -> Verdict:
    """Our verdict. A search that is given up is None."""
    try:
        compiled = compile_pattern(source)
    except PatternError:
        return Verdict(None, ())
    fits: list[bool | None] = []
    for text in texts:
        try:
            fits.append(compiled.search(text))
        except PatternTimeout:
            fits.append(None)
    return Verdict("u" if compiled.unicode else "", tuple(fits))


@pytest.mark.parametrize(("flag", "cases"), [("u", CASES), ("", WITHOUT_THE_FLAG)], ids=["u", "annex-b"])
def test_finds_what_javascript_finds(node: RegExps, flag: str, cases: list[tuple[str, list[str], list[str]]]) -> None:
    asked = [(source, [*found, *not_found]) for source, found, not_found in cases]
    expected = [Verdict(flag, (True,) * len(found) + (False,) * len(not_found)) for _, found, not_found in cases]
    assert dict(zip(asked_of(asked), (_ours(*one) for one in asked), strict=True)) == dict(
        zip(asked_of(asked), expected, strict=True)
    )
    for one, wanted, said in zip(asked, expected, node.ask(asked), strict=True):
        if None not in said.fits:  # "(a{1000}){1000}" is too large for Node
            assert (one, said) == (one, wanted), "Node sees it otherwise"


def asked_of(cases: list[tuple[str, list[str]]]) -> list[str]:
    return [source for source, _ in cases]


def test_refuses_what_javascript_refuses(node: RegExps) -> None:
    assert [source for source in REFUSED if _ours(source, []).flag is not None] == []
    said = node.ask([(source, []) for source in REFUSED])
    assert [source for source, verdict in zip(REFUSED, said, strict=True) if verdict.flag is not None] == []


@pytest.mark.parametrize("source", ["(?i:a)", "(?-s:a)", "(?<a>x)|(?<a>y)", "(?<a>x)(?<a>y)"])
def test_what_came_after_es2024_is_an_error(source: str) -> None:
    with pytest.raises(PatternError):
        compile_pattern(source)


@pytest.mark.parametrize(("source", "message"), [
    ("a++", "a quantifier with nothing before it at position 3, near 'a++'"),
    ("(?i)a", "a kind of group that does not exist at position 1, near '(?i)a'"),
    ("(ab", "a group without its closing parenthesis at position 1, near '(ab'"),
    ("ab)", "a closing parenthesis without an opening one at position 3, near 'ab)'"),
    ("x[z-a]", "a range that runs backwards at position 3, near 'x[z-a]'"),
    ("(?<a>b)\\k<c>", "a reference to a group that does not exist at position 8, near '(?<a>b)\\\\k<c>'"),
    ("[\u2028\n", "a class without its closing bracket at position 1, near '[\\u2028\\n'"),
])  # fmt: skip
def test_the_error_says_what_and_where(source: str, message: str) -> None:
    with pytest.raises(PatternError) as caught:
        compile_pattern(source)
    assert str(caught.value) == message


def test_no_error_shows_the_whole_of_a_long_pattern() -> None:
    for source in ("a" * 5_000 + "(" + "b" * 4_000, "x" * (pattern.MAX_PATTERN + 1), "[" + "c" * 9_000):
        with pytest.raises(PatternError) as caught:
            compile_pattern(source)
        assert len(str(caught.value)) < 120
    assert "a" * 2_000 not in repr(compile_pattern("a" * 2_000))


def test_limits_of_length_and_nesting() -> None:
    deepest = pattern.MAX_NESTING
    assert compile_pattern("(a|" * deepest + "b" + ")+" * deepest).search("b")
    with pytest.raises(PatternError, match=f"more than {deepest} groups inside each other"):
        compile_pattern("(" * (deepest + 1) + ")" * (deepest + 1))
    assert compile_pattern("a" * pattern.MAX_PATTERN).search("a" * pattern.MAX_PATTERN)
    with pytest.raises(PatternError, match=f"at most {pattern.MAX_PATTERN}"):
        compile_pattern("a" * (pattern.MAX_PATTERN + 1))


def test_the_deepest_pattern_compiles_where_much_of_the_stack_is_used() -> None:
    source = "(?:x|a(" * (pattern.MAX_NESTING // 2) + "b" + ")+)+" * (pattern.MAX_NESTING // 2)

    def deep(levels: int) -> bool:
        return deep(levels - 1) if levels else compile_pattern(source).search("x")

    assert deep(sys.getrecursionlimit() // 3)


CATASTROPHES = [
    ("^(a+)+$", "a" * 40 + "b"),
    ("(a|aa)+$", "a" * 60 + "b"),
    ("^(.*?,){30}P", "1," * 40),
    ("(x+x+)+y", "x" * 3_000),
    ("^((((a{1,1000}){1,1000}){1,1000}){1,1000})$", "a" * 60 + "b"),
    ("(?:){2000000000}", ""),
    ("(.*)*\\1x", "abc" * 200),
    ("(?=(?:a|a)*b)c|(?<!(?:a|a)+?b)x$", "a" * 60),
    ("()" * 3_000 + "x", "a" * 100_000),
    ("[\\p{Co}\\p{Cn}\\P{Any}]x", "".join(map(chr, range(0x10000, 0x60000)))),
]


@pytest.mark.parametrize(("source", "text"), CATASTROPHES, ids=[source[:20] for source, _ in CATASTROPHES])
def test_a_catastrophic_search_is_given_up(source: str, text: str) -> None:
    compiled = compile_pattern(source)
    with pytest.raises(PatternTimeout, match=r"^the pattern takes too long on this text$"):
        compiled.search(text)
    with pytest.raises(PatternTimeout):
        compiled.search(text)


def test_one_budget_bounds_many_searches_together() -> None:
    budget = Budget(pattern.PATTERN_STEPS * 2)
    given_up = 0
    while budget.steps > 0:
        with pytest.raises(PatternTimeout):
            compile_pattern("^(a+)+$").search("a" * 40 + "b", budget)
        given_up += 1
    assert given_up == 2
    with pytest.raises(PatternTimeout):
        compile_pattern("a").search("a", budget)


def test_a_search_is_charged_with_what_it_takes_and_the_same_each_time() -> None:
    taken = []
    for text in ("name@example.com", "name@example.com", "name." * 50 + "@example.com"):
        budget = Budget(1_000)
        assert compile_pattern("^[\\w.]+@(\\w+\\.)+\\w+$").search(text, budget)
        taken.append(1_000 - budget.steps)
    assert 0 < taken[0] == taken[1] < taken[2] < 200


def test_long_texts_are_no_catastrophe() -> None:
    assert compile_pattern("^[\\w .]+$").search("some words. " * 20_000)
    assert not compile_pattern("\\d{3}").search("some words. " * 20_000)
    assert compile_pattern("^\\p{L}*$").search("中文" * 50_000)
    assert compile_pattern("^.*$").search("x" * 1_000_000), "as long as an answer may be (forms/limits.py)"


def test_compiled_patterns_are_kept_up_to_a_limit() -> None:
    first = compile_pattern("kept-for-a-while")
    assert compile_pattern("kept-for-a-while") is first
    for number in range(pattern._KEPT):
        compile_pattern(f"other-{number}")
    assert compile_pattern("kept-for-a-while") is not first
    for number in range(12):
        compile_pattern("x" * 9_000 + str(number))
    assert sum(map(len, pattern._cache)) <= pattern._KEPT_CHARACTERS


def test_threads_share_a_pattern() -> None:
    text = "".join(map(chr, range(0x400, 0x2000)))  # more characters than a set remembers
    expected = [compile_pattern("^(\\p{L}|[^\\P{M}])*$").search(text[n : n + 40]) for n in range(0, 6_000, 50)]
    wrong: list[int] = []

    def search(seed: int) -> None:
        for index, wanted in enumerate(expected):
            begin = index * 50
            if compile_pattern("^(\\p{L}|[^\\P{M}])*$").search(text[begin : begin + 40]) != wanted:
                wrong.append(seed)

    threads = [threading.Thread(target=search, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(expected) == {True, False} and wrong == []


# Assigned long ago, so that all versions of Unicode say the same.
_OLD = "aZ09_ -+$€.(«\n\t\x00\x7fé߀ǅʰΩαЖאعअ中あアー가〇Ⅷ½²ः⃝\u200d\u2028\u2029\u00ad\ufeff\ufe0f\ue000\ud800\uffff"
_OLD += "😀🇩🏽𝒜‿†"


def test_properties_are_those_of_javascript(node: RegExps) -> None:
    names = [f"{table}={name}" if table else name for table, (_, rows) in ecma_names._TABLES.items() for name in rows]
    names += ecma_names._TABLES["gc"][1]
    asked = [(f"^\\p{{{name}}}$", list(_OLD)) for name in names]
    compared = 0
    for name, one, said in zip(names, asked, node.ask(asked), strict=True):
        if said.flag != "u":
            continue  # a script that this Node is too old for
        ours = _ours(*one)
        if ours.flag is None and name.startswith(("sc", "Sc")):
            continue  # one that the installed regex library is too old for
        assert (name, ours) == (name, said)
        compared += 1
    assert compared > 1_000


@pytest.mark.parametrize("name", ["l", "Greek", "Script=greek", "sc=", "L=L", "InBasicLatin", "IsGreek", "script=Greek",
                                  "uppercase", "Lu&", "^L", "Block=Basic_Latin", "Age=5.0", "RGI_Emoji"])  # fmt: skip
def test_a_property_that_javascript_lacks_is_none_of_ours(node: RegExps, name: str) -> None:
    assert not node.ask([(f"\\p{{{name}}}", [])])[0].flag
    with pytest.raises(PatternError, match="property"):
        compile_pattern(f"(?<u>\\p{{{name}}})\\k")  # not one without the flag either


def test_a_script_that_the_library_is_too_old_for_is_an_error_and_no_literal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ecma_sets, "library_name", lambda *_: "sc=Klingon")
    with pytest.raises(PatternError, match=r"the installed regex library does not know \\p\{sc=Klingon\}"):
        compile_pattern("\\p{Script=Greek}\\u{1F61}")


@settings(max_examples=30, deadline=None, database=None)
@given(st.integers(0, 2**32))
def test_random_patterns_are_judged_as_node_judges_them(node: RegExps, seed: int) -> None:
    random = Random(seed)
    batch = [(source, patterns.texts(random, source, 5)) for source in (patterns.pattern(random) for _ in range(100))]
    given_up = 0
    for one, said in zip(batch, node.ask(batch), strict=True):
        ours = _ours(*one)
        assert (one, ours.flag) == (one, said.flag)
        given_up += None in ours.fits
        for text, mine, nodes in zip(one[1], ours.fits, said.fits, strict=False):
            assert None in (mine, nodes) or (one[0], text, mine) == (one[0], text, nodes)
    assert given_up < 4, "few are slow on such short texts"
