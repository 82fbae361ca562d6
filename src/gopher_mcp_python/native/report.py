"""What the search for the native library found: every place tried, with its reason."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Attempt:
    """One place that was looked at.

    `found_via` names the find step: a variable's name, ``package``, ``loader`` or a folder's kind. `reason` says why
    the place can't serve; None where it can.
    """

    found_via: str
    path: str
    version: str | None = None
    version_source: str | None = None  # "build id", "file name", "native package"; None where nothing tells
    reason: str | None = None

    @property
    def usable(self) -> bool:
        return self.reason is None

    def line(self) -> str:
        version = f" (version {self.version})" if self.version else ""
        return f"{self.found_via}: {self.path}{version}: {self.reason or 'usable'}"

    def failed(self, reason: str) -> Attempt:
        return Attempt(self.found_via, self.path, self.version, self.version_source, reason)


@dataclass(frozen=True, slots=True)
class Clash:
    """A library that the vendor ships under a name that the host has, too."""

    soname: str
    host_path: str
    opened_first: bool
    reason: str


@dataclass(slots=True)
class Report:
    """The whole search. `attempts` is in search order; the first usable one is the one to load."""

    attempts: list[Attempt] = field(default_factory=list)
    openssl11: list[Attempt] = field(default_factory=list)
    clashes: list[Clash] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)  # shared libraries that the chosen one needs and the host lacks
    damaged: list[str] = field(default_factory=list)  # files beside it that the loader must not be given: "name: why"
    package: str | None = None  # installed native package, as pip names it
    package_version: str | None = None
    overridden_by: str | None = None  # the variable that decided the search

    @property
    def chosen(self) -> Attempt | None:
        return next((attempt for attempt in self.attempts if attempt.usable), None)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
