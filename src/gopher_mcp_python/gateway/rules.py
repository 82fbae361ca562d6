"""Which calls pass, which a person has to confirm first, and which never pass.

    {"trusted": ["files"],
     "allow": ["files:read_*"], "hold": ["*:*purge*"], "deny": ["mail:send_as"],
     "rules": [{"tool": "db:query", "when": {"sql": "(?is)select\\b[^;]*"}, "then": "allow"},
               {"tool": "hub:call_tool", "calls": "name", "arguments": "arguments"}]}

Patterns are `server:tool` with `*`, `?` and `[...]`, compared exactly and with the server's own name of the tool. What
is strictest wins: deny, then hold, then allow, then what the server says of its tool. The argument that a rule's `when`
names is compared as a whole; an argument that is missing or no text does not match. Of several values at one path all
have to match for the rule to allow, and one is enough for it to hold or deny. A rule with `calls` says where a tool
that runs other tools has the name of the one that it runs (and `arguments`, where that one's are): that one is judged
instead; a call that names none, or has an entry that names none, is held.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Literal

__all__ = ["Rule", "Rules", "Verdict"]

Verdict = Literal["allow", "hold", "deny"]
_RULE_KEYS = {"tool", "when", "then", "calls", "arguments"}
_STRICTNESS: dict[str, int] = {"allow": 0, "hold": 1, "deny": 2}
_LISTS = ("trusted", "allow", "hold", "deny")
# How deep tools that run tools that run tools are followed.
_MAX_DEPTH = 4
# What stands at a path that leads nowhere: equal to nothing, matched by nothing.
_MISSING = object()


@dataclass(frozen=True)
class Rule:
    """Judges a tool by its arguments.

    Attributes:
        tool: a pattern.
        when: for each path ("a.b"; "items.*.name" for every entry) the pattern its text has to match as a whole.
        then: what is to be done when all of `when` match.
        calls: the path of the name of another tool of the same server, which the call runs.
        arguments: the path of that one's arguments; None: rules by arguments do not see any.

    Raises ValueError for a rule that says neither what is to be done nor whom it calls, or has a pattern that is none.
    """

    tool: str
    when: Mapping[str, str] = field(default_factory=dict)
    then: Verdict | None = None
    calls: str | None = None
    arguments: str | None = None

    def __post_init__(self) -> None:
        if (self.then is None) == (self.calls is None):
            raise ValueError("a rule needs either then or calls")
        if self.then is not None and self.then not in _STRICTNESS:
            raise ValueError('a rule\'s then must be "allow", "hold" or "deny"')
        if self.then is not None and not self.when:
            raise ValueError("a rule with then needs when; without it, the lists allow, hold and deny do")
        for pattern in self.when.values():
            try:
                re.compile(pattern)
            except (re.error, TypeError):
                raise ValueError("a rule's when has a pattern that is no regular expression") from None

    def applies(self, arguments: Mapping[str, Any]) -> bool:
        """Whether all of `when` match. Of several values at one path each has to for the rule to allow. For it to hold
        or deny one is enough, or another value beside it would be the way round."""
        return all(self._matches(path, pattern, arguments) for path, pattern in self.when.items())

    def inner(self, arguments: Mapping[str, Any]) -> list[tuple[Any, Mapping[str, Any]]]:
        """The names at `calls`, each with its arguments."""
        names = list(values_at(arguments, self.calls or ""))
        found = list(values_at(arguments, self.arguments)) if self.arguments else []
        if len(found) != len(names) or _MISSING in found:  # whose they are can't be told
            found = [{}] * len(names)
        return [(name, given if isinstance(given, Mapping) else {}) for name, given in zip(names, found, strict=True)]

    def _matches(self, path: str, pattern: str, arguments: Mapping[str, Any]) -> bool:
        found = [
            isinstance(value, str) and re.fullmatch(pattern, value) is not None
            for value in values_at(arguments, path)
        ]
        return any(found) if self.then in ("hold", "deny") else bool(found) and all(found)


@dataclass(frozen=True)
class Rules:
    """All of them. Empty: what servers say of their tools decides, and nobody's `readOnlyHint` is believed.

    Raises ValueError for a pattern without a server.
    """

    trusted: Sequence[str] = ()
    allow: Sequence[str] = ()
    hold: Sequence[str] = ()
    deny: Sequence[str] = ()
    rules: Sequence[Rule] = ()

    def __post_init__(self) -> None:
        for pattern in (*self.allow, *self.hold, *self.deny, *(rule.tool for rule in self.rules)):
            if ":" not in pattern:
                raise ValueError(f"the pattern {pattern[:60]!r} needs a server: server:tool, or *:tool for all")

    @classmethod
    def read(cls, path: str | Path) -> Rules:
        """From a JSON file. Raises ValueError (what is wrong, never a value), OSError."""
        try:
            told = json.loads(Path(path).read_text(encoding="utf-8"))
        except ValueError:
            raise ValueError(f"the rules in {path} are not JSON") from None
        if not isinstance(told, dict) or not told.keys() <= {*_LISTS, "rules"}:
            raise ValueError(f"the rules in {path} are an object with any of {', '.join(_LISTS)}, rules")
        for name in _LISTS:
            if not _is_list_of_texts(told.get(name, [])):
                raise ValueError(f"the rules in {path}: {name} must be a list of texts")
        lists = {name: tuple(told.get(name, ())) for name in _LISTS}
        rules = told.get("rules", [])
        if not isinstance(rules, list):
            raise ValueError(f"the rules in {path}: rules must be a list")
        return cls(**lists, rules=tuple(_rule(one) for one in rules))

    def needs_tools(self, server: str, tool: str, arguments: Mapping[str, Any]) -> bool:
        """Whether the server's own word on its tools is needed to judge this call."""
        decided, inner = self._told(server, tool, arguments)
        return decided is None or bool(inner)

    def judge(
        self, server: str, tool: str, arguments: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]]
    ) -> Verdict:
        """What is to be done with a call.

        Args:
            tools: the server's tools as it lists them now, by name.
        """
        return self._judged(server, tool, arguments, tools, 0)

    def hidden(self, server: str, tool: str) -> bool:
        """Whether a tool is denied whatever its arguments are."""
        return _matches_any(self.deny, server, tool)

    def _judged(
        self, server: str, tool: str, arguments: Mapping[str, Any], tools: Mapping[str, Mapping[str, Any]], depth: int
    ) -> Verdict:
        decided, inner = self._told(server, tool, arguments)
        verdicts: list[Verdict] = []
        for rule in inner:
            verdicts.extend(self._of_inner(rule, server, arguments, tools, depth))
        if decided is not None:
            verdicts.append(decided)
        elif not inner:
            verdicts.append(self._as_told(server, tools.get(tool)))
        return max(verdicts, key=_STRICTNESS.__getitem__)

    def _told(self, server: str, tool: str, arguments: Mapping[str, Any]) -> tuple[Verdict | None, list[Rule]]:
        """What lists and rules say, and the rules by which the call runs other tools."""
        found: list[Verdict] = []
        inner: list[Rule] = []
        lists: tuple[tuple[Verdict, Sequence[str]], ...] = (
            ("deny", self.deny), ("hold", self.hold), ("allow", self.allow)
        )  # fmt: skip
        for verdict, patterns in lists:
            if _matches_any(patterns, server, tool):
                found.append(verdict)
        for rule in self.rules:
            if not _matches_any((rule.tool,), server, tool):
                continue
            if rule.calls is not None:
                inner.append(rule)
            elif rule.then is not None and rule.applies(arguments):
                found.append(rule.then)
        return max(found, key=_STRICTNESS.__getitem__, default=None), inner

    def _of_inner(
        self,
        rule: Rule,
        server: str,
        arguments: Mapping[str, Any],
        tools: Mapping[str, Mapping[str, Any]],
        depth: int,
    ) -> Iterator[Verdict]:
        named = rule.inner(arguments)
        if not named or depth >= _MAX_DEPTH:
            yield "hold"
            return
        for name, inner in named:
            yield self._judged(server, name, inner, tools, depth + 1) if isinstance(name, str) else "hold"

    def _as_told(self, server: str, tool: Mapping[str, Any] | None) -> Verdict:
        """By the tool's annotations; the protocol's default for a missing one is destructive."""
        hints = tool.get("annotations") if tool is not None else None
        if not isinstance(hints, Mapping):
            return "hold"
        destructive = hints.get("destructiveHint")
        if destructive is False:
            return "allow"
        if destructive is None and hints.get("readOnlyHint") is True and server in self.trusted:
            return "allow"
        return "hold"


