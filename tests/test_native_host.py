"""The vendor brings old copies of other people's libraries along: what is opened before them, and that it helps."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gopher_mcp_python.native import clashes, elf, names
from gopher_mcp_python.native.ldcache import read_cache
from tests.support import children
from tests.support.compiled import functions, shared_library
from tests.support.postgres import Postgres

PLATFORM = names.Platform("linux", "x64")

# ---- The rule, on libraries made for it -----------------------------------------------------------------------------


class World:
    """A vendor's folder and a host's folder, with the same names in both."""

    def __init__(self, root: Path) -> None:
        self.vendor, self.host = root / "vendor", root / "host"

    def library(
        self, folder: Path, name: str, *defined: str, calls: tuple[str, ...] = (), needs: tuple[str, ...] = ()
    ) -> Path:
        return shared_library(
            folder, name, functions(*defined, calls=calls), needs=tuple(folder / need for need in needs)
        )

    def find(self) -> dict[str, tuple[bool, str]]:
        def on_host(soname: str) -> str | None:
            path = self.host / soname
            return str(path) if path.exists() else None

        found = clashes.find(str(self.vendor / "libgopher-orch.so.0"), PLATFORM, on_host)
        return {clash.soname: (clash.opened_first, clash.reason) for clash in found}


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


_TRY = """
import ctypes, json, os, sys
def can(path):
    try:
        ctypes.CDLL(path, mode=os.RTLD_NOW)
        return "opens"
    except OSError as error:
        return str(error)
print(json.dumps([can(path) for path in sys.argv[1:]]))
"""


def opened_in_turn(*paths: Path) -> list[str]:
    """What a fresh process says to opening these libraries one after the other."""
    result: list[str] = json.loads(children.python(_TRY, *map(str, paths)).check().out)
    return result


def test_a_newer_copy_of_the_host_goes_first_and_that_helps(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo_old")
    orch = world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("foo_old",), needs=("libfoo.so.1",))
    newer = world.library(world.host, "libfoo.so.1", "foo_old", "foo_new")
    user = world.library(world.host, "libuser.so", "user", calls=("foo_new",), needs=("libfoo.so.1",))
    assert world.find() == {"libfoo.so.1": (True, "the host's copy is the newer one")}
    assert opened_in_turn(newer, orch, user) == ["opens"] * 3
    (_, broken) = opened_in_turn(orch, user)
    assert "undefined symbol: foo_new" in broken


def test_a_copy_that_offers_no_more_is_left_alone(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo_old", "foo_more")
    world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("foo_old",), needs=("libfoo.so.1",))
    world.library(world.host, "libfoo.so.1", "foo_old")
    assert world.find() == {"libfoo.so.1": (False, "both copies offer the same: nothing to do")}


def test_a_copy_that_lacks_what_the_vendor_needs_never_goes_first(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo_old", "foo_gone")
    orch = world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("foo_gone",), needs=("libfoo.so.1",))
    other = world.library(world.host, "libfoo.so.1", "foo_old", "foo_new")
    said = "the native package's copy is used: the host's copy lacks foo_gone, which libgopher-orch.so.0 needs"
    assert world.find() == {"libfoo.so.1": (False, said)}
    assert "undefined symbol: foo_gone" in opened_in_turn(other, orch)[1]


def test_a_family_goes_together(world: World) -> None:
    """Private symbols between two libraries: the vendor's bar needs a foo_private that the host's foo has no more."""
    world.library(world.vendor, "libfoo.so.1", "foo", "foo_private")
    world.library(world.vendor, "libbar.so.1", "bar", calls=("foo_private",), needs=("libfoo.so.1",))
    orch = world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("bar",), needs=("libbar.so.1",))
    world.library(world.host, "libfoo.so.1", "foo", "foo_private2")
    bar = world.library(world.host, "libbar.so.1", "bar", "bar_new", calls=("foo_private2",), needs=("libfoo.so.1",))
    found = world.find()
    assert {name: first for name, (first, _) in found.items()} == {"libfoo.so.1": True, "libbar.so.1": True}
    assert list(found) == ["libfoo.so.1", "libbar.so.1"], "dependencies first"
    assert opened_in_turn(bar, orch) == ["opens"] * 2


def test_a_family_stays_behind_together(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo", "foo_gone")
    world.library(world.vendor, "libbar.so.1", "bar", calls=("foo",), needs=("libfoo.so.1",))
    world.library(
        world.vendor, "libgopher-orch.so.0", "orch", calls=("foo_gone", "bar"), needs=("libfoo.so.1", "libbar.so.1")
    )
    world.library(world.host, "libfoo.so.1", "foo", "foo_new")
    world.library(world.host, "libbar.so.1", "bar", "bar_new", calls=("foo_new",), needs=("libfoo.so.1",))
    found = world.find()
    assert not any(first for first, _ in found.values())
    assert (
        found["libbar.so.1"][1]
        == "the native package's copy is used: it needs the host's libfoo.so.1, which can't go first"
    )


def test_what_a_needed_copy_brings_along_is_marked(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo")
    world.library(world.vendor, "libbar.so.1", "bar", calls=("foo",), needs=("libfoo.so.1",))
    world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("bar",), needs=("libbar.so.1",))
    world.library(world.host, "libfoo.so.1", "foo")
    world.library(world.host, "libbar.so.1", "bar", "bar_new", calls=("foo",), needs=("libfoo.so.1",))
    assert world.find() == {
        "libbar.so.1": (True, "the host's copy is the newer one"),
        "libfoo.so.1": (True, "another of the host's libraries brings it along"),
    }


def test_what_comes_along_by_way_of_another_library_is_marked(world: World) -> None:
    """The host's bar needs its own between, which needs foo: foo comes along though bar does not name it."""
    world.library(world.vendor, "libfoo.so.1", "foo", "foo_gone")
    world.library(world.vendor, "libbar.so.1", "bar")
    world.library(
        world.vendor, "libgopher-orch.so.0", "orch", calls=("bar", "foo_gone"), needs=("libbar.so.1", "libfoo.so.1")
    )
    world.library(world.host, "libfoo.so.1", "foo")
    world.library(world.host, "libbetween.so.1", "between", calls=("foo",), needs=("libfoo.so.1",))
    world.library(world.host, "libbar.so.1", "bar", "bar_new", calls=("between",), needs=("libbetween.so.1",))
    found = world.find()
    assert not found["libbar.so.1"][0]
    assert "it needs the host's libfoo.so.1, which can't go first" in found["libbar.so.1"][1]
    assert "lacks foo_gone" in found["libfoo.so.1"][1]


