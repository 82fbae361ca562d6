"""The error of a framework that is not installed: it names the extra."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needs_extra"]


@contextmanager
def needs_extra(extra: str, package: str) -> Iterator[None]:
    """Around the import of a framework. Raises ImportError, also for one that is too old to have what is imported."""
    try:
        yield
    except ImportError as error:
        raise ImportError(
            f"{package} is not installed, or too old or too new for this package ({error}): "
            f"pip install 'gopher-mcp-python[{extra}]'",
            name=error.name,
        ) from error
