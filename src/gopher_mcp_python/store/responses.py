"""The shapes of answers, fixed for each kind of question, and their check. No engine of JSON Schema is needed.

    string_input   {"value": "text"}
    single_choice  {"choice": "one of the choices"}
    multi_choice   {"choices": ["some", "of them"]}
    confirmation   {"confirmed": true}
    file_upload    {"file_id": "...", "name": "...", "size": 1, "sha256": "<64 hex digits>", "media_type": "text/csv"}
    form           {"action": "accept", "content": {...}} or {"action": "decline"}
    url            {"action": "accept"} or {"action": "decline"}

Choices are compared exactly, character by character: nothing is trimmed, folded or normalised.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from ..forms import FormContentError, FormSchemaError, read_form
from ..forms.bounds import is_unsendable
from .model import ElicitationType
from .payload import RESPONSE_BYTES, json_text

__all__ = ["WHOLE", "response_schema", "validate_response"]

WHOLE = ""  # the name under which an error about the answer as a whole stands
_Errors = dict[str, str]
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")
_FILE = ("file_id", "name", "size", "sha256", "media_type")
_MEMBERS: dict[str, tuple[str, ...]] = {
    "string_input": ("value",),
    "single_choice": ("choice",),
    "multi_choice": ("choices",),
    "confirmation": ("confirmed",),
    "file_upload": _FILE,
}


def response_schema(kind: ElicitationType | str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The JSON Schema (2020-12) of an answer to one of the five types, or to "form" or "url"; `params` are the
    question's. Raises ValueError for another kind."""
    told = params or {}
    try:
        properties = _SCHEMAS[_label(kind)](told)
    except KeyError:
        raise ValueError("there is no elicitation of that kind: take one of " + ", ".join(_SCHEMAS)) from None
    required = ["action"] if "action" in properties else list(properties)
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def validate_response(
    kind: ElicitationType | str, params: Mapping[str, Any] | None, response: Any
) -> tuple[_Errors, Any]:
    """What is wrong with an answer, by field (WHOLE: the answer as such) and in words without its values; and the
    answer as it is to be kept. No errors: it is right."""
    label, told = _label(kind), params or {}
    try:
        json_text(response, "the answer", RESPONSE_BYTES)
    except ValueError as error:
        return {WHOLE: str(error)}, None
    if not isinstance(response, dict):
        return {WHOLE: "the answer must be a JSON object"}, None
    if label in ("form", "url"):
        return _mcp(label, told, response)
    members = _MEMBERS[label]
    errors = dict.fromkeys(_unknown(response, members), "is not a part of this answer")
    errors |= {name: "is required" for name in members if name not in response}
    for name in members:
        if name in response:
            problem = _CHECKS[label](name, response[name], told)
            if problem:
                errors[name] = problem
    return errors, response


def _label(kind: ElicitationType | str) -> str:
    return kind.value if isinstance(kind, ElicitationType) else kind


def _unknown(response: dict[str, Any], members: tuple[str, ...]) -> list[str]:
    """Names that are none of this answer's, and few of them."""
    return [_shown(name) for name in response if name not in members][:20]


def _shown(name: str) -> str:
    """A name that nobody asked for: a stranger's text, so shortened, and in ASCII."""
    return name[:80].encode("ascii", "backslashreplace").decode()


# ---- The five types -------------------------------------------------------------------------------------------------


def _string(_: str, value: Any, params: Mapping[str, Any]) -> str | None:
    least, most = params.get("min_length", 0), params.get("max_length", 10_000)
    if not isinstance(value, str):
        return "must be a text"
    if not least <= len(value) <= most:
        return f"must have {least} to {most} characters"
    return "holds half a character (a lone surrogate)" if is_unsendable(value) else None


def _choice(_: str, value: Any, params: Mapping[str, Any]) -> str | None:
    return None if isinstance(value, str) and value in params.get("choices", ()) else "must be one of the choices"


def _several(_: str, value: Any, params: Mapping[str, Any]) -> str | None:
    choices = params.get("choices", ())
    least, most = params.get("min_items", 0), params.get("max_items", len(choices))
    if not isinstance(value, (list, tuple)):
        return "must be a list of choices"
    if not least <= len(value) <= most:
        return f"must name {least} to {most} of the choices"
    known = set(choices)
    if not all(isinstance(one, str) and one in known for one in value):
        return "must name choices of the list only"
    return "names a choice twice" if len(set(value)) < len(value) else None


