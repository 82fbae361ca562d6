"""The servers behind the gateway, and the names under which their tools and prompts are seen in front of it.

With one server every name stays as it is. With several each tool and each prompt is called `server_name`, always: were
names prefixed only where two servers clash, a server could change what another one's tool is called by adding a tool.
A server's own name has no underscore, so the first one in a name ends the prefix.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..toolset.configuration import from_url
from ..toolset.connection import Connection, StdioConnection

__all__ = ["Upstream", "Upstreams", "read_upstream"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,31}\Z")


@dataclass(frozen=True)
class Upstream:
    """One server behind the gateway.

    Attributes:
        name: what it is called in rules, prefixes and messages.
        connection: where it is. Headers there are the gateway's own; a caller's token never goes to a server.

    Raises ValueError for a name that is not 1 to 32 ASCII letters, digits, dots and hyphens.
    """

    name: str
    connection: Connection

    def __post_init__(self) -> None:
        if not _NAME.match(self.name):
            raise ValueError(
                f"{self.name[:40]!r} can't be the name of a server: 1 to 32 ASCII letters, digits, dots and hyphens, "
                "the first a letter or a digit"
            )


def read_upstream(text: str) -> Upstream:
    """`NAME=URL` or `NAME=command argument ...` (as in a shell, but no shell runs it).

    Raises ValueError, AgentError for a URL that is none.
    """
    name, equals, where = text.partition("=")
    if not equals or not where.strip():
        raise ValueError("--upstream: expected NAME=URL or NAME=command")
    where = where.strip()
    if where.lower().startswith(("http://", "https://")):
        (connection,) = from_url(where, {})
        return Upstream(name.strip(), connection)
    try:
        command, *arguments = shlex.split(where)
    except ValueError as error:
        raise ValueError(f"--upstream {name.strip()[:40]}: the command can't be read: {error}") from None
    return Upstream(name.strip(), StdioConnection(command, tuple(arguments), name=name.strip()))


class Upstreams:
    """All of them, in the order given. Raises ValueError when there is none or two have one name."""

    def __init__(self, upstreams: Sequence[Upstream]) -> None:
        self._all = tuple(upstreams)
        names = [upstream.name for upstream in self._all]
        if not names:
            raise ValueError("a gateway needs at least one server behind it (--upstream NAME=URL)")
        if len(set(names)) != len(names):
            raise ValueError("two servers behind the gateway have the same name; give each its own")
        self._by_name = dict(zip(names, self._all, strict=True))

    def __iter__(self) -> Iterator[Upstream]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def prefixed(self) -> bool:
        """Whether names have their server's in front."""
        return len(self._all) > 1

    def shown(self, upstream: Upstream, name: str) -> str:
        """A server's own name for a tool or prompt as clients see it."""
        return f"{upstream.name}_{name}" if self.prefixed else name

    def find(self, shown: str) -> tuple[Upstream, str] | None:
        """The server and its own name for what clients call `shown`."""
        if not self.prefixed:
            return self._all[0], shown
        server, underscore, name = shown.partition("_")
        upstream = self._by_name.get(server)
        return (upstream, name) if upstream is not None and underscore and name else None
