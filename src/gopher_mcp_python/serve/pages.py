"""The page: static files of this package, with a policy that lets nothing else in."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from .guard import PAGE_POLICY

__all__ = ["page_routes"]

_TYPES = {"html": "text/html", "css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_FILES = {
    "/": "index.html",
    "/page.css": "page.css",
    "/page.js": "page.js",
    "/answering.js": "answering.js",
    "/forms.js": "forms.js",
    "/kept.js": "kept.js",
    "/elements.js": "elements.js",
    "/talk.js": "talk.js",
    "/icon.svg": "icon.svg",
}


def page_routes() -> list[Route]:
    return [Route(path, _file, name=name) for path, name in _FILES.items()]


async def _file(request: Request) -> Response:
    name = _FILES[request.url.path]
    kind = _TYPES[name.rpartition(".")[2]]
    return Response(_bytes(name), media_type=f"{kind}; charset=utf-8", headers={"content-security-policy": PAGE_POLICY})


@cache
def _bytes(name: str) -> bytes:
    return (files(__package__) / "page" / name).read_bytes()
