"""JSON replies."""

from __future__ import annotations

import json
from typing import Any

from starlette.responses import JSONResponse

__all__ = ["Json"]


class Json(JSONResponse):
    """JSON in ASCII: a server's text may hold half a character, which has no UTF-8 form."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")