def test_only_what_the_host_has_is_listed(world: World) -> None:
    world.library(world.vendor, "libfoo.so.1", "foo")
    world.library(world.vendor, "libgopher-orch.so.0", "orch", calls=("foo",), needs=("libfoo.so.1",))
    assert world.find() == {}


def test_the_same_folder_is_no_clash(vendor_library: Path) -> None:
    """LD_LIBRARY_PATH may lead the host's search into the vendor's own folder."""
    assert clashes.find(str(vendor_library), PLATFORM, lambda soname: str(vendor_library.parent / soname)) == []


def test_other_systems_have_no_such_clash(vendor_library: Path) -> None:
    assert clashes.find(str(vendor_library), names.Platform("darwin", "arm64"), lambda soname: "/x") == []


# ---- The real library on this machine -------------------------------------------------------------------------------


def test_this_machines_sqlite_goes_first(vendor_library: Path) -> None:
    if "libsqlite3.so.0" not in elf.read(_extension("_sqlite3")).needed:
        pytest.skip("this interpreter has its own sqlite inside")
    found = {clash.soname: clash for clash in clashes.find(str(vendor_library), PLATFORM)}
    assert found["libsqlite3.so.0"].opened_first, found["libsqlite3.so.0"].reason
    assert "libcurl.so.4" in {elf.read(str(vendor_library)).needed[1]} | set(found)


def _extension(name: str) -> str:
    spec = importlib.util.find_spec(name)
    assert spec is not None and spec.origin is not None
    return spec.origin


_BARE = """
import sys
from pathlib import Path
from gopher_mcp_python.ffi import _bridge
library, openssl = sys.argv[1:]
for name in ("libcrypto.so.1.1", "libssl.so.1.1"):
    _bridge.preload(str(Path(openssl) / name))
_bridge.Library.open(library)
try:
    import sqlite3
except ImportError as error:
    print(error)
"""


def test_without_care_a_later_import_of_sqlite3_fails(vendor_library: Path, openssl11: Path) -> None:
    """The defect itself, so that the tests below are known to be able to fail."""
    if "libsqlite3.so.0" not in elf.read(_extension("_sqlite3")).needed:
        pytest.skip("this interpreter has its own sqlite inside")
    done = children.python(_BARE, str(vendor_library), str(openssl11)).check()
    assert "undefined symbol: sqlite3_" in done.out


