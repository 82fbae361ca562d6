"""docs/benchmarks.md: its tables and plots are the results that are kept, and follow them; a bad result is said."""

from __future__ import annotations

import copy
import json
import platform
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from benchmarks import _page, _plots, _results
from benchmarks.__main__ import MODULES
from tests.support import children

pytestmark = pytest.mark.source_tree

Results = dict[str, dict[str, Any]]
PLOTS = [f"benchmarks-{name}.svg" for name in ("published", "baselines", "limits", "builds", "threads")]


@pytest.fixture
def results() -> Results:
    return _results.load(_results.KEPT, MODULES)


# ---- the page is what was measured ----------------------------------------------------------------------------------


def test_the_page_says_what_was_measured(results: Results) -> None:
    text = _page.PAGE.read_text(encoding="utf-8")
    assert text == _page.filled(text, results)
    assert text.count("<!-- table: ") == text.count("<!-- end -->") == 7
    assert [path.name for path in sorted(_page.IMAGES.glob("benchmarks-*"))] == sorted(PLOTS)
    assert all(f"(images/{name})" in text for name in PLOTS)


def test_the_plots_are_drawn_from_what_was_measured(results: Results) -> None:
    drawn = _plots.pictures(results)
    assert list(drawn) == PLOTS
    for name, svg in drawn.items():
        assert svg.encode() == (_page.IMAGES / name).read_bytes(), name


def test_the_same_results_give_the_same_bytes() -> None:
    program = (
        "import hashlib; from benchmarks import _page, _plots, _results; from benchmarks.__main__ import MODULES\n"
        "found = _results.load(_results.KEPT, MODULES)\n"
        "made = [_page.filled(_page.PAGE.read_text(encoding='utf-8'), found), *_plots.pictures(found).values()]\n"
        "print(hashlib.sha256(''.join(made).encode()).hexdigest())"
    )
    told = {children.run([sys.executable, "-c", program], env={"PYTHONHASHSEED": seed}).check().out for seed in "123"}
    assert len(told) == 1


def test_what_is_kept_names_no_machine(results: Results) -> None:
    for name in MODULES:
        text = (_results.KEPT / f"{name}.json").read_text(encoding="utf-8")
        assert not re.search(r"(?<![\w.])/(?:root|tmp|work|home|Users|opt|usr|var)/", text), name
        assert platform.node() not in text, name
    assert {result["benchmark"] for result in results.values()} == set(MODULES)


# ---- and follows it -------------------------------------------------------------------------------------------------


def _changed(results: Results, benchmark: str, change: Callable[[dict[str, Any]], None]) -> Results:
    found = copy.deepcopy(results)
    change(found[benchmark])
    return found


def _everything(results: Results) -> str:
    """The page with its plots, as one text."""
    return _page.filled(_page.PAGE.read_text(encoding="utf-8"), results) + "".join(_plots.pictures(results).values())


def test_each_figure_that_is_compared_is_shown(results: Results) -> None:
    """None is left out, and none is typed by hand: another value changes page and plots."""
    before, plots = _everything(results), _plots.pictures(results)
    for name, result in results.items():
        for at, record in enumerate(result["compared"]):
            for key in ("ours", "other", "ratio"):
                if record[key] is None:
                    continue

                def double(one: dict[str, Any], at: int = at, key: str = key) -> None:
                    one["compared"][at][key] *= 2

                changed = _changed(results, name, double)
                assert _everything(changed) != before, (name, record["what"], key)
                assert key != "ratio" or _plots.pictures(changed) != plots, (name, record["what"])


@pytest.mark.parametrize(("benchmark", "keys"), [
    ("builds", ("wheel_bytes", "import_ms", "same_thread_ns", "foreign_thread_ns", "handed_over_ns")),
    ("threads", ("own_2_ratio", "own_8_per_s", "shared_4_ratio")),
])  # fmt: skip
def test_each_figure_of_a_build_is_shown(results: Results, benchmark: str, keys: tuple[str, ...]) -> None:
    before = _everything(results)
    for at, entry in enumerate(results[benchmark][benchmark]):
        for key in keys:
            if entry.get(key) is None:
                continue

            def double(one: dict[str, Any], at: int = at, key: str = key) -> None:
                one[benchmark][at][key] *= 2

            assert _everything(_changed(results, benchmark, double)) != before, (entry["name"], key)


