from __future__ import annotations

import errno
import json
import os
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest
from claims_said import says, wording

from adaptinf.audit import AnalysisError, Study, coverage, study
from adaptinf.claims.data.availability import NEVER_TOGETHER
from adaptinf.designs import UCB, EpsilonGreedy, LinUCB, PrivateUCB, Uniform
from adaptinf.errors import AdaptinfWarning, InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.simulation.environments import BernoulliArms, UniformArms

ENV = BernoulliArms([0.3, 0.6])


def means(log):
    return ArmMeans(log).fit(estimator="sample-mean", test="normal")


def aipw(log):
    return Contrast(log, treatment=1, control=0).fit(estimator="aipw")


GRID = {
    "designs": {"uniform": Uniform(), "UCB": UCB()},
    "environments": {"signal": ENV, "none": BernoulliArms([0.5, 0.5])},
    "analyses": {"means": means, "aipw": aipw},
    "horizons": [30, 60],
    "replications": 600,
    "rng": 5,
    "progress": False,
}
SMALL = {**GRID, "designs": {"uniform": Uniform()}, "environments": {"signal": ENV}, "horizons": [30]}


def contents(folder: Path) -> dict[str, bytes]:
    files = [*(folder / "cells").glob("*"), *(folder / "estimates").rglob("*.parquet")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class Failing:
    """An analysis that fails in some run while a file exists."""

    def __init__(self, switch: Path, run: int, raised: BaseException) -> None:
        self.switch, self.run, self.raised = switch, run, raised
        self.reward = [log.arrays.reward for log in Uniform().logs(ENV, 30, run + 1, 5)][-1]

    def __call__(self, log):
        if self.switch.exists() and np.array_equal(log.arrays.reward, self.reward):
            raise self.raised
        return means(log)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory) -> dict:
    """The arguments of a study that stopped after its first two shards."""
    folder = tmp_path_factory.mktemp("stopped")
    switch = folder / "switch"
    switch.touch()
    analyses = {"means": Failing(switch, 550, KeyboardInterrupt())}
    given = {**SMALL, "analyses": analyses, "path": folder / "study", "keep": "estimates"}
    with pytest.raises(KeyboardInterrupt):
        study(**given)
    switch.unlink()
    assert len(list((folder / "study" / "shards").rglob("*.parquet"))) == 2
    return given


@pytest.fixture
def interrupted(stopped, tmp_path) -> tuple[Path, dict]:
    """A copy of that study, for one test to go on with."""
    shutil.copytree(stopped["path"], tmp_path / "study")
    return tmp_path / "study", {**stopped, "path": tmp_path / "study"}


@pytest.fixture(scope="module")
def undisturbed(stopped, tmp_path_factory) -> dict[str, bytes]:
    """What the same study leaves where nothing stops it."""
    folder = tmp_path_factory.mktemp("undisturbed") / "study"
    study(**{**stopped, "path": folder})
    return contents(folder)


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "study"
    study(**SMALL, path=folder, keep="estimates")
    return folder


@pytest.fixture
def small(finished, tmp_path) -> dict:
    """The arguments of a copy of a finished study."""
    shutil.copytree(finished, tmp_path / "small")
    return {**SMALL, "path": tmp_path / "small", "keep": "estimates"}


