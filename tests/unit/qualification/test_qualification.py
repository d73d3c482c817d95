"""``adaptinf qualify``: a sound installation passes, and each kind of fault is found."""

from __future__ import annotations

import base64
import copy
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import adaptinf
from adaptinf.cli.entry import main
from adaptinf.errors import FileError, MissingDependencyError
from adaptinf.qualification import Qualification, earlier, extras, qualified, qualify
from adaptinf.qualification.earlier import digest_of, read_report
from adaptinf.qualification.first_arms import _ARMS, _DESIGNS, design_tests
from adaptinf.qualification.installed import packages
from adaptinf.qualification.known_numbers import number_tests
from adaptinf.qualification.live_trials import trial_tests
from adaptinf.qualification.noise_draws import noise_tests
from adaptinf.qualification.qualification_page import html_of, text_of
from adaptinf.qualification.rows import FAIL, PASS, UNTESTED, Known, Row

QUICK = ("Uniform", "Thompson", "UCB", "PrivateUCB")
ONCE = functools.cache(packages)


@pytest.fixture(autouse=True)
def packages_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Digests of thousands of files that no test in this process changes."""
    monkeypatch.setattr(qualified, "packages", lambda names: copy.deepcopy(ONCE(names)))


LIVE = [pytest.param(test, marks=[pytest.mark.slow] * ("killed" in test.name)) for test in trial_tests()]


@pytest.mark.parametrize("test", [*number_tests(), *noise_tests(), *LIVE], ids=lambda one: one.name)
def test_this_machine_gives_the_known_answer(test: Known) -> None:
    row = test.row()
    assert row.verdict == PASS, row


@pytest.mark.parametrize("test", list(design_tests()), ids=lambda one: one.name.partition(":")[0])
def test_each_design_chooses_the_known_arms(test: Known) -> None:
    row = test.row()
    assert row.verdict == PASS, row


def test_every_design_with_a_kernel_is_tested() -> None:
    from adaptinf import designs

    every = {name for name in dir(designs) if isinstance(getattr(designs, name), type)}
    kinds = {name for name in every if issubclass(getattr(designs, name), designs.Design)}
    assert set(_ARMS) == set(_DESIGNS)
    assert kinds - set(_DESIGNS) == {"Design", "FunctionDesign"}


def test_a_row_compares_numbers_and_texts() -> None:
    def row(answer: Any, expected: Any) -> Row:
        return Known("part", "name", "a source", lambda: answer, expected).row()

    assert row([1.0, 2.0 + 1e-12], (1.0, 2.0)).verdict == PASS
    assert row([1.0, 2.0 + 1e-6], (1.0, 2.0)).verdict == FAIL
    assert row([1.0], (1.0, 2.0)).verdict == FAIL
    assert row([np.nan], (1.0,)).verdict == FAIL
    assert row("010", "011") == Row("part", "name", "011", "010", FAIL, "a source")
    assert row([1 / 3], "0.333").obtained == "0.333333333"


def test_what_a_test_raises_is_its_answer() -> None:
    def broken() -> str:
        raise OSError("no such library")

    def absent() -> str:
        raise MissingDependencyError("exact noise", "OpenDP", "release")

    row = Known("part", "name", "a source", broken, "x").row()
    assert (row.verdict, row.obtained) == (FAIL, "OSError: no such library")
    row = Known("part", "name", "a source", absent, "x").row()
    assert (row.verdict, row.obtained) == (UNTESTED, "")
    assert row.source.startswith("exact noise requires OpenDP")


def test_noise_of_another_scale_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.qualification import noise_draws

    draw, weight = noise_draws._LAWS["discrete_laplace"]
    monkeypatch.setitem(noise_draws._LAWS, "discrete_laplace", (lambda scale, size: draw(2.0, size), weight))
    found = {test.name: test.row() for test in noise_tests()}
    assert found["discrete_laplace, scale 3"].verdict == FAIL
    assert found["discrete_gaussian, scale 3"].verdict == PASS


def test_an_answer_that_a_trial_lost_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.qualification import live_trials

    monkeypatch.setattr(live_trials, "_again", lambda trial, number: (0, "a"))
    monkeypatch.setattr(live_trials, "KILLS", 1)
    assert live_trials._killed().endswith("answers lost")
    monkeypatch.setattr(live_trials, "_PROGRAM", "")
    row = next(trial_tests()).row()
    assert (row.verdict, row.obtained[:13]) == (FAIL, "AdaptinfError")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, list[str]]]:
    """A folder of packages with a copy of this one, recorded as pip does, and the rows on it."""
    site = tmp_path_factory.mktemp("installed") / "site"
    shutil.copytree(
        Path(adaptinf.__file__).parent, site / "adaptinf", ignore=shutil.ignore_patterns("__pycache__")
    )
    about = site / "adaptinf-0.1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: adaptinf\nVersion: 0.1.0\nRequires-Dist: numpy>=2.2\n"
        'Provides-Extra: word\nRequires-Dist: no-such-package>=1; extra == "word"\n'
        'Provides-Extra: plots\nRequires-Dist: numpy>=99; extra == "plots"\n'
    )
    lines = []
    for path in sorted(site.rglob("*")):
        if path.is_file():
            digest = base64.urlsafe_b64encode(hashlib.sha256(path.read_bytes()).digest()).decode().rstrip("=")
            lines.append(f"{path.relative_to(site).as_posix()},sha256={digest},{path.stat().st_size}")
    (about / "RECORD").write_text("\n".join([*lines, f"{about.name}/RECORD,,"]) + "\n")
    return site, rows_in(site)


def rows_in(site: Path) -> dict[str, list[str]]:
    """Verdict, obtained and source by name of the rows on files and requirements, in a process of its own."""
    program = (
        "import json\n"
        "from adaptinf.qualification.extras import requirement_rows\n"
        "from adaptinf.qualification.installed import packages\n"
        "rows = [*requirement_rows(), *(one.row() for one in packages(('word',)))]\n"
        "print(json.dumps({row.name: [row.verdict, row.obtained, row.source] for row in rows}))\n"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
        cwd=site,
    )
    rows: dict[str, list[str]] = json.loads(found.stdout)
    return rows


def test_a_changed_and_a_missing_file_are_found(installed: tuple[Path, dict[str, list[str]]]) -> None:
    site, rows = installed
    files = [path for path in site.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    # The record does not have a digest of itself.
    assert rows["adaptinf 0.1.0"][:2] == [PASS, f"{len(files) - 1} files as installed"]
    spoilt = site / "adaptinf" / "theory" / "tradeoff.py"
    spoilt.write_text(spoilt.read_text().replace("0.5", "0.4", 1) + "\n")
    (site / "adaptinf" / "py.typed").unlink()
    assert rows_in(site)["adaptinf 0.1.0"][:2] == [
        FAIL,
        "changed: adaptinf/theory/tradeoff.py; missing: adaptinf/py.typed",
    ]


def test_a_missing_extra_is_no_failure_and_a_wrong_version_is(
    installed: tuple[Path, dict[str, list[str]]],
) -> None:
    _, rows = installed
    assert rows["adaptinf"][0] == PASS
    assert rows["adaptinf[word]"] == [
        UNTESTED,
        "no-such-package missing",
        "Without it, reports cannot be written as Word files.",
    ]
    assert rows["adaptinf[plots]"][:2] == [FAIL, f"numpy {np.__version__}"]
    assert rows["adaptinf[serve]"][0] == UNTESTED
    assert "do not list this extra" in rows["adaptinf[serve]"][2]


def test_every_extra_for_users_has_its_line() -> None:
    import tomllib

    pyproject = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))
    [every] = pyproject["project"]["optional-dependencies"]["all"]
    assert set(extras.DISABLED) == set(every[len("adaptinf[") : -1].split(",")) - {"case-studies"}


def test_a_source_tree_says_that_nothing_records_it() -> None:
    own = packages(())[0]
    assert own.name == "adaptinf"
    if own.recorded:  # where the tests run on a wheel
        pytest.skip("adaptinf is installed from a wheel")
    row = own.row()
    assert (row.verdict, row.expected) == (UNTESTED, "")
    assert f"{len(own.files):,} files, sha256 {own.digest[:16]}" == row.obtained


def few() -> Iterator[Known]:
    """A few of the tests."""
    yield from (test for test in design_tests() if test.name.partition(":")[0] in QUICK)


@pytest.fixture
def done(monkeypatch: pytest.MonkeyPatch) -> Qualification:
    monkeypatch.setattr(qualified, "_tests", few)
    return qualify()


def test_the_result_in_words_text_json_and_html(done: Qualification) -> None:
    untested = done.count(UNTESTED)
    run = len(done.rows) - untested
    assert done.passed
    words = f"all {run} checks passed. Checks that could not be run: {untested}."
    assert done.sentence == f"This installation is qualified: {words}"
    record = done.to_dict()
    assert record["digest"] == digest_of(record)
    assert len(record["checks"]) == len(done.rows)
    assert (
        record["files"]["adaptinf"]["adaptinf/version.py"]
        == hashlib.sha256(Path(adaptinf.__file__).with_name("version.py").read_bytes()).hexdigest()
    )
    text, page = text_of(done), html_of(done)
    assert text.startswith(done.sentence)
    assert text.endswith(record["digest"])
    assert f"Designs: {len(QUICK)} of {len(QUICK)} passed" in text
    assert page.count('<th scope="row">') == len(done.rows)
    assert record["digest"] in page
    assert f"Python</dt><dd>CPython {sys.version.split()[0]}" in page
    assert "numpy " + metadata.version("numpy") in page


def test_rows_are_the_same_each_time(done: Qualification) -> None:
    assert [row for row in done.rows if row.part != "Live trials"] == qualify().rows


def test_another_number_fails_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    from adaptinf.qualification import first_arms

    monkeypatch.setitem(first_arms._ARMS, "UCB", first_arms._ARMS["UCB"].replace("153", "154"))
    monkeypatch.setattr(qualified, "_tests", few)
    done = qualify()
    assert not done.passed
    assert done.sentence.startswith("This installation is not qualified: 1 of ")
    told = text_of(done)
    assert "  fail: UCB: first 40 arms" in told
    assert "expected: " + first_arms._ARMS["UCB"] in told
    assert "; 21, 26, 153</li>" in html_of(done)


def test_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(qualified, "_tests", few)
    page, record = tmp_path / "q.html", tmp_path / "q.json"
    assert main(["qualify", "--html", str(page), "--json", str(record)]) == 0
    told = capsys.readouterr()
    assert told.out.startswith("This installation is qualified")
    assert told.err.splitlines() == [
        f"adaptinf qualify: wrote {page} (a report)",
        f"adaptinf qualify: wrote {record} (JSON)",
    ]
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert main(["qualify", "--compare", str(record)]) == 0
    assert "Since the earlier report" in capsys.readouterr().out
    from adaptinf.qualification import first_arms

    monkeypatch.setitem(first_arms._ARMS, "UCB", "")
    assert main(["qualify"]) == 1
    assert main(["qualify", "--json", str(record), "--compare", str(record)]) == 2
    assert "would overwrite" in capsys.readouterr().err


def test_files_that_differ_from_an_earlier_report_are_found(done: Qualification, tmp_path: Path) -> None:
    record = done.to_dict()
    record["files"]["adaptinf"]["adaptinf/version.py"] = "0" * 64
    record["files"]["adaptinf"]["adaptinf/gone.py"] = "0" * 64
    del record["files"]["adaptinf"]["adaptinf/texts.py"]
    record["digest"] = digest_of(record)
    place = tmp_path / "earlier.json"
    place.write_text(json.dumps(record))
    since = {row.name: row for row in qualify(read_report(place)).rows if row.part == earlier._PART}
    assert since["adaptinf"].verdict == FAIL
    assert since["adaptinf"].obtained == (
        "missing: adaptinf/gone.py; new: adaptinf/texts.py; changed: adaptinf/version.py"
    )
    assert since["numpy"].verdict == PASS
    place.write_text(json.dumps({**record, "qualified": False}))
    with pytest.raises(FileError, match="its digest is not that of its content"):
        read_report(place)
    for text in ("[]", "{", '{"digest": 1}', "null"):
        place.write_text(text)
        with pytest.raises(FileError, match="not a report written by adaptinf qualify"):
            read_report(place)