_AFTER_LOADING = """
import json, sys
from gopher_mcp_python.native import load
load()
"""


def test_sqlite3_works_after_loading(native_environment: dict[str, str]) -> None:
    code = (
        _AFTER_LOADING
        + """
import sqlite3
database = sqlite3.connect(":memory:")
database.execute("create table t (a text)")
database.execute("insert into t values ('one')")
copy = sqlite3.connect(":memory:")
if hasattr(copy, "deserialize"):
    copy.deserialize(database.serialize() or b"")
print(database.execute("select a from t").fetchone()[0])
"""
    )
    assert children.python(code, env=native_environment).check().out == "one\n"


def test_sqlite3_works_where_ld_library_path_leads_to_the_vendor(
    vendor_library: Path, native_environment: dict[str, str]
) -> None:
    """How people made the published package load before: without care even a bare `import sqlite3` fails there."""
    code = _AFTER_LOADING + "import sqlite3\nprint(sqlite3.connect(':memory:').execute('select 1').fetchone()[0])"
    environ = {**native_environment, "LD_LIBRARY_PATH": str(vendor_library.parent)}
    assert children.python(code, env=environ).check().out == "1\n"


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    yield server
    server.close()


@pytest.mark.parametrize("implementation", ["binary", "python"])
def test_libpq_works_after_loading(native_environment: dict[str, str], postgres: Postgres, implementation: str) -> None:
    """`binary` has its own libpq, `python` uses the system's through ctypes."""
    code = (
        _AFTER_LOADING
        + """
import psycopg
with psycopg.connect(sys.argv[1]) as connection:
    print(psycopg.pq.__impl__, connection.execute("select 6 * 7").fetchone()[0])
"""
    )
    done = children.python(code, postgres.dsn(), env={**native_environment, "PSYCOPG_IMPL": implementation}).check()
    assert done.out == f"{implementation} 42\n"
    assert done.err == ""


_OPEN_ALL = """
import ctypes, json, os, sys
if sys.argv[1] == "load":
    from gopher_mcp_python.native import load
    load()
broken = []
for path in sys.stdin.read().split("\\n"):
    child = os.fork()
    if child == 0:
        try:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            ctypes.CDLL(path, mode=os.RTLD_NOW)
        except OSError:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        broken.append(path)
print(json.dumps(broken))
"""


@pytest.mark.long
def test_every_library_of_this_machine_opens_as_before(native_environment: dict[str, str]) -> None:
    paths = sorted(set(read_cache("x64").values()))
    assert len(paths) > 50
    broken = {}
    for mode in ("plain", "load"):
        done = children.run(
            [sys.executable, "-c", _OPEN_ALL, mode], env=native_environment, stdin="\n".join(paths), timeout=600
        )
        broken[mode] = set(json.loads(done.check().out))
    assert broken["load"] <= broken["plain"]


@pytest.mark.parametrize(
    "name", ["zlib", "_ssl", "_hashlib", "_ctypes", "_lzma", "_bz2", "_curses", "readline", "_uuid"]
)
def test_the_standard_librarys_own_modules_work_after_loading(native_environment: dict[str, str], name: str) -> None:
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"this interpreter has no module {name}")
    code = _AFTER_LOADING + f"import {name}\nprint({name}.__name__)"
    assert children.python(code, env=native_environment).check().out == f"{name}\n"


@pytest.mark.parametrize("sonames", ["libpq.so.5", "libcurl.so.4", "libcurl-gnutls.so.4", "libgssapi_krb5.so.2",
                                     "libxml2.so.2 libxml2.so.16", "libldap-2.5.so.0 libldap.so.2", "libgnutls.so.30",
                                     "libz.so.1"])  # fmt: skip
def test_the_hosts_libraries_open_after_loading(native_environment: dict[str, str], sonames: str) -> None:
    """One that the host lacks proves nothing: the vendor's own copy may open by that name once it is loaded."""
    here = [soname for soname in sonames.split() if soname in read_cache("x64")]
    if not here:
        pytest.skip(f"this machine has no {sonames.replace(' ', ' or ')}")
    code = "import ctypes, os, sys\nctypes.CDLL(sys.argv[2], mode=os.RTLD_NOW)"
    loading = "from gopher_mcp_python.native import load\nload()\n"
    children.python(code, "-", here[0], env=native_environment).check()
    children.python(loading + code, "-", here[0], env=native_environment).check()