def _confirmed(_: str, value: Any, __: Mapping[str, Any]) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _file(name: str, value: Any, params: Mapping[str, Any]) -> str | None:
    if name == "size":
        most = params.get("max_bytes", 10_000_000)
        fits = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
        return None if fits else f"must be a number of bytes, at most {most}"
    if not isinstance(value, str) or not 0 < len(value) <= 1_000 or is_unsendable(value):
        return "must be a text of 1 to 1000 characters"
    if name == "sha256" and not _SHA256.match(value):
        return "must be 64 hexadecimal digits, in lower case"
    if name == "media_type" and not _is_of(value, params.get("media_types", ())):
        return "must be one of the media types that are asked for"
    return None


def _is_of(value: str, allowed: Any) -> bool:
    kind = value.partition(";")[0].strip().lower()
    return not allowed or any(kind == one or (one.endswith("/*") and kind.startswith(one[:-1])) for one in allowed)


_CHECKS: dict[str, Callable[[str, Any, Mapping[str, Any]], str | None]] = {
    "string_input": _string,
    "single_choice": _choice,
    "multi_choice": _several,
    "confirmation": _confirmed,
    "file_upload": _file,
}


# ---- MCP's own ------------------------------------------------------------------------------------------------------


def _mcp(mode: str, params: Mapping[str, Any], response: dict[str, Any]) -> tuple[_Errors, Any]:
    action = response.get("action")
    if not isinstance(action, str) or action not in ("accept", "decline"):
        return {"action": 'must be "accept" or "decline"' if "action" in response else "is required"}, None
    filled = mode == "form" and action == "accept"
    errors = dict.fromkeys(_unknown(response, ("action", "content")[: 1 + filled]), "is not a part of this answer")
    if not filled or errors:
        return errors, response
    content = response.get("content", {})
    if not isinstance(content, dict):
        return {"content": "must be a JSON object"}, None
    asked: Mapping[str, Any] = {}
    try:
        form = read_form(params.get("requestedSchema", {}))
        asked = form.by_name
        return {}, {"action": "accept", "content": form.validate(content)}
    except FormSchemaError as error:  # stored by a version that could read it
        return {WHOLE: f"this form can only be declined: {error}"}, None
    except FormContentError as error:
        whole = {WHOLE: "; ".join(error.general)} if error.general else {}
        named = {name if name in asked else _shown(name): text for name, text in error.errors.items()}
        return named | whole or {WHOLE: "the answers do not fit the form"}, None


# ---- Schemas --------------------------------------------------------------------------------------------------------


def _string_schema(params: Mapping[str, Any]) -> dict[str, Any]:
    least, most = params.get("min_length", 0), params.get("max_length", 10_000)
    return {"value": {"type": "string", "minLength": least, "maxLength": most}}


def _one_of(params: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "string", "enum": list(params["choices"])} if "choices" in params else {"type": "string"}


def _several_schema(params: Mapping[str, Any]) -> dict[str, Any]:
    bounds = {"minItems": params.get("min_items", 0)}
    if "max_items" in params:
        bounds["maxItems"] = params["max_items"]
    return {"choices": {"type": "array", "items": _one_of(params), "uniqueItems": True, **bounds}}


def _file_schema(params: Mapping[str, Any]) -> dict[str, Any]:
    text = {"type": "string", "minLength": 1, "maxLength": 1_000}
    size = {"type": "integer", "minimum": 0, "maximum": params.get("max_bytes", 10_000_000)}
    own = {"size": size, "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"}}
    return {name: own.get(name, text) for name in _FILE}


def _action_schema(_: Mapping[str, Any]) -> dict[str, Any]:
    return {"action": {"type": "string", "enum": ["accept", "decline"]}}


def _form_schema(params: Mapping[str, Any]) -> dict[str, Any]:
    asked = params.get("requestedSchema") or {}
    # A name of its own, so that its references ("#/$defs/...") lead to where they led.
    named = {"$id": "urn:gopher-mcp:requested-schema"} if '"$ref"' in json.dumps(asked) else {}
    return {**_action_schema(params), "content": {"type": "object", **named, **asked}}


_SCHEMAS: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "string_input": _string_schema,
    "single_choice": lambda params: {"choice": _one_of(params)},
    "multi_choice": _several_schema,
    "confirmation": lambda params: {"confirmed": {"type": "boolean"}},
    "file_upload": _file_schema,
    "form": _form_schema,
    "url": _action_schema,
}
