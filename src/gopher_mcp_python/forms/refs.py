"""`$ref`, inside the schema only. Nothing is ever fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ..display import safe_line
from . import limits
from .errors import FormSchemaError

_INDEX = re.compile(r"(?:0|[1-9][0-9]{0,8})\Z")
_NOWHERE = object()


def resolve(root: Mapping[str, Any], ref: Any, where: object) -> Any:
    """What a `$ref` leads to: a JSON pointer (RFC 6901) into `root`, as a URL fragment.

    Raises FormSchemaError for another document (it is not fetched), an anchor, and a place that is not there.
    """
    if not isinstance(ref, str):
        raise FormSchemaError(f"{where} has a $ref that is no text")
    if len(ref) > limits.MAX_TITLE:
        raise FormSchemaError(f"{where} has a $ref of more than {limits.MAX_TITLE} characters")
    shown = f'"{safe_line(ref, limit=100)}"'
    fragment = _fragment(root, ref)
    if fragment is None:
        raise FormSchemaError(f"{where} refers to another document ({shown}); nothing is fetched for a form")
    pointer = unquote(fragment)
    if pointer and not pointer.startswith("/"):
        raise FormSchemaError(f"{where} refers to a named place ({shown}); only paths like #/$defs/Name are followed")
    found: Any = root
    for step in pointer.split("/")[1:]:
        found = _step(found, step.replace("~1", "/").replace("~0", "~"))
        if found is _NOWHERE:
            raise FormSchemaError(f"{where} refers to {shown}, which is not there")
        if isinstance(found, dict) and isinstance(found.get("$id"), str):
            raise FormSchemaError(f"{where} refers into a part with an $id of its own ({shown}); that is not followed")
    return found


def _fragment(root: Mapping[str, Any], ref: str) -> str | None:
    """The part after "#" of a reference to this document, None for another one."""
    address, _, fragment = ref.partition("#")
    own = root.get("$id")
    own = own.partition("#")[0] if isinstance(own, str) else ""
    return fragment if address in ("", own) else None


def _step(place: Any, step: str) -> Any:
    if isinstance(place, dict):
        return place.get(step, _NOWHERE)
    if isinstance(place, (list, tuple)) and _INDEX.match(step) and int(step) < len(place):
        return place[int(step)]
    return _NOWHERE
