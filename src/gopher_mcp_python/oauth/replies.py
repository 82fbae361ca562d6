"""Replies of authorization servers, looked at before the SDK reads them.

What it can't read it quotes in an exception and in its log, secrets included; so it gets only what it can read.
"""

from __future__ import annotations

import json
import re
from typing import Any

import httpx2
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import BaseModel, ValidationError

from .errors import SignInError
from .grants import can_be_sent
from .http import host_of
from .refusals import is_registration

__all__ = ["fitting"]


def fitting(answer: httpx2.Response) -> httpx2.Response:
    """The same answer as the SDK can read it. Raises SignInError for a success that has no use."""
    if answer.request.method != "POST":
        return _without_blanks(answer)
    if answer.status_code not in (200, 201):
        return httpx2.Response(answer.status_code, json={"error": _error_code(answer)}, request=answer.request)
    if is_registration(answer.request):
        _check(answer, OAuthClientInformationFull, "client registration")
    else:
        token = _check(answer, OAuthToken, "token").access_token
        if not can_be_sent(token):
            host = host_of(str(answer.request.url))
            raise SignInError(f"{host} gave a token that holds characters which no request can carry", "misconfigured")
    return answer


def _check(answer: httpx2.Response, model: Any, what: str) -> Any:
    try:
        read: BaseModel = model.model_validate_json(answer.content)
    except ValidationError as error:
        wrong = sorted({str(part["loc"][0]) for part in error.errors(include_input=False) if part["loc"]})
        told = f": {', '.join(wrong)[:100]} missing or not as it must be" if wrong else ""
        host = host_of(str(answer.request.url))
        raise SignInError(f"The {what} that {host} gave can't be read{told}", "misconfigured") from None
    return read


def _error_code(answer: httpx2.Response) -> str:
    """RFC 6749 section 5.2: the code only, as the description may quote what was sent."""
    try:
        code = json.loads(answer.content)["error"]
    except (TypeError, KeyError, ValueError):
        return "unknown"
    return code if isinstance(code, str) and re.fullmatch(r"[a-z_]{1,40}", code) else "unknown"


def _without_blanks(answer: httpx2.Response) -> httpx2.Response:
    """Members of a description that are null or "" are absent, which is what their servers mean."""
    if answer.status_code != 200:
        return answer
    try:
        facts = json.loads(answer.content)
    except (ValueError, RecursionError):
        return answer
    if not isinstance(facts, dict) or not any(value in (None, "") for value in facts.values()):
        return answer
    kept = {name: value for name, value in facts.items() if value not in (None, "")}
    return httpx2.Response(answer.status_code, json=kept, request=answer.request)
