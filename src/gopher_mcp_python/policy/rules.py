"""Rules of a policy, and the answers that a rule has for a form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Union

from ..copying import copied
from ..display import safe_line
from ..elicitation import GopherAgentElicitationRequest
from ..hostnames import ascii_host, is_ip_address, is_shared_hosting, site_of
from .asked import Asked, is_confirmation, plain_host
from .decisions import PolicyDecision, Verdict

__all__ = ["PolicyRule", "Rule", "checked_answers", "checked_rules", "filled"]

_VERDICTS = ("allow", "ask", "decline", "block")
_MODES = ("url", "form")
MAX_RULES = 1000


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """What to do with the requests that it is about. What is None is not looked at.

        PolicyRule("block", server="spam")
        PolicyRule("allow", host="accounts.example.com")
        PolicyRule("allow", server="forms", answers={"name": "Ada"})

    Attributes:
        decision: "allow" (accept at once), "ask" (the wrapped handler), "decline", or "block" (decline; it holds
            before all other rules and whatever was remembered).
        server: name of the server, as the program configured it (`request.server`).
        mode: "url" or "form".
        host: the very host of the page, in letters or as an IP address; every port of it.
        site: the registered name that the page's host belongs to ("example.com" for "login.example.com"), by the rule
            of thumb of `hostnames.site_of`: where strangers share a name, give `host`.
        answers: for "allow" of forms: values by field name. Only those that a form asks for are sent, checked against
            it. A required field without one, or one that the form does not allow, is "decline".
        confirm: for "allow" of forms: accept also a form none of whose fields is answered, which is what a plain
            confirmation is.

    "allow" is for pages with `host` or `site`, or for forms with `answers` or `confirm`, never for both. A page is
    allowed only over https (or on this machine) and without text before an @ sign; with `site` also only when nothing
    in its address looks like another one. Refusing rules have no such conditions.

    Raises ValueError when it can't mean anything, with the remedy.
    """

    decision: Verdict
    server: str | None = field(default=None, kw_only=True)
    mode: str | None = field(default=None, kw_only=True)
    host: str | None = field(default=None, kw_only=True)
    site: str | None = field(default=None, kw_only=True)
    answers: Mapping[str, Any] | None = field(default=None, kw_only=True, repr=False, compare=False)
    confirm: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.decision, str) or self.decision not in _VERDICTS:
            raise ValueError('a rule\'s decision must be "allow", "ask", "decline" or "block"')
        if self.server is not None and not isinstance(self.server, str):
            raise ValueError("a rule's server must be its name, a text; the URL belongs in servers=")
        if self.mode is not None and self.mode not in _MODES:
            raise ValueError('a rule\'s mode must be "url" or "form", or None for both')
        if not isinstance(self.confirm, bool):
            raise ValueError("a rule's confirm must be True or False")
        set_ = object.__setattr__
        set_(self, "host", _checked_host(self.host))
        set_(self, "site", _checked_site(self.site, allows=self.decision == "allow"))
        set_(self, "answers", checked_answers(self.answers))
        self._check_together()

    def _check_together(self) -> None:
        of_pages = self.host is not None or self.site is not None
        of_forms = self.answers is not None or self.confirm
        if of_forms and self.decision != "allow":
            raise ValueError('answers and confirm are for "allow" rules only')
        if (of_pages and (of_forms or self.mode == "form")) or (of_forms and self.mode == "url"):
            raise ValueError("host and site are for pages, answers and confirm for forms: make it two rules")
        if self.decision == "allow" and not of_pages and not of_forms:
            raise ValueError(
                'an "allow" rule says what exactly it accepts: host= (or site=) for pages, answers= (or confirm=True) '
                'for forms; "ask" is what lets everything through to the person'
            )
        if of_pages or of_forms:
            object.__setattr__(self, "mode", "url" if of_pages else "form")

    def matches(self, asked: Asked) -> bool:
        """Whether it is about this request."""
        if self.server not in (None, asked.server) or self.mode not in (None, asked.mode):
            return False
        if self.host is None and self.site is None:
            return True
        page = asked.page
        if page is None:
            return False
        refuses = self.decision in ("decline", "block")
        named = plain_host(page.host) if refuses else page.host
        if self.host not in (None, named) or self.site not in (None, site_of(named)):
            return False
        if refuses:
            return True
        looks_like_another = asked.has_userinfo or (self.host is None and page.is_misleading)
        return not looks_like_another and (self.decision == "ask" or asked.is_sound)

    def __str__(self) -> str:
        parts: list[str] = [self.decision]
        if self.server is not None:
            parts.append(f"server {safe_line(self.server, limit=60)}")
        if self.mode is not None:
            parts.append(self.mode)
        parts.extend(f"{name} {value}" for name, value in (("host", self.host), ("site", self.site)) if value)
        return " ".join(parts)


Rule = Union[
    PolicyRule, Mapping[str, Any], Callable[[GopherAgentElicitationRequest], Union[PolicyRule, Verdict, None]]
]


def checked_rules(rules: Any) -> tuple[Any, ...]:
    """Rules as a policy keeps them: PolicyRule instances and functions. Raises ValueError naming the rule's place."""
    if isinstance(rules, (str, bytes, Mapping, PolicyRule)) or callable(rules):
        raise ValueError("rules must be a list of PolicyRule, mappings or functions")
    try:
        given = list(rules)
    except TypeError:
        raise ValueError("rules must be a list of PolicyRule, mappings or functions") from None
    if len(given) > MAX_RULES:
        raise ValueError(f"there are {len(given)} rules; a policy takes {MAX_RULES}: use site= or a function")
    return tuple(_checked_rule(rule, place) for place, rule in enumerate(given, 1))


