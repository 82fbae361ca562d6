"""The policy itself: rules in their order, what was remembered, bounds; then the handler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from copy import copy
from typing import Any, Literal

from ..copying import for_handler
from ..display import safe_line
from ..elicitation import GopherAgentElicitationRequest, GopherAgentElicitationResponse
from .asked import Asked, Identity, asked_of, identity_of
from .decisions import (
    Lasting,
    PolicyDecision,
    PolicyStoreError,
    Remembered,
    RememberedResponse,
    Verdict,
    checked_lasting,
    find,
)
from .guard import guarded
from .limits import Gate
from .memory import Memory, decision_of
from .rules import PolicyRule, Rule, checked_answers, checked_rules, filled

__all__ = ["ElicitationPolicy"]

_log = logging.getLogger("gopher_mcp_python.elicitation")
_MODES = ("url", "form")
_Key = tuple["str | None", "str | None"]


class ElicitationPolicy:
    """Decides which requests of servers are answered at once and which a person sees.

        policy = ElicitationPolicy(
            [PolicyRule("block", server="spam"), PolicyRule("allow", host="accounts.example.com")],
            servers={"mail": "https://mail.example.com/mcp"},
            store=True,
        )
        McpToolset(url, elicitation_handler=policy.around(ask_my_user))

    A block holds before everything; then the first rule that is about the request decides. Where that is "ask", or no
    rule is about it, what was remembered decides; then, for a form that no rule is about, `answers`; then `default`.
    Declined is what can't be judged: an unknown mode, a URL that must not be opened, a store that can't be read, a rule
    that raises or says what no rule may. A page is accepted without a person only by a rule or a remembered decision
    for that very host (or registered name).

    Every method may be called from any thread. Decisions are explained in the debug log
    ("gopher_mcp_python.elicitation"), without URLs and answers.

    Args:
        rules: `PolicyRule`s, mappings of their fields, and functions `rule(request)` that return a PolicyRule (which
            then has to match), "ask", "decline", "block", or None for no opinion. Functions are called on any thread,
            and also by `explain`.
        default: "ask" or "decline": for what nothing else decides.
        answers: for tests and automation: values by field name, for forms of any server. Only those that a form asks
            for are sent, checked against it; without a required one it is declined, and likewise where none is asked
            for. They never answer for a page. To answer one server only, use a rule with `server` and `answers`.
        servers: which server is behind a name: its URL, its command (a text or a list with the arguments), a mapping
            with "url" or "command" and "args", or its connection. What is remembered is dropped when that changes.
        store: a file for decisions that last "always"; True: the usual one in the user's data folder; None: none.
        max_waiting: prompts of one server that may be with the handler at the same time; more are declined. None: no
            bound.
        rate: (prompts, seconds): how many prompts of one server may be shown in that time; more are declined. None: no
            limit. What the policy answers itself does not count.

    Raises:
        ValueError: an argument can't mean anything; the text says which, and never shows answers or URLs.
        PolicyStoreError: `store` is True and there is no home folder.
    """

    def __init__(
        self,
        rules: Iterable[Rule] = (),
        *,
        default: Literal["ask", "decline"] = "ask",
        answers: Mapping[str, Any] | None = None,
        servers: Mapping[str, Any] | None = None,
        store: Any = None,
        max_waiting: int | None = 5,
        rate: tuple[int, float] | None = (30, 60.0),
    ) -> None:
        if default not in ("ask", "decline"):
            raise ValueError('default must be "ask" or "decline"; what is accepted needs a rule of its own')
        self._rules = checked_rules(rules)
        self._default = default
        self._answers = checked_answers(answers)
        self._servers = _checked_servers(servers)
        self._memory = Memory(store)
        self._gate = Gate(max_waiting, rate)

    def around(self, handler: Any = None, *, name: str | None = None, server: Any = None) -> Callable[..., Any]:
        """A handler that asks the policy first, and then `handler`; async when `handler` is. It goes wherever handlers
        go: GopherAgentElicitationOptions(handler=...), McpToolset(elicitation_handler=...), elicitation_callback(...).

        Args:
            handler: a sync or async function of the request; "cancel" or "decline"; None: the default one.
            name: of the server, where this handler is for one only; None: what the request says.
            server: which server it is, as in `servers`, where this handler is for one only.

        What `handler` raises and answers passes through, and a `RememberedResponse` is remembered. Raises ValueError
        when `handler`, `name` or `server` is none.
        """
        if name is not None and not isinstance(name, str):
            raise ValueError("name must be the server's name, a text")
        return guarded(_For(self, name, identity_of(server)), handler)

    def explain(
        self, request: GopherAgentElicitationRequest, *, name: str | None = None, server: Any = None
    ) -> PolicyDecision:
        """What would be done with this request now, and by which rule. Nobody is asked, nothing is counted or dropped.
        `name` and `server` are those of `around`. Raises ValueError when `server` is none."""
        asked = self._asked(request, name, identity_of(server))
        decision, _ = self._judged(asked)
        refusal = self._gate.look(_key(asked)) if decision.decision == "ask" else None
        return decision if refusal is None else PolicyDecision("decline", refusal)

    def remember(
        self,
        request: GopherAgentElicitationRequest,
        decision: Verdict,
        *,
        lasts: Lasting = "session",
        name: str | None = None,
        server: Any = None,
    ) -> None:
        """Decides requests like this one from now on.

        Args:
            request: one that a handler has.
            decision: "allow" (a page: this very host), "decline" (a page: this host; a form: all forms of this
                server) or "block" (everything of this server).
            lasts: "session" (as long as this policy) or "always" (in `store`).
            name, server: those of `around`.

        Raises:
            ValueError: it can't be remembered: an accepted form, a page that can't be allowed unseen, "always" without
                a store or without knowing which server it is.
            PolicyStoreError: the store can't be read or written.
        """
        checked_lasting(lasts)
        asked = self._asked(request, name, identity_of(server))
        found = decision_of(asked, decision)
        if lasts == "always":
            self._check_lasting(asked)
        self._memory.add(found, lasts)

    def forget(self, server: str | None = None) -> int:
        """Forgets what was remembered about the server of that name (None: about all), also in the store. Returns how
        many decisions that were. Raises PolicyStoreError."""
        return self._memory.forget(server)

    def remembered(self) -> list[Remembered]:
        """What is remembered, stored decisions first. Raises PolicyStoreError."""
        return self._memory.all()

    def __repr__(self) -> str:
        return f"ElicitationPolicy({len(self._rules)} rules, default={self._default!r})"

    # ---- deciding --------------------------------------------------------------------------------------------------

    def _asked(self, request: GopherAgentElicitationRequest, name: str | None, identity: Identity | None) -> Asked:
        name = request.server if name is None else name
        known = identity if identity is not None or name is None else self._servers.get(name)
        return asked_of(request, name, known)

    def _judged(self, asked: Asked) -> tuple[PolicyDecision, list[Remembered]]:
        """The decision, and all that was remembered. Raises no Exception: what breaks is a refusal."""
        try:
            known = self._memory.all()
        except PolicyStoreError as error:
            return PolicyDecision("decline", str(error)), []
        try:
            return self._decided(asked, known), known
        except Exception as error:
            return PolicyDecision("decline", f"the policy failed ({type(error).__name__})"), known

    def _decided(self, asked: Asked, known: list[Remembered]) -> PolicyDecision:
        held = find(known, asked)
        if held is not None and held.decision == "block":
            return PolicyDecision("block", "a remembered block of this server")
        for place, rule in enumerate(self._rules, 1):
            if isinstance(rule, PolicyRule) and rule.decision == "block" and rule.matches(asked):
                return PolicyDecision("block", f"rule {place}: {rule}")
        if asked.mode not in _MODES:
            return PolicyDecision("decline", "the mode is unknown")
        if asked.mode == "url" and asked.page is None:
            return PolicyDecision("decline", "the address of the page can't be opened safely")
        ruled = self._ruled(asked)
        if ruled is not None and ruled.decision != "ask":
            return ruled
        if held is not None:
            where = f"the host {held.host}" if held.host else "forms of this server"
            return PolicyDecision(held.decision, f"a remembered decision on {where}")
        if ruled is not None:
            return ruled
        if asked.mode == "form" and self._answers is not None:
            return filled(asked, self._answers, confirm=False, rule="the policy's answers")
        return PolicyDecision(self._default, "the policy's default")

    def _ruled(self, asked: Asked) -> PolicyDecision | None:
        """What the first rule says that is about the request; None when there is none."""
        for place, rule in enumerate(self._rules, 1):
            name = f"rule {place}"
            found = rule if isinstance(rule, PolicyRule) else _asked_rule(rule, asked, name)
            if isinstance(found, PolicyDecision):
                return found
            if found is None or not found.matches(asked):
                continue
            name = f"{name}: {found}"
            if found.decision == "allow" and asked.mode == "form":
                return filled(asked, found.answers, confirm=found.confirm, rule=name)
            return PolicyDecision(found.decision, name)
        return None

    # ---- for guards ------------------------------------------------------------------------------------------------

    @property
    def reads_files(self) -> bool:
        """Whether deciding may wait for a disk."""
        return self._memory.file is not None

    def _admit(self, asked: Asked) -> PolicyDecision:
        """The decision, for real: "ask" counts from now on, until `_over`."""
        decision, known = self._judged(asked)
        self._memory.drop_stale(known, asked)
        if decision.decision == "ask":
            refusal = self._gate.enter(_key(asked))
            decision = decision if refusal is None else PolicyDecision("decline", refusal)
        with suppress(Exception):  # a filter of the program's may raise
            _log.debug(
                "elicitation policy: %s (%s), asked by %s, %s",
                decision.decision,
                safe_line(decision.rule),
                safe_line(asked.server or "an unnamed server", limit=60),
                f"page on {asked.host}" if asked.page is not None else safe_line(asked.mode, limit=20),
            )
        return decision

    def _over(self, asked: Asked) -> None:
        self._gate.leave(_key(asked))

    def _keep(self, asked: Asked, answer: RememberedResponse) -> None:
        """Remembers a handler's answer as far as that is possible; the answer itself stands in any case."""
        try:
            wanted: Verdict = "block" if answer.whole_server else "allow" if answer.action == "accept" else "decline"
            found = decision_of(asked, wanted)
        except ValueError as error:
            with suppress(Exception):
                _log.debug("elicitation policy: the answer is not remembered: %s", error)
            return
        try:
            if answer.lasts == "always":
                self._check_lasting(asked)
            self._memory.add(found, answer.lasts)
        except (ValueError, PolicyStoreError) as error:
            self._memory.add(found, "session")
            with suppress(Exception):
                _log.warning("The answer is remembered for this session only: %s", error)

    def _check_lasting(self, asked: Asked) -> None:
        if self._memory.file is None:
            raise ValueError("this policy has no store: give it store=True or a file to remember anything always")
        if asked.identity is None or asked.server is None:
            raise ValueError(
                "it is not known which server this is, so nothing can be remembered always: name its URL or command in "
                "servers={name: ...} or around(name=..., server=...)"
            )


