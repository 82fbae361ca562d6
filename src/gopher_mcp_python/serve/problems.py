"""What a request can be refused with: one shape for all, and no text of the request in it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from .replies import Json

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["Problem"]

_CODES = {
    400: "bad_request",
    401: "unauthorized",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    406: "not_acceptable",
    408: "timeout",
    409: "conflict",
    411: "length_required",
    413: "too_large",
    415: "unsupported_media_type",
    422: "invalid",
    429: "too_many",
    500: "failed",
    503: "unavailable",
    507: "no_room",
}


class Problem(Exception):
    """A refusal; its text is for people and holds no value of theirs.

    Args:
        status: of HTTP.
        message: what is wrong and what to do.
        code: a word for programs; by the status when omitted.
        headers: further headers.
        extra: further members of "error" (`fields`, `retries_left`, `status`).
    """

    def __init__(
        self,
        status: int,
        message: str,
        /,
        *,
        code: str | None = None,
        headers: Mapping[str, str] | None = None,
        **extra: Any,
    ) -> None:
        super().__init__(message)
        self.status, self.message = status, message
        self.code = code or _CODES.get(status, "failed")
        self.headers = dict(headers or {})
        self.extra = extra

    def response(self) -> Response:
        """As it goes to the client."""
        content = {"code": self.code, "message": self.message, **self.extra}
        return Json({"error": content}, self.status, headers=self.headers)