@pytest.mark.slow
def test_numbers_equal_a_literal_loop_over_logs():
    design = PrivateUCB(epsilon=1.0)
    contrast = {"c": lambda log: Contrast(log, treatment=1, control=0).fit("sample-mean")}
    kind = {"designs": {"private": design}, "environments": {"signal": ENV}, "analyses": contrast}
    table = study(**kind, horizons=[200], replications=60, rng=3, progress=False)
    estimates, limits, corrected, errors, pvalues = [], [], [], [], []
    for log in design.logs(ENV, 200, 60, rng=3):
        result = contrast["c"](log)
        estimates.append(result.params.iloc[0])
        errors.append(result.bse.iloc[0])
        pvalues.append(result.pvalues.iloc[0])
        limits.append(result.conf_int().to_numpy()[0])
        corrected.append(result.conf_int_corrected().to_numpy()[0])
    for name, pairs in (("c", np.array(limits)), ("c, corrected", np.array(corrected))):
        known = ~np.isnan(pairs).any(axis=1) & np.isfinite(estimates)
        low, high = pairs[known].T
        error = np.array(estimates)[known] - 0.3
        row = table.cell(design="private", analysis=name).iloc[0]
        near = {"abs": 1e-12, "rel": 1e-12}
        assert (row["runs"], row["missing"]) == (known.sum(), 60 - known.sum())
        assert row["missing_share"] == pytest.approx(np.mean(~known), **near)
        covered = np.mean((low <= 0.3) & (high >= 0.3))
        rejected = np.mean((low > 0.0) | (high < 0.0))
        assert row["coverage"] == pytest.approx(covered, **near)
        assert row["coverage_se"] == pytest.approx(np.sqrt(covered * (1 - covered) / known.sum()), **near)
        assert row["rejected"] == pytest.approx(rejected, **near)
        assert row["rejected_se"] == pytest.approx(np.sqrt(rejected * (1 - rejected) / known.sum()), **near)
        assert row["below"] == pytest.approx(np.mean(high < 0.3), **near)
        assert row["above"] == pytest.approx(np.mean(low > 0.3), **near)
        assert row["bias"] == pytest.approx(error.mean(), **near)
        assert row["sd"] == pytest.approx(error.std(), **near)
        assert row["bias_se"] == pytest.approx(error.std() / np.sqrt(error.size), **near)
        assert row["rmse"] == pytest.approx(np.sqrt(np.mean(error**2)), **near)
        assert row["width"] == pytest.approx(np.mean(high - low), **near)
        assert row["std_error"] == pytest.approx(np.nanmean(np.array(errors)[known]), **near)
        assert row["std_error_ratio"] == pytest.approx(row["std_error"] / row["sd"], **near)
    assert table.cell(analysis="c")["rejected"].iloc[0] == pytest.approx(np.mean(np.array(pvalues) <= 0.05))


def test_it_gives_the_numbers_of_coverage(finished):
    table = Study.load(finished).cell(analysis="means")
    whole = coverage(Uniform(), ENV, means, 30, 600, rng=5).frame
    for column in ("runs", "coverage", "rejected", "bias", "sd", "width"):
        assert table[column].tolist() == whole[column].tolist()


@pytest.mark.slow
def test_the_same_bytes_for_any_number_of_workers(tmp_path):
    given = {**GRID, "horizons": [30], "replications": 300}  # two shards a cell
    one = study(**given, path=tmp_path / "one", keep="estimates")
    study(**given, path=tmp_path / "two", keep="estimates", n_jobs=2)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert len(contents(tmp_path / "one")) == 4 + 4 * 2
    memory = study(**given)
    assert memory.frame.equals(one.frame)


@pytest.mark.slow
def test_sums_do_not_depend_on_the_size_of_a_shard(monkeypatch):
    usual = study(**SMALL).frame
    monkeypatch.setattr(sys.modules["adaptinf.audit.simulation.study_runs"], "_CHUNK", 64)
    assert study(**SMALL).frame.equals(usual)


def test_it_goes_on_where_it_was_stopped(interrupted, undisturbed, monkeypatch):
    folder, given = interrupted
    began = []
    usual = Uniform.logs

    def logs(self, env, horizon, replications, rng=None, start=0):
        began.append(start)
        return usual(self, env, horizon, replications, rng, start)

    monkeypatch.setattr(Uniform, "logs", logs)
    study(**given)
    assert began == [512]
    study(**given)
    assert began == [512]
    assert contents(folder) == undisturbed
    assert not (folder / "shards").exists() or not list((folder / "shards").rglob("*.parquet"))


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for position in range(len(data) // 3, 2 * len(data) // 3):
        data[position] ^= 0xFF
    path.write_bytes(bytes(data))


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-9])


def empty(path: Path) -> None:
    path.write_bytes(b"")


@pytest.mark.slow
@pytest.mark.parametrize("damage", [flip, cut, empty, Path.unlink])
@pytest.mark.parametrize("kind", ["shards", "estimates"])
def test_a_damaged_shard_is_found_and_computed_again(interrupted, undisturbed, damage, kind):
    folder, given = interrupted
    damage(sorted((folder / kind).rglob("*.parquet"))[1])
    if damage is Path.unlink and kind == "shards":
        study(**given)
    else:
        with pytest.warns(AdaptinfWarning, match=r"000000256\.parquet.*it is recomputed"):
            study(**given)
    assert contents(folder) == undisturbed


