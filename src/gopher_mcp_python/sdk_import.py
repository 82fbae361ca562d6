"""Importing the client of the MCP SDK without its server: a third of what a program waits before its work begins.

`import mcp.client.session` runs `mcp/__init__.py` and `mcp/client/__init__.py` first, as Python imports a package
before what is in it, and these import all of the SDK: its server, starlette, jsonschema. The client's modules name what
they need themselves. So `load` imports them with a stand-in for either package, and takes the stand-ins away again.

A program does not notice. Its own `import mcp`, before or after, on any thread, gives the real package, made by the
ordinary import of Python, with the very modules that were imported here. A thread that takes hold of a stand-in while
`load` is at work gets from it what the real package has. Where anything fails, the import is made again the usual way.

The cyclic garbage collector stands still meanwhile: an import makes many objects and next to no garbage. And the SDK's
internal models of the two generations of the protocol, which check what comes in, are built when the first message of
their kind comes (pydantic's `defer_build`): a session uses a tenth of them.
"""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, cast

__all__ = ["load", "load_meanwhile", "load_whole"]

# The finders and loaders here have no base classes: importlib.abc alone would cost what is saved elsewhere.
_PACKAGES = ("mcp", "mcp.client")
_DEFERS_SAFELY = (2, 14)  # pydantic builds a deferred model under a lock, whichever thread needs it first
_lock = threading.RLock()


def _begin_anew() -> None:
    """In a forked child: the thread that was importing, if there was one, does not exist here."""
    global _lock
    _lock = threading.RLock()
    for finder in [known for known in sys.meta_path if isinstance(known, _Finder)]:
        if finder.thread != threading.get_ident():
            finder.end()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_anew)


def load(*names: str) -> None:
    """Imports the modules of these names; what they need of the SDK comes without its server. Raises what an import
    raises."""
    if all(name in sys.modules for name in names):
        return
    with _collector_off():
        try:
            with _lock, _stand_ins(), _deferred_wire_models():
                for name in names:
                    import_module(name)
        except Exception:  # an SDK that needs its packages: the usual way, which also says what is wrong
            for name in names:
                import_module(name)


def load_meanwhile(*names: str) -> None:
    """Begins to `load` on a thread, for somebody who is about to wait for a server and will `load` the same then."""

    def begin() -> None:
        with suppress(Exception):  # told by the one that follows
            load(*names)

    if not all(name in sys.modules for name in names):
        threading.Thread(target=begin, name="gopher-mcp import").start()


def load_whole() -> None:
    """Imports the SDK with its server, the usual way, for whoever needs that: not while another thread is at `load`,
    whose stand-ins the server's modules would take for the packages."""
    with _lock:
        import_module("mcp")


@contextmanager
def _collector_off() -> Iterator[None]:
    collecting = gc.isenabled()
    try:
        gc.disable()
        yield
    finally:
        if collecting:
            _age()
            gc.enable()


def _age() -> None:
    """Puts what was made to the old objects, as several passes of the collector over all of it would. (Thawing does
    that; a program that has frozen objects of its own keeps them frozen.)"""
    if hasattr(gc, "freeze") and gc.get_freeze_count() == 0:
        gc.freeze()
        gc.unfreeze()


@contextmanager
def _stand_ins() -> Iterator[None]:
    """While open, a package that nobody has imported yet is there without having been run."""
    if "mcp" in sys.modules:
        yield
        return
    finder = _Finder()
    try:
        sys.meta_path.insert(0, finder)
        for name in _PACKAGES:
            import_module(name)  # whoever imports it at the same moment is faster or waits: Python's own lock does it
        yield
    finally:
        finder.end()
        if not any(isinstance(known, _Binder) for known in sys.meta_path):
            sys.meta_path.insert(0, _Binder())


@contextmanager
def _deferred_wire_models() -> Iterator[None]:
    """While open, models of the SDK's internal kind are only declared. What is derived from their base class later is
    not concerned, and no other model ever is."""
    config: dict[str, Any] | None = None
    with suppress(ImportError, AttributeError, ValueError):
        import pydantic

        if tuple(map(int, pydantic.VERSION.split(".")[:2])) >= _DEFERS_SAFELY:
            config = import_module("mcp_types._wire_base").WireModel.model_config
    if config is None or "defer_build" in config:
        yield
        return
    config["defer_build"] = True
    try:
        yield
    finally:
        del config["defer_build"]


class _StandIn(ModuleType):
    """A package of the SDK for the time that its modules are imported in. What somebody else finds missing in it is
    looked up in the real one, after that time."""

    def __getattr__(self, name: str) -> Any:
        finder: _Finder = self.__dict__["__finder__"]
        if finder.thread == threading.get_ident() and not finder.over.is_set():
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        finder.over.wait()
        return getattr(import_module(self.__name__), name)


class _Finder:
    """Gives the stand-ins, to its own thread only."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.over = threading.Event()
        self.made: list[ModuleType] = []

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in _PACKAGES or threading.get_ident() != self.thread:
            return None
        real = PathFinder.find_spec(name, path)
        if real is None or real.submodule_search_locations is None:
            return None
        spec = ModuleSpec(name, cast(Any, self), origin=real.origin, is_package=True)
        spec.submodule_search_locations = real.submodule_search_locations
        spec.has_location = True
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        package = _StandIn(spec.name)
        package.__dict__["__finder__"] = self
        self.made.append(package)
        return package

    def exec_module(self, module: ModuleType) -> None:
        """The point of it all: nothing."""

    def end(self) -> None:
        with suppress(ValueError):
            sys.meta_path.remove(self)
        for package in self.made:
            if sys.modules.get(package.__name__) is package:
                del sys.modules[package.__name__]
        self.over.set()


class _Binder:
    """When the real packages are imported, makes the modules that were imported before them their attributes. Python
    does that for a module when it loads it, and these are loaded already. Goes when there is nothing left to do."""

    def __init__(self) -> None:
        self._left = set(_PACKAGES)
        self._asking = threading.local()

    def find_spec(self, name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name not in self._left or getattr(self._asking, "name", None) == name:
            return None
        self._asking.name = name
        try:
            spec = _found_by_others(name, path, target)
        finally:
            self._asking.name = None
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = cast(Any, _Binding(spec.loader, self))
        return spec

    def bound(self, name: str) -> None:
        self._left.discard(name)
        if not self._left:
            with suppress(ValueError):
                sys.meta_path.remove(self)


def _found_by_others(name: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    for finder in list(sys.meta_path):
        if not isinstance(finder, _Binder | _Finder):
            find = getattr(finder, "find_spec", None)
            spec: ModuleSpec | None = find(name, path, target) if find is not None else None
            if spec is not None:
                return spec
    return None


class _Binding:
    """The real loader, with one step before it. It leaves no trace on the module."""

    def __init__(self, real: Any, binder: _Binder) -> None:
        self._real, self._binder = real, binder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._real.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._real
        module.__loader__ = self._real
        for name, known in list(sys.modules.items()):
            parent, _, child = name.rpartition(".")
            if parent == module.__name__ and isinstance(known, ModuleType) and not isinstance(known, _StandIn):
                setattr(module, child, known)
        self._real.exec_module(module)
        self._binder.bound(module.__name__)
