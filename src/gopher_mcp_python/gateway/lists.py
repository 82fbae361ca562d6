"""What the servers list, as one list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .front import Front, gathered
from .link import Link
from .rules import Rules

__all__ = ["LISTED", "listed", "owner_of_resource"]

# The key of each list in its result.
LISTED = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}


async def listed(front: Front, method: str, params: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    """One server's page as it came, several servers' lists in one page; without the tools that rules deny.

    A server that can't be reached is left out. Raises MCPError when none can.
    """
    key = LISTED[method]
    if not front.upstreams.prefixed:
        return await _page(front.links[0], method, key, params, rules)
    names = [link.upstream.name for link in front.links]
    found = await gathered([link.pages(method, key) for link in front.links], names)
    items: list[dict[str, Any]] = []
    for link, listing in zip(front.links, found, strict=True):
        for item in listing or ():
            if method != "tools/list" or not rules.hidden(link.upstream.name, str(item.get("name"))):
                items.append(_shown(front, link, item) if method in ("tools/list", "prompts/list") else item)
    return {key: items}


async def _page(link: Link, method: str, key: str, params: Mapping[str, Any], rules: Rules) -> dict[str, Any]:
    session = await link.session()
    if method.partition("/")[0] not in session.offers:
        return {key: []}
    page = await link.ask(method, params)
    if method == "tools/list" and rules.deny and isinstance(page.get(key), list):
        kept = [tool for tool in page[key] if not rules.hidden(link.upstream.name, str(tool.get("name")))]
        return {**page, key: kept}
    return page


def _shown(front: Front, link: Link, item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "name": front.upstreams.shown(link.upstream, str(item.get("name")))}


async def owner_of_resource(front: Front, uri: str) -> list[Link]:
    """The servers that may have a resource, the likeliest first: those that list it, those with a template that fits,
    then the rest of those that have resources, in the order given."""
    if not front.upstreams.prefixed:
        return front.links
    ranked: list[tuple[int, Link]] = []
    names = [link.upstream.name for link in front.links]
    resources = await gathered([link.pages("resources/list", "resources") for link in front.links], names)
    if not any(_lists(found, uri) for found in resources):
        templates = await gathered(
            [link.pages("resources/templates/list", "resourceTemplates") for link in front.links], names
        )
    else:
        templates = [None] * len(names)
    for link, own, patterns in zip(front.links, resources, templates, strict=True):
        if own is None:
            continue
        fits = any(_fits(str(item.get("uriTemplate", "")), uri) for item in patterns or ())
        ranked.append((0 if _lists(own, uri) else 1 if fits else 2, link))
    return [link for _, link in sorted(ranked, key=lambda entry: entry[0])]


def _lists(found: Any, uri: str) -> bool:
    return any(item.get("uri") == uri for item in found or ())


def _fits(template: str, uri: str) -> bool:
    """Whether a URI may come of a template: its fixed parts stand in the URI in their order."""
    at = 0
    parts = _fixed_parts(template)
    if parts == [template] or not uri.startswith(parts[0]) or not uri.endswith(parts[-1]):
        return template == uri
    for part in parts:
        at = uri.find(part, at)
        if at < 0:
            return False
        at += len(part)
    return True


def _fixed_parts(template: str) -> list[str]:
    parts, rest = [], template
    while "{" in rest and "}" in rest:
        before, _, rest = rest.partition("{")
        parts.append(before)
        rest = rest.partition("}")[2]
    return [*parts, rest]