def test_every_flipped_byte_of_a_shard_is_noticed_or_harmless(interrupted):
    from adaptinf.audit.simulation.study_folder import Damaged, read_parquet

    folder, _ = interrupted
    path = sorted((folder / "shards").rglob("*.parquet"))[0]
    whole = path.read_bytes()
    fingerprint = json.loads(_metadata(path))["fingerprint"]
    table, metadata = read_parquet(path, fingerprint)
    noticed = 0
    for position in range(0, len(whole), 37):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x55]) + whole[position + 1 :])
        try:
            found = read_parquet(path, fingerprint)
        except Damaged:
            noticed += 1
        else:
            assert found[0].equals(table)
            assert found[1] == metadata
    assert noticed > 100


def _metadata(path: Path) -> bytes:
    import pyarrow.parquet as pq

    return pq.read_schema(path).metadata[b"adaptinf.study"]


@pytest.mark.slow
def test_a_damaged_cell_is_refused_when_loaded_and_computed_again_when_run(small):
    folder = small["path"]
    before = contents(folder)
    flip(next((folder / "cells").glob("*")))
    with pytest.raises(ParameterError, match=r"1 of 1 cells are missing(.|\n)*0000_uniform-signal-30"):
        Study.load(folder)
    with pytest.warns(AdaptinfWarning, match="recomputed"):
        study(**small)
    assert contents(folder) == before


def test_other_settings_are_refused_and_all_differences_listed(small):
    changed = {
        **small,
        "environments": {"signal": BernoulliArms([0.3, 0.7])},
        "analyses": {"means": lambda log: ArmMeans(log).fit(estimator="sample-mean"), "other": aipw},
        "replications": 601,
        "rng": 6,
        "alpha": 0.1,
    }
    with pytest.raises(ParameterError) as caught:
        study(**changed)
    text = str(caught.value)
    for part in (
        r"environments['signal'] (BernoulliArms(arms=[0, 1])) has changed",
        "analyses['means'] was test_study.means before, but is now test_study.",
        "analyses['aipw'] was present before and is now absent",
        "analyses['other'] was absent before",
        "replications was 600 before, but is now 601",
        "seed.entropy was 5 before, but is now 6",
        "alpha was 0.05 before, but is now 0.1",
        "to run another study, use another folder",
    ):
        assert part in text
    assert len(caught.value.problems) == 8


def test_changed_sources_are_refused_unless_they_are_allowed(small, monkeypatch):
    monkeypatch.setattr("adaptinf.audit.simulation.study_folder.package_hash", lambda: "0" * 64)
    with pytest.raises(
        ParameterError,
        match=r"versions.sources was '\w+' before, but is now '0+': "
        r"adaptinf's own",
    ):
        study(**small)
    assert len(study(**small, same_sources=False).frame) == 3


@pytest.mark.slow
def test_a_drawn_seed_is_kept(tmp_path):
    first = study(**{**SMALL, "rng": None}, path=tmp_path)
    again = study(**{**SMALL, "rng": None}, path=tmp_path)
    other = study(**{**SMALL, "rng": None})
    assert first.frame.equals(again.frame)
    assert not first.frame.equals(other.frame)


