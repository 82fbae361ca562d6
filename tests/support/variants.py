"""Engine and provider pairs that the same test runs on, and the environment of a child process for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

import pytest

Test = TypeVar("Test", bound=Callable[..., object])


@dataclass(frozen=True)
class Variant:
    """An engine with the provider that decides for it."""

    engine: str
    provider: str

    @property
    def native(self) -> bool:
        return self.engine == "native"

    def __str__(self) -> str:
        return f"{self.engine}-{self.provider.removesuffix('Provider').lower()}"


NATIVE = Variant("native", "OpenAIProvider")
EMBEDDED = Variant("embedded", "DirectProvider")
BOTH = [NATIVE, EMBEDDED]
ALL = [
    *BOTH,
    Variant("native", "AnthropicProvider"),
    Variant("embedded", "OpenAIProvider"),
    Variant("embedded", "AnthropicProvider"),
]

on_both = pytest.mark.parametrize("variant", BOTH, ids=str)
on_all = pytest.mark.parametrize("variant", ALL, ids=str)
with_model = pytest.mark.parametrize("variant", [variant for variant in ALL if variant != EMBEDDED], ids=str)