def _checked_rule(rule: Any, place: int) -> Any:
    from ..elicitation import is_async_handler

    if isinstance(rule, PolicyRule):
        return rule
    if isinstance(rule, Mapping):
        try:
            return PolicyRule(**rule)
        except TypeError:
            raise ValueError(
                f"rule {place} needs a decision and may have server, mode, host, site, answers, confirm"
            ) from None
        except ValueError as error:
            raise ValueError(f"rule {place}: {error}") from None
    if not callable(rule):
        raise ValueError(f"rule {place} must be a PolicyRule, a mapping or a function of the request")
    if is_async_handler(rule):
        raise ValueError(f"rule {place} is async; a rule answers at once: use a plain function")
    return rule


def checked_answers(answers: Any) -> dict[str, Any] | None:
    """A copy of the answers. Raises ValueError, which shows none of them."""
    if answers is None:
        return None
    if not isinstance(answers, Mapping) or not all(isinstance(name, str) for name in answers):
        raise ValueError('answers must be a mapping of field names to values, as in {"field": "value"}')
    return copied(dict(answers))


def filled(asked: Asked, answers: Mapping[str, Any] | None, *, confirm: bool, rule: str) -> PolicyDecision:
    """The form accepted with those of the answers that it asks for, or declined; nothing is ever made up. What approves
    a call is left to a person."""
    from ..forms import FormContentError, read_form

    if is_confirmation(asked.request):
        return PolicyDecision("ask", f"{rule}, which approves no call of a tool: only a person can")
    try:
        form = read_form(asked.request.requested_schema)  # type: ignore[arg-type]  # None is no form either
        content = form.validate({name: value for name, value in (answers or {}).items() if name in form.by_name})
    except FormContentError as error:
        fields = safe_line(", ".join(map(str, error.errors)), limit=100)
        return PolicyDecision("decline", f"{rule}, whose answers the form does not take ({fields or 'as a whole'})")
    except Exception:  # whatever a server's schema breaks
        return PolicyDecision("decline", f"{rule}, but the form can't be read")
    if not content and not confirm:
        return PolicyDecision("decline", f"{rule}, which answers no field of this form (confirm=True would accept it)")
    return PolicyDecision("allow", rule, content)


def _checked_host(host: Any) -> str | None:
    if host is None:
        return None
    name = host.strip("[]") if isinstance(host, str) else ""
    if is_ip_address(name):
        return plain_host(f"[{name}]" if ":" in name else name)
    try:
        found = ascii_host(name).rstrip(".")
    except ValueError:
        found = ""
    if not found or found.rpartition(".")[2][0].isdigit():
        raise ValueError('a rule\'s host must be a host name or IP address alone, as in "login.example.com"')
    return found


def _checked_site(site: Any, *, allows: bool) -> str | None:
    found = _checked_host(site)
    if found is None:
        return None
    if is_ip_address(found.strip("[]")) or "." not in found or site_of(found) != found:
        raise ValueError('a rule\'s site must be a registered name, as in "example.com"; for one host use host=')
    if allows and is_shared_hosting(found):
        raise ValueError(f"strangers share names below {found}: allow the very host with host=")
    return found
