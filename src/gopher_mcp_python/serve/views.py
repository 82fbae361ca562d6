"""Elicitations as JSON: what a list shows, and one with all that is needed to answer it.

Texts of servers go out as they are; who shows them shows them as text. A call's arguments are sent as JSON text as
well, since a page's own numbers would not be exact.
"""

from __future__ import annotations

import json
from datetime import datetime
from typing import TYPE_CHECKING, Any

from ..errors import UnsafeUrlError
from ..forms import FormSchemaError
from ..handlers.form import FormModel
from ..handlers.form_texts import NO_SECRETS
from ..weburl import parse_web_url
from .drafts import fields_json
from .problems import Problem

if TYPE_CHECKING:
    from ..store.model import StoredElicitation

__all__ = ["file_rules", "form_of", "summary", "view"]

_NO_SECRETS_THERE = "Never give a password, a key or other credentials to a page whose host you do not know."
_MOST_IN_LIST = 500  # characters of a message


def summary(one: StoredElicitation) -> dict[str, Any]:
    """What a list shows; the message may be cut."""
    return {**_facts(one), "message": one.message[:_MOST_IN_LIST]}


def view(one: StoredElicitation) -> dict[str, Any]:
    """All of it but the answer."""
    from ..store.model import MAX_RETRIES
    from ..store.responses import response_schema

    return {
        **_facts(one),
        "ended_at": _time(one.ended_at),
        "retries": one.retries,
        "retries_left": max(0, MAX_RETRIES - one.retries),
        "confirmed": one.confirmed,
        "question": _question(one),
        "response_schema": response_schema(one.type or one.mode, one.params),
    }


def form_of(one: StoredElicitation) -> FormModel:
    """The form that is asked for, untouched. Raises Problem (409) for what is no form."""
    if one.mode != "form" or not one.params:
        raise Problem(409, "this elicitation is no form", code="kind")
    try:
        return FormModel(one.params["requestedSchema"])
    except (FormSchemaError, KeyError, TypeError):
        raise Problem(409, "the form can't be read, so it can't be filled in here", code="kind") from None


def file_rules(one: StoredElicitation) -> tuple[list[str], int | None]:
    """Media types (none: any) and the largest size in bytes of the file that is asked for."""
    return list(one.params.get("media_types") or ()), one.params.get("max_bytes")


def _facts(one: StoredElicitation) -> dict[str, Any]:
    return {
        "id": one.id,
        "mode": one.mode,
        "type": None if one.type is None else one.type.value,
        "status": one.status.value,
        "message": one.message,
        "server": one.server,
        "tool": one.tool,
        "created_at": _time(one.created_at),
        "expires_at": _time(one.expires_at),
    }


def _time(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _question(one: StoredElicitation) -> dict[str, Any]:
    """By mode and type. Empty when it was removed after its time."""
    if one.mode == "form":
        return _form_question(one) if one.params else {}
    if one.mode == "url":
        return _url_question(one) if one.params else {}
    if one.type == "confirmation" and "arguments" in one.params:
        arguments = one.params["arguments"]
        text = json.dumps(arguments, indent=2, ensure_ascii=False)
        return {"tool": one.tool, "arguments": arguments, "arguments_text": text}
    return dict(one.params)


def _form_question(one: StoredElicitation) -> dict[str, Any]:
    try:
        model = form_of(one)
    except Problem as problem:
        return {"fields": [], "refused": problem.message, "warning": NO_SECRETS}
    form = model.form
    return {"title": form.title, "description": form.description, "fields": fields_json(model), "refused": None,
            "warning": NO_SECRETS}  # fmt: skip


def _url_question(one: StoredElicitation) -> dict[str, Any]:
    """Where the page leads, judged; what must not be opened comes without a link."""
    given = one.params.get("url")
    try:
        page = parse_web_url(given if isinstance(given, str) else "")
    except UnsafeUrlError as error:
        return {"href": None, "given": str(given)[:4000], "refused": str(error), "warning": _NO_SECRETS_THERE}
    return {
        "href": page.href,
        "host": page.host,
        "site": page.site,
        "warnings": list(page.warnings),
        "is_misleading": page.is_misleading,
        "refused": None,
        "warning": _NO_SECRETS_THERE,
    }