def test_builds_and_threads_take_more_of_them(results: Results) -> None:
    """Also one that this machine could not measure."""
    more = {"name": "cp399t", "python": "3.99.1", "free_threaded": True, "gil": False}

    def add_build(one: dict[str, Any]) -> None:
        one["builds"].append({**more, "wheel_bytes": 123_456, "import_ms": None})

    def add_threads(one: dict[str, Any]) -> None:
        one["threads"].append({**one["threads"][0], **more, "own_2_ratio": 7.5})

    text = _everything(_changed(_changed(results, "builds", add_build), "threads", add_threads))
    assert "| cp399t, free-threaded | 3.99.1 | 123 kB | not measured | not measured |" in text
    assert "cp399t on CPython 3.99.1 free-threaded</text>" in text
    assert "| cp399t (CPython 3.99.1, no GIL), an agent each |" in text and "cp399t, no GIL, one agent</text>" in text


def test_what_is_missed_is_said_in_words_on_page_and_plot(results: Results) -> None:
    def set_all(met: bool) -> Results:
        found = copy.deepcopy(results)
        for record in _plots.records(found):
            for target in record["targets"]:
                target["met"] = met
                target.pop("goal", None)
        return found

    good, bad = set_all(True), set_all(False)
    assert "missed**" not in _everything(good) and ">missed<" not in _everything(good)
    assert "<!-- table: missed -->\nNothing.\n<!-- end -->" in _everything(good)
    asked = [target for record in _plots.records(bad) for target in record["targets"]]
    page = _page.filled(_page.PAGE.read_text(encoding="utf-8"), bad)
    assert len(asked) >= 20 and page.count("**missed**") >= len(asked)


def test_what_falls_short_of_the_first_aim_is_said(results: Results) -> None:
    def reached_but_not_the_aim(one: dict[str, Any]) -> None:
        one["compared"][2].update(ratio=9.0)
        one["compared"][2]["targets"] = [{"sense": ">=", "limit": 8, "goal": 15, "met": True, "of": "ratio"}]

    page = _page.filled(_page.PAGE.read_text(encoding="utf-8"), _changed(results, "gateway", reached_but_not_the_aim))
    assert "| 9 times less | >= 8 | >= 15 | reached |" in page


# ---- plots ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLOTS)
def test_a_plot_is_whole(results: Results, name: str) -> None:
    """Well-formed, on a ground of its own, everything inside, with a title and words for what is told by colour."""
    root = ElementTree.fromstring(_plots.pictures(results)[name])
    width, height = map(float, root.attrib["viewBox"].split()[2:])
    space = "{http://www.w3.org/2000/svg}"
    ground = root.find(f"{space}rect")
    assert ground is not None and ground.attrib["fill"] == "#ffffff" and ground.attrib["width"] == f"{width:g}"
    assert root.find(f"{space}title") is not None
    words = list(root.iter(f"{space}text"))
    assert len(words) > 8 and all(element.text for element in words)
    for element in words:
        x, y, text = float(element.attrib["x"]), float(element.attrib["y"]), element.text or ""
        long = len(text) * float(element.attrib.get("font-size", "13")) * 0.53  # about
        begin = x - long * {"end": 1, "middle": 0.5}.get(element.attrib.get("text-anchor", ""), 0)
        turned = "transform" in element.attrib
        assert turned or (begin >= 0 and begin + long <= width), f"{text!r} leaves the picture"
        assert 0 <= y <= height


def test_targets_are_lines_where_the_axis_has_them() -> None:
    from benchmarks._drawing import Axis

    axis = Axis("time", 1.0, 100.0, [(1.0, "1"), (10.0, "10"), (100.0, "100")])
    assert [axis.place(value, 0, 200) for value in (0.5, 1, 10, 100, 1e9)] == [0, 0, 100, 200, 200]
    target = {"sense": "<=", "limit": 1.0, "met": True, "of": "ratio", "goal": 0.01}
    record = {"what": "a <thing>", "unit": "ms", "ours": 5.0, "other": 50.0, "against": "no gateway", "ratio": 0.1,
              "kind": "share", "targets": [target]}  # fmt: skip
    svg = _plots.pictures({"one": {"compared": [record]}})["benchmarks-baselines.svg"]
    # The axis goes from 0.01 to 1 over the 312 units from 350: the aim is at its beginning, the limit at its end.
    assert 'd="M350.0 52.0v22" stroke="#111111" stroke-width="2" stroke-dasharray' in svg
    assert 'd="M662.0 52.0v22" stroke="#111111" stroke-width="2.5"' in svg
    assert 'd="M506.0 57.0H662.0v12H506.0z"' in svg and "a &lt;thing&gt;" in svg


@pytest.mark.parametrize(("value", "unit", "shown"), [
    (14_700, "ns", "14.7 µs"), (450, "ns", "450 ns"), (999.9, "ns", "1 µs"), (6_400, "µs", "6.4 ms"),
    (1_500, "ms", "1.5 s"), (0.0004, "ms", "400 ns"), (0.94, "direct calls", "0.94 direct calls"),
    (1_234.0, "calls a second", "1,230 calls a second"), (None, "ns", "not measured"),
])  # fmt: skip
def test_figures_have_the_unit_that_suits_them(value: float | None, unit: str, shown: str) -> None:
    assert _plots.figure(value, unit) == shown


def test_ratios_of_all_kinds_are_multiples_in_plots() -> None:
    assert [_plots.share(0.5, "share"), _plots.share(4.0, "speedup"), _plots.share(0.5, "added")] == [0.5, 0.25, 1.5]


# ---- files ----------------------------------------------------------------------------------------------------------


def _broken(text: str, place: Path) -> None:
    """Makes a folder with all results, callback's being this text."""
    shutil.copytree(_results.KEPT, place)
    (place / "callback.json").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(("text", "said"), [
    ("", "can't be read (Expecting value: line 1 column 1 (char 0))"),
    ('{"benchmark": "callback",\n', "can't be read (Expecting property name"),
    ("[]", "this is no result of callback"),
    ('{"benchmark": "store"}', "this is no result of callback"),
    ('{"benchmark": "callback", "compared": [], "targets": {}}', '"measured" is missing'),
    ('{"benchmark": "callback", "measured": {}, "compared": [], "targets": {}}', 'measured: "date" is missing'),
])  # fmt: skip
def test_a_malformed_result_is_one_line_and_changes_nothing(text: str, said: str, tmp_path: Path) -> None:
    _broken(text, tmp_path / "made")
    before = _page.PAGE.read_bytes()
    ended = children.run([sys.executable, "-m", "benchmarks", "--page", "--out", str(tmp_path / "made")])
    assert ended.code == 1 and ended.out == ""
    (line,) = ended.err.splitlines()
    assert line.startswith("error: callback.json") and said in line and "`python -m benchmarks callback`" in line
    assert _page.PAGE.read_bytes() == before


@pytest.mark.parametrize(("change", "said"), [
    (lambda one: one["compared"][0].pop("unit"), 'compared[0]: "unit" is missing'),
    (lambda one: one["compared"][0].update(ours="fast"), 'compared[0]: "ours" is of the wrong kind'),
    (lambda one: one["compared"][1]["targets"][0].pop("limit"), 'compared[1].targets[0]: "limit" is missing'),
    (lambda one: one["measured"].update(cores=True), 'measured: "cores" is of the wrong kind'),
    (lambda one: one["compared"].append(3), "this is no object"),
])  # fmt: skip
def test_what_a_result_lacks_is_named(
    results: Results, change: Callable[[dict[str, Any]], Any], said: str, tmp_path: Path
) -> None:
    change(results["callback"])
    path = _results.write(tmp_path, results["callback"])
    with pytest.raises(_results.BadResult, match=re.escape(said)):
        _results.read(path)


def test_a_result_that_is_nowhere_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_results, "KEPT", tmp_path / "none")
    with pytest.raises(_results.BadResult, match=r"^callback\.json is missing: `python -m benchmarks callback`"):
        list(_page.keep(tmp_path, MODULES))


def test_new_results_are_kept_and_old_ones_stay(
    results: Results, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What --page does, in a copy."""
    page, kept = tmp_path / "docs" / "benchmarks.md", tmp_path / "kept"
    (tmp_path / "docs" / "images").mkdir(parents=True)
    shutil.copy(_page.PAGE, page)
    shutil.copytree(_results.KEPT, kept)
    monkeypatch.setattr(_page, "PAGE", page)
    monkeypatch.setattr(_page, "IMAGES", page.parent / "images")
    monkeypatch.setattr(_results, "KEPT", kept)
    monkeypatch.setattr(_results, "ROOT", tmp_path)
    new = copy.deepcopy(results["forms"])
    new["measured"]["date"] = "2099-12-31"
    _results.write(tmp_path / "made", new)
    lines = list(_page.keep(tmp_path / "made", MODULES))
    assert lines[0].startswith("new results: forms; as before: callback, startup,")
    assert "| forms | 2099-12-31 |" in page.read_text(encoding="utf-8")
    assert json.loads((kept / "forms.json").read_text(encoding="utf-8")) == new
    assert json.loads((kept / "store.json").read_text(encoding="utf-8")) == results["store"]
    assert sorted(path.name for path in (page.parent / "images").iterdir()) == sorted(PLOTS)
