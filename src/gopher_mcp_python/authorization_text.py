"""Authorization URLs that come as text: a tool whose whole result is a provider's sign-in page.

Some servers can't elicit and return the URL instead. Where such a URL was all that the only tool of a run returned, and
nobody was asked during the run, the handler is asked and the query runs once more. Never otherwise: a run in which
anything else happened is not repeated.
"""

from __future__ import annotations

from .engines.base import RunOutcome
from .errors import UnsafeUrlError

__all__ = ["authorization_url", "url_to_ask_for"]


def url_to_ask_for(outcome: RunOutcome) -> str | None:
    """The URL that the handler is to be asked about after this run; None where the run stands as it is."""
    if outcome.elicited or len(outcome.tools_called) != 1 or outcome.last_tool_text is None:
        return None
    return authorization_url(outcome.last_tool_text)


def authorization_url(text: str) -> str | None:
    """The OAuth authorize URL (it has `response_type` and `client_id`) that `text` is, or None when it is anything
    else."""
    url = text.strip()
    if not url.lower().startswith(("https://", "http://")) or len(url.split()) != 1:
        return None
    from urllib.parse import parse_qs, urlsplit

    from .weburl import parse_web_url

    try:
        href = parse_web_url(url).href
        names = parse_qs(urlsplit(href).query, keep_blank_values=False)
    except (UnsafeUrlError, ValueError):
        return None
    return href if "response_type" in names and "client_id" in names else None
