"""The OpenAPI 3.1 document of the REST interface. A test holds it against the running server."""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["document"]

_ID = {"type": "string", "pattern": "^el_[A-Za-z0-9_-]{22}$"}
_TIME = {"type": "string", "format": "date-time"}
_STATUS = {"enum": ["pending", "responded", "expired", "cancelled", "validation_failed"]}
_TYPE = {"enum": ["string_input", "single_choice", "multi_choice", "confirmation", "file_upload", None]}
_TEXT_OR_NULL = {"type": ["string", "null"]}
_COUNT = {"type": "integer", "minimum": 0}


def _object(required: dict[str, Any], optional: dict[str, Any] | None = None, *, closed: bool = True) -> dict[str, Any]:
    schema = {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}
    return {**schema, "additionalProperties": False} if closed else schema


_SUMMARY = {
    "id": _ID,
    "mode": {"enum": ["fixed", "form", "url"]},
    "type": _TYPE,
    "status": _STATUS,
    "message": {"type": "string"},
    "server": _TEXT_OR_NULL,
    "tool": _TEXT_OR_NULL,
    "created_at": _TIME,
    "expires_at": _TIME,
}
_VIEW = {
    **_SUMMARY,
    "ended_at": {"type": ["string", "null"], "format": "date-time"},
    "retries": _COUNT,
    "retries_left": _COUNT,
    "confirmed": {"type": ["boolean", "null"]},
    "question": {"type": "object", "description": "What is asked, by mode and type; to be shown as text."},
    "response_schema": {"type": "object", "description": "JSON Schema of the response."},
}
_STATE = {
    "name": {"type": "string"},
    "state": {"enum": ["value", "default", "omitted", "empty"]},
    "text": {"type": "string"},
    "picked": {"type": "array", "items": _COUNT},
    "problem": _TEXT_OR_NULL,
}
_TYPED = {
    "type": "array",
    "maxItems": 2000,
    "description": "What was done with fields of a form. Fields of another form, and one field twice, are refused.",
    "items": {
        "oneOf": [
            _object({"name": {"type": "string"}, "text": {"type": "string"}}),
            _object({"name": {"type": "string"}, "picked": {"type": "array", "items": _COUNT, "uniqueItems": True}}),
            _object({"name": {"type": "string"}, "state": {"enum": ["omitted", "empty", "default"]}}),
        ]
    },
}
_UPLOAD = {
    "file_id": {"type": "string", "pattern": "^file_[A-Za-z0-9_-]{22}$"},
    "name": {"type": "string"},
    "size": _COUNT,
    "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
    "media_type": {"type": "string"},
}
_SCHEMAS = {
    "Summary": _object(_SUMMARY),
    "Elicitation": _object(_VIEW),
    "Page": _object(
        {
            "elicitations": {"type": "array", "items": {"$ref": "#/components/schemas/Summary"}},
            "next": {"oneOf": [_ID, {"type": "null"}], "description": "after of the next page; null on the last"},
        }
    ),
    "Answer": {
        "oneOf": [_object({"response": {"type": "object"}}), _object({"fields": _TYPED})],
        "description": "response: the answer itself (see response_schema). fields: a form as a person filled it in.",
    },
    "Draft": _object({"fields": _TYPED}),
    "Judged": _object(
        {
            "fields": {"type": "array", "items": _object(_STATE)},
            "general": {"type": "array", "items": {"type": "string"}},
            "is_complete": {"type": "boolean"},
        }
    ),
    "Recorded": _object({"id": _ID, "outcome": {"enum": ["recorded", "already_recorded"]}, "status": _STATUS}),
    "Upload": _object(_UPLOAD),
    "Who": _object(
        {
            "caller": {"type": "string"},
            "name": {"type": "string"},
            "scopes": {"type": "array", "items": {"enum": ["call", "answer"]}},
        }
    ),
    "Health": _object({"status": {"const": "ok"}}),
    "Problem": _object(
        {
            "error": _object(
                {"code": {"type": "string"}, "message": {"type": "string"}},
                {
                    "fields": {"type": "object", "additionalProperties": {"type": "string"}},
                    "general": {"type": "array", "items": {"type": "string"}},
                    "retries_left": _COUNT,
                    "status": _STATUS,
                },
            )
        }
    ),
}
_PROBLEMS = {
    401: "No token, or none that is good (any more).",
    403: "The token lacks the scope, or the request may be one of another site's page (a form without a token).",
    404: "There is no such elicitation, or it is another caller's.",
    405: "Not by this method.",
    408: "Nothing of the body came for too long.",
    409: "It has ended already, with another answer or without one; or it is of another kind.",
    413: "The body is too large.",
    415: "The body is of the wrong type.",
    422: "The request or the answer is not valid; `fields` says where, `retries_left` how often it may be tried again.",
    429: "Too many; Retry-After says when.",
    503: "The store can't be reached; Retry-After says when to try again.",
    507: "There is no room for the file.",
}
_RETRY = {"Retry-After": {"schema": {"type": "string", "pattern": "^[0-9]+$"}, "required": True}}