def test_a_folder_with_other_files_or_a_broken_manifest_is_refused(small, tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").touch()
    with pytest.raises(ParameterError, match=r"contains other files \(thesis\.tex\)"):
        study(**SMALL, path=tmp_path / "thesis")
    cut(small["path"] / "manifest.json")
    with pytest.raises(ParameterError, match=r"manifest\.json is damaged"):
        study(**small)
    with pytest.raises(ParameterError, match="contains no study"):
        Study.load(tmp_path)


@pytest.mark.slow
def test_a_full_disk_surfaces_and_nothing_half_written_stays(finished, tmp_path, monkeypatch):
    usual, calls = os.fsync, []

    def full(handle):
        calls.append(handle)
        if len(calls) == 9:
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(handle)

    monkeypatch.setattr("adaptinf.files.os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        study(**SMALL, path=tmp_path / "s", keep="estimates")
    monkeypatch.undo()
    assert not list((tmp_path / "s").rglob("*.tmp"))
    study(**SMALL, path=tmp_path / "s", keep="estimates")
    assert contents(tmp_path / "s") == contents(finished)


def test_two_studies_do_not_share_a_folder(tmp_path):
    from adaptinf.audit.simulation.study_folder import Folder

    with (
        Folder(tmp_path, "", ()).locked(),
        pytest.raises(ParameterError, match="another process is running the study"),
    ):
        study(**SMALL, path=tmp_path)


@pytest.mark.slow
def test_an_analysis_that_is_not_valid_is_noted():
    table = study(**{**SMALL, "designs": GRID["designs"]})
    rows = table.cell(design="UCB", environment="signal", horizon=30, analysis="aipw")
    assert rows["invalid"].tolist() == [600]
    assert rows["runs"].tolist() == [0]
    assert np.isnan(rows["coverage"].iloc[0])
    note = rows["note"].iloc[0]
    assert note.startswith("not valid: ")
    assert says(note, NEVER_TOGETHER)
    assert table.frame["analysis"].tolist()[:3] == ["means", "means", "aipw"]
    assert re.search(r"\[\d+\] not valid: " + wording(NEVER_TOGETHER), " ".join(str(table).split()))


def test_an_analysis_that_some_logs_do_not_support_counts_them():
    def choosy(log):
        if log.arrays.reward[0] == 1.0:
            raise InvalidForLog("choosy", "the first reward is 1", [])
        return {"a": means(log)}

    row = study(**{**SMALL, "analyses": {"choosy": choosy}}).frame.iloc[0]
    ones = sum(log.arrays.reward[0] == 1.0 for log in Uniform().logs(ENV, 30, 600, 5))
    assert row["analysis"] == "choosy: a"
    assert (row["invalid"], row["runs"] + row["missing"]) == (ones, 600 - ones)
    assert row["note"].startswith(f"not valid in {ones:,} runs: the first reward is 1; no interval in ")


@pytest.mark.slow
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_error_names_cell_and_replicate(tmp_path, n_jobs):
    switch = tmp_path / "switch"
    switch.touch()
    failing = Failing(switch, 137, ValueError("no root"))
    with pytest.raises(AnalysisError) as caught:
        study(**{**SMALL, "analyses": {"odd": failing}}, n_jobs=n_jobs)
    text = str(caught.value)
    assert "analysis 'odd' failed in replicate 137 of design 'uniform' in environment 'signal'" in text
    assert "ValueError: no root" in text
    recipe = text.splitlines()[1].partition("the last log of ")[2]
    logs = list(eval(recipe, {"design": Uniform(), "env": ENV, "np": np}))
    assert np.array_equal(logs[-1].arrays.reward, failing.reward)


@pytest.mark.slow
def test_estimates_of_single_runs(small):
    tables = study(**small)
    kept = tables.estimates("uniform", "signal", 30)
    first = kept[(kept["analysis"] == "means") & (kept["term"] == "1")]
    assert first["run"].tolist() == list(range(600))
    literal = [means(log).params.iloc[1] for log in Uniform().logs(ENV, 30, 600, 5)]
    np.testing.assert_array_equal(first["estimate"], literal)
    assert Study.load(small["path"]).estimates("uniform", "signal", 30).equals(kept)
    with pytest.raises(ParameterError, match="no cell"):
        tables.estimates("uniform", "signal", 31)
    with pytest.raises(ParameterError, match="keep='estimates'"):
        study(**{**SMALL, "replications": 10}).estimates("uniform", "signal", 30)


def test_a_study_is_read_back_and_prints(tmp_path):
    designs = {"uniform": Uniform(), "greedy": EpsilonGreedy(exploration=0.2)}  # both of one compiled kernel
    tables = study(**{**GRID, "designs": designs, "replications": 20}, path=tmp_path)
    again = Study.load(tmp_path)
    assert again.frame.equals(tables.frame)
    assert str(again) == str(tables)
    assert str(again).startswith("20 replications per cell, nominal coverage 0.95")
    assert (
        again.to_markdown(["runs", "coverage"])
        .splitlines()[2]
        .startswith("| uniform | signal | 30 | means | 0 |")
    )
    assert "<table" in again._repr_html_()
    assert len(again.times) == 8 * 3
    assert (again.times["cpu_seconds"] >= 0.0).all()
    assert 0.0 < again.times["ms_per_run"].max() < 1_000.0
    with pytest.raises(
        ParameterError, match=r"no design 'ucb'; available: 'uniform', 'greedy'(.|\n)*no horizon 31"
    ):
        again.cell(design="ucb", horizon=31)
    with pytest.raises(ParameterError, match="no column 'power'"):
        again.to_markdown(["power"])


def test_a_part_of_a_study_can_be_loaded(interrupted):
    folder, _ = interrupted
    with pytest.raises(ParameterError, match="partial=True"):
        Study.load(folder)
    assert Study.load(folder, partial=True).frame.empty


def test_spread_survives_a_distant_truth():
    truth = {"means": lambda env, result: [1e8, -1e8]}
    row = study(**{**SMALL, "analyses": {"means": means}}, truth=truth).frame.iloc[0]
    usual = study(**{**SMALL, "analyses": {"means": means}}).frame.iloc[0]
    assert row["truth"] == 1e8
    assert row["sd"] == pytest.approx(usual["sd"], rel=1e-6)


def test_a_truth_of_the_wrong_size_is_refused():
    with pytest.raises(AnalysisError, match=r"its truth must be 2 finite numbers, got \[1.0\]"):
        study(**{**SMALL, "analyses": {"means": means}}, truth={"means": lambda env, result: 1.0})


@pytest.mark.slow
def test_lambdas_that_close_over_values_run_in_workers():
    estimator = "sample-mean"
    analyses = {"closed": lambda log: ArmMeans(log).fit(estimator=estimator)}
    one = study(**{**SMALL, "analyses": analyses}).frame
    assert study(**{**SMALL, "analyses": analyses}, n_jobs=2).frame.equals(one)


def test_bad_arguments_are_all_listed(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ParameterError) as caught:
        study(
            designs={"": Uniform(), "x": 3},
            environments={},
            analyses={"a: b": means, "c, corrected": means, "d": 1},
            horizons=[10, 0],
            replications=0,
            rng=-1,
            path=tmp_path / "file",
            n_jobs=0,
            alpha=0.95,
            keep="all",
            truth={"z": 1},
            progress="yes",
        )
    text = str(caught.value)
    for part in (
        "must be non-empty strings",
        "designs['x'] must be a design",
        "environments must be a dict",
        "'a: b'",
        "'c, corrected'",
        "analyses['d'] must be a function",
        "horizons must be a whole number",
        "replications must be",
        "rng must be",
        "is a file",
        "n_jobs must be",
        "alpha must be between 0 and 0.5",
        "keep must be",
        "truth['z'] must be",
        "truth['z'] does not match the name of any analysis",
        "progress must be",
    ):
        assert part in text
    assert len(caught.value.problems) == 16
    with pytest.raises(ParameterError, match="horizons must differ"):
        study(**{**SMALL, "horizons": [30, 30]})
    with pytest.raises(ParameterError, match="requires path="):
        study(**SMALL, keep="estimates")


def test_designs_that_do_not_fit_are_listed_before_anything_runs(tmp_path):
    designs = {"private": PrivateUCB(epsilon=1.0), "linear": LinUCB()}
    environments = {"wide": UniformArms([0.0, 1.0], [9.0, 9.0]), "signal": ENV}
    with pytest.raises(ParameterError) as caught:
        study(**{**SMALL, "designs": designs, "environments": environments}, path=tmp_path / "s")
    found = [problem.partition(": ")[0] for problem in caught.value.problems]
    assert found == [
        "design 'private' in environment 'wide' over 30 rounds",
        "design 'linear' in environment 'wide' over 30 rounds",
        "design 'linear' in environment 'signal' over 30 rounds",
    ]
    assert not (tmp_path / "s").exists()


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    for place in (tmp_path / "file" / "inner", "nul\0"):
        with pytest.raises(ParameterError, match=r"study: path: the folder .* cannot be created: ") as caught:
            study(**SMALL, path=place)
        assert len(caught.value.problems) == 1