class _For:
    """A policy for the handler of one server, or of all (`name` and `identity` None); what `guarded` works with."""

    def __init__(self, policy: ElicitationPolicy, name: str | None, identity: Identity | None) -> None:
        self._policy = policy
        self._name = name
        self._identity = identity
        self.reads_files = policy.reads_files

    def asked(self, request: GopherAgentElicitationRequest) -> Asked:
        return self._policy._asked(request, self._name, self._identity)

    def admit(self, asked: Asked) -> GopherAgentElicitationResponse | None:
        """The policy's answer; None when the handler is to be asked, which `over` has to follow."""
        decision = self._policy._admit(asked)
        action = decision.action
        return None if action is None else GopherAgentElicitationResponse(action, decision.content)

    def keep(self, asked: Asked, result: object) -> None:
        if isinstance(result, RememberedResponse):
            self._policy._keep(asked, result)

    def over(self, asked: Asked) -> None:
        self._policy._over(asked)

    def refuses(self, asked: Asked) -> bool:
        return self._policy._judged(asked)[0].decision in ("decline", "block")

    def lasting(self, asked: Asked) -> tuple[Lasting, ...]:
        if asked.server is None:
            return ()
        always = self._policy._memory.file is not None and asked.identity is not None
        return ("session", "always") if always else ("session",)