def _answers(good: int, schema: str, *bad: int) -> dict[str, Any]:
    """The responses of an operation."""
    found: dict[str, Any] = {str(good): {"description": "Done.", "content": _json(schema)}}
    for status in sorted({401, 403, 408, 422, 429, 503, *bad}):
        found[str(status)] = {"description": _PROBLEMS[status], "content": _json("Problem")}
        if status == 429:
            found[str(status)]["headers"] = _RETRY
    return found


def _json(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _body(schema: str, *, required: bool = True) -> dict[str, Any]:
    return {"required": required, "content": _json(schema)}


def _query(name: str, schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema, "description": description}


def _operation(name: str, summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"operationId": name, "summary": summary, "responses": responses, **more}


def _open(name: str, summary: str) -> dict[str, Any]:
    responses = {"200": {"description": "Yes.", "content": _json("Health")}}
    for status in (403, 503):
        responses[str(status)] = {"description": _PROBLEMS[status], "content": _json("Problem")}
    return {"get": _operation(name, summary, responses, security=[])}


def _list() -> dict[str, Any]:
    parameters = [
        _query("limit", {"type": "integer", "minimum": 1, "maximum": 100, "default": 100}, "How many at most."),
        _query("after", _ID, "next of the page before."),
    ]
    return _operation("list", "Pending elicitations of the caller, oldest first.", _answers(200, "Page", 404),
                      parameters=parameters)  # fmt: skip


def _events() -> dict[str, Any]:
    last = {"name": "Last-Event-ID", "in": "header", "required": False, "schema": {"type": "string", "maxLength": 80}}
    responses = _answers(200, "Page")
    responses["200"] = {
        "description": "Server-sent events: ready, change ({id, status}), reset (read the list anew); heartbeats.",
        "content": {"text/event-stream": {"schema": {"type": "string"}}},
    }
    return _operation("events", "The feed of changes of the caller's elicitations.", responses, parameters=[last])


def _file() -> dict[str, Any]:
    name = {
        "name": "X-File-Name",
        "in": "header",
        "required": False,
        "schema": {"type": "string", "maxLength": 3000},
        "description": "The file's name, percent-encoded; a word for people.",
    }
    body = {"required": True, "content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
    summary = "Takes the file of a file_upload; the answer then names its file_id."
    responses = _answers(201, "Upload", 404, 409, 413, 415, 507)
    return _operation("file", summary, responses, requestBody=body, parameters=[name])


@cache
def document() -> dict[str, Any]:
    """The document."""
    one = "/v1/mcp/elicitations/{id}"
    identity = {"name": "id", "in": "path", "required": True, "schema": _ID}
    ended = (404, 409, 413, 415)
    paths: dict[str, Any] = {
        "/v1/mcp/elicitations": {"get": _list()},
        "/v1/mcp/elicitations/events": {"get": _events()},
        one: {"get": _operation("show", "One elicitation in full.", _answers(200, "Elicitation", 404))},
        f"{one}/respond": {
            "post": _operation(
                "respond", "Records the answer.", _answers(200, "Recorded", *ended, 507), requestBody=_body("Answer")
            )
        },
        f"{one}/cancel": {
            "post": _operation(
                "cancel",
                "Ends it without an answer.",
                _answers(200, "Recorded", *ended),
                requestBody={
                    "required": False,
                    "content": {"application/json": {"schema": {"type": "object", "maxProperties": 0}}},
                },
            )
        },
        f"{one}/check": {
            "post": _operation(
                "check",
                "Judges a form as typed so far; records nothing.",
                _answers(200, "Judged", 404, 409, 413, 415),
                requestBody=_body("Draft"),
            )
        },
        f"{one}/file": {"post": _file()},
        "/v1/whoami": {"get": _operation("whoami", "Who the token is for.", _answers(200, "Who"))},
        "/health": _open("health", "Whether the process answers."),
        "/ready": _open("ready", "Whether the store answers as well."),
    }
    for path, item in paths.items():
        if "{id}" in path:
            item["parameters"] = [identity]
    return {
        "openapi": "3.1.0",
        "info": {"title": "gopher-mcp elicitations", "version": "1", "license": {"name": "Apache-2.0"}},
        "paths": paths,
        "components": {
            "schemas": _SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }
