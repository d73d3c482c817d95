"""Scripts of the evidence and the benchmarks import what they need; pages say what they are of."""

from __future__ import annotations

import argparse
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
EVIDENCE = ROOT / "docs" / "evidence"
FOLDERS = (EVIDENCE, ROOT / "tests" / "benchmarks")
SCRIPTS = [script for folder in FOLDERS for script in sorted(folder.glob("*.py"))]
PAGES = sorted(set(EVIDENCE.glob("*.md")) - {EVIDENCE / "index.md"})
RUNNABLE = [
    script for script in sorted(EVIDENCE.glob("*.py")) if '__name__ == "__main__"' in script.read_text()
]


def loaded(script: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script as a module; of its neighbours, which have names of any kind, nothing stays."""
    monkeypatch.setattr(sys, "path", [str(script.parent), str(ROOT), *sys.path])
    before = set(sys.modules)
    spec = importlib.util.spec_from_file_location(f"script_{script.stem}", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look their module up
    spec.loader.exec_module(module)
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or "/").is_relative_to(script.parent):
            del sys.modules[name]
    return module


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_imports(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(script, monkeypatch)


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) > 30
    assert len(PAGES) > 25


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_has_command_seed_date_and_commit(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.search(r"\bCommands?: `", text), "no command"
    assert re.search(r"\b[Ss]eeds?\b|No random numbers", text), "no seed, and not said that there is none"
    assert re.search(r"\bDate:\s+\d{4}-\d\d-\d\d, commit\s[0-9a-f]{7}\b", text), "no date with its commit"


@pytest.mark.parametrize("script", RUNNABLE, ids=lambda path: path.stem)
def test_a_script_has_a_quick_form_and_never_writes_the_page_by_itself(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    if script.stem != "run":
        assert "evidence.parser(" in text or '"--quick"' in text
    if "evidence.parser(" in text:
        assert text.count("evidence.publish(") == 1
        assert not re.search(r"\.md[\"']", text)


def test_the_tests_that_pin_mends_are_there() -> None:
    named = re.findall(
        r"`(tests/[\w/]+\.py)(?:::(\w+))?`", (EVIDENCE / "fixes.md").read_text(encoding="utf-8")
    )
    assert len(named) > 15
    for file, name in named:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert re.search(rf"def {name}\(" if name else r"def test_", text), f"{file} has no {name}"


# --- what scripts share -------------------------------------------------------------------------------------

PAGE = """
| design | T | regret | share |
| --- | --- | --- | --- |
| UCB | 10 | 1,200.5 ± 3.0 | 0.050 |
| UCB | 20 | 12 (0.5) | 7.0% |

| design | variance |
| --- | --- |
| UCB | 1.0014(16) |
"""


def test_figures_are_read_with_their_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = loaded(EVIDENCE / "evidence.py", monkeypatch)
    found = {
        place: shared.measured(shared.cell(PAGE, *place))
        for place in (("UCB | 10", "regret"), ("UCB", "variance"))
    }
    assert found["UCB | 10", "regret"] == pytest.approx((1200.5, 3.05), abs=2e-3)
    assert found["UCB", "variance"] == pytest.approx((1.0014, 0.00165), abs=1e-5)
    assert shared.measured(shared.cell(PAGE, "UCB | 20", "regret"))[0] == 12.0
    share, error = shared.measured(shared.cell(PAGE, "UCB | 20", "share"), 1_000)
    assert share == pytest.approx(0.07)
    assert error == pytest.approx((0.0715 * 0.9285 / 1_000) ** 0.5, rel=0.01)
    with pytest.raises(SystemExit, match="no table of the page has a column 'power'"):
        shared.cell(PAGE, "UCB | 10", "power")


def test_a_figure_outside_its_error_ends_a_quick_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = loaded(EVIDENCE / "evidence.py", monkeypatch)
    script = str(tmp_path / "script.py")
    (tmp_path / "script.md").write_text(PAGE)
    shared.hold_cell(PAGE.replace("1,200.5", "1,215"), script, "UCB | 10", "regret")
    assert capsys.readouterr().out.startswith(
        "headline holds: UCB | 10, regret: now 1215, on the committed page 1200.5"
    )
    with pytest.raises(SystemExit, match=r"OFF: UCB \| 10, regret: now 1220"):
        shared.hold_cell(PAGE.replace("1,200.5", "1,220"), script, "UCB | 10", "regret")
    with pytest.raises(SystemExit, match="OFF"):
        shared.hold("nothing measured", (float("nan"), 1.0), (0.0, 1.0))


def test_a_quick_page_is_written_only_where_it_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = loaded(EVIDENCE / "evidence.py", monkeypatch)
    script, options = str(tmp_path / "script.py"), argparse.Namespace(quick=True, output=None)
    shared.publish("a page", script, options)
    assert capsys.readouterr().out == "a page\n"
    with shared.folder(None, script, True) as place:
        assert place.is_dir()
    assert not place.exists()
    assert list(tmp_path.iterdir()) == []
    shared.publish("a page", script, argparse.Namespace(quick=True, output=tmp_path / "new" / "page.md"))
    shared.publish("all of it", script, argparse.Namespace(quick=False, output=None))
    assert (tmp_path / "new" / "page.md").read_text() == "a page"
    assert (tmp_path / "script.md").read_text() == "all of it"


# --- which scripts CI runs ----------------------------------------------------------------------------------


def test_scripts_are_found_with_what_they_import(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = loaded(EVIDENCE / "run.py", monkeypatch)
    names = runner.scripts()
    assert {"linear", "exact", "versions"} <= set(names)
    assert not {"run", "evidence", "inference_page", "calibration", "privacy_audits"} & set(names)
    benchmarks = ROOT / "tests" / "benchmarks"
    assert {benchmarks / "bench_linpriv.py", benchmarks / "bench_private_ucb.py"} <= runner.sources("linear")
    assert EVIDENCE / "inference_passes.py" in runner.sources("inference")
    assert ROOT / "case_studies" / "best_arm" / "setting.py" in runner.sources("best_arm")
    monkeypatch.setattr(runner, "changed", lambda hours: {benchmarks / "bench_linpriv.py"})
    first, others = runner.chosen(6.0, 5)
    assert first == ["linear"]
    assert "linear" not in others


def test_every_script_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = loaded(EVIDENCE / "run.py", monkeypatch)
    names = runner.scripts()
    turns = [name for count in range(40, 46) for name in runner.turn(names, 6, count)]
    assert sorted(turns) == names