def _asked_rule(rule: Callable[..., Any], asked: Asked, name: str) -> PolicyRule | PolicyDecision | None:
    """What a function says. Anything that it may not say is a refusal, and so is what it raises."""
    try:
        request = copy(for_handler(asked.request))  # a rule may change what it gets
        request.server = asked.server
        found = rule(request)
    except Exception as error:
        return PolicyDecision("decline", f"{name} raised {type(error).__name__}")
    if found is None or isinstance(found, PolicyRule):
        return found
    if isinstance(found, str) and found in ("ask", "decline", "block"):
        return PolicyDecision(found, name)  # type: ignore[arg-type]
    from ..answers import dispose_awaitable

    dispose_awaitable(found)
    return PolicyDecision("decline", f"{name} says what no rule may: a PolicyRule, ask, decline, block or None")


def _key(asked: Asked) -> _Key:
    return asked.server, asked.digest


def _checked_servers(servers: Any) -> dict[str, Identity]:
    if servers is None:
        return {}
    if not isinstance(servers, Mapping) or not all(isinstance(name, str) for name in servers):
        raise ValueError('servers must be a mapping of names to URLs or commands, as in {"mail": "https://..."}')
    found = {}
    for name, server in servers.items():
        try:
            identity = identity_of(server)
        except ValueError as error:
            raise ValueError(f"servers[{name!r:.60}]: {error}") from None
        if identity is not None:
            found[name] = identity
    return found
