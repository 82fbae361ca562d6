"""Pages whose tables are made from results: each stands between `<!-- table: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_MARKED = re.compile(r"(<!-- table: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def fill(page: str, tables: Mapping[str, str]) -> str:
    """The page with its tables made anew. Raises KeyError for a mark that nobody fills."""
    return _MARKED.sub(lambda found: f"{found[1]}{tables[found[2]]}\n{found[4]}", page)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])