def values_at(value: Any, path: str) -> Iterator[Any]:
    """What stands at a path; _MISSING wherever a part of it is missing, so that no entry of a list is passed over."""
    if not path:
        yield value
        return
    part, _, rest = path.partition(".")
    if part == "*" and isinstance(value, list):
        for entry in value:
            yield from values_at(entry, rest)
    elif part != "*" and isinstance(value, Mapping) and part in value:
        yield from values_at(value[part], rest)
    else:
        yield _MISSING


def _matches_any(patterns: Sequence[str], server: str, tool: str) -> bool:
    for pattern in patterns:
        of_server, _, of_tool = pattern.partition(":")
        if fnmatchcase(server, of_server) and fnmatchcase(tool, of_tool):
            return True
    return False


def _rule(told: Any) -> Rule:
    if not isinstance(told, dict) or not told.keys() <= _RULE_KEYS or "tool" not in told:
        raise ValueError("a rule is an object with tool, and when and then, or calls")
    when = told.get("when", {})
    if not isinstance(told["tool"], str) or not isinstance(when, dict) or not _is_list_of_texts(list(when.values())):
        raise ValueError("a rule's tool is a text and its when an object of texts")
    for name in ("then", "calls", "arguments"):
        if not isinstance(told.get(name, ""), str):
            raise ValueError(f"a rule's {name} must be a text")
    return Rule(told["tool"], when, told.get("then"), told.get("calls"), told.get("arguments"))


def _is_list_of_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)
