"""What the study of locally private bandits is made of: its comparators, its data, its table."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from adaptinf.designs import LDPBandit
from adaptinf.errors import ParameterError
from adaptinf.privacy.noise import generator
from adaptinf.simulation.environments.vector_arms import SmoothArms
from adaptinf.simulation.replicate import iterate_runs
from adaptinf.simulation.run import Results, empty_record
from case_studies.local_privacy import claims, data, learning, originals, printed, table_2
from case_studies.local_privacy.network import LDPNetwork
from case_studies.local_privacy.visited import VisitedBinOnly

ARMS = SmoothArms(3, 2)
NO_NOISE = 1e12


# --- the network --------------------------------------------------------------------------------------------


def forward(parameters: np.ndarray, context: np.ndarray, units: int) -> float:
    """Predictor of one arm."""
    z = np.append(2.0 * context - 1.0, 1.0)
    hidden = np.tanh(parameters[: units * z.size].reshape(units, z.size) @ z)
    return float(parameters[units * z.size : -1] @ hidden + parameters[-1])


def gradient(parameters: np.ndarray, context: np.ndarray, reward: float, units: int) -> np.ndarray:
    """Of the log loss, by central differences, clipped to length 1."""
    found = np.empty_like(parameters)
    for k in range(parameters.size):
        ends = []
        for shift in (1e-5, -1e-5):
            moved = parameters.copy()
            moved[k] += shift
            u = forward(moved, context, units)
            ends.append(math.log1p(math.exp(u)) - reward * u)
        found[k] = (ends[0] - ends[1]) / 2e-5
    return found / max(np.linalg.norm(found), 1.0)


@pytest.mark.slow
def test_a_network_follows_the_literal_rule() -> None:
    """Without noise to speak of, the arms are those of a plain loop; the jump-start comes first."""
    log = ARMS.auxiliary(40, epsilon=NO_NOISE, rng=5)
    # one step as long as the radius: projections are part of the path
    design = LDPNetwork(epsilon=NO_NOISE, units=2, step=2.0, radius=1.5, seed=3, auxiliary=(log,))
    horizon = 150
    (run,) = iterate_runs(design, ARMS, horizon, 0, 1, 8)
    tables = design.tables(3, 2, horizon)
    iterate, average = tables.initial.copy(), tables.initial.copy()
    reports, weight = np.zeros(3), np.zeros(3)
    assert iterate.shape == (3, 2 * 3 + 2 + 1)
    assert np.all(iterate[:, 6:] == 0.0)

    def learn(arm: int, told: np.ndarray) -> None:
        reports[arm] += 1.0
        iterate[arm] -= 2.0 * 1.5 / math.sqrt(reports[arm]) * told
        away = iterate[arm] - tables.initial[arm]
        iterate[arm] = tables.initial[arm] + away * min(1.0, 1.5 / max(np.linalg.norm(away), 1e-300))
        weight[arm] += reports[arm]
        average[arm] += reports[arm] / weight[arm] * (iterate[arm] - average[arm])

    def report(context: np.ndarray, arm: int, reward: float, alone: bool = False) -> None:
        told = gradient(iterate[arm], context, reward, 2)
        for other in [arm] if alone else range(3):
            learn(other, told if other == arm else np.zeros_like(told))

    arrays = log.log.arrays
    for context, arm, reward in zip(log.contexts, arrays.action, arrays.reward, strict=True):
        report(context, int(arm), float(reward))
    warm_up = int(run.outcome[0])
    assert 0 < warm_up < horizon
    projected = 0
    for t in range(horizon):
        context, arm = run.record.vectors[t, :2], int(run.record.action[t])
        expected = t % 3 if t < warm_up else int(np.argmax([forward(part, context, 2) for part in average]))
        assert arm == expected, t
        report(context, arm, float(run.record.reward[t]), t < warm_up)
        projected += int(np.linalg.norm(iterate[arm] - tables.initial[arm]) > 1.4999)
    assert projected > 0
    assert len(set(run.record.action[warm_up:])) > 1


@pytest.mark.slow
def test_a_networks_noise_has_the_stated_law() -> None:
    """One report on one arm, again and again: its length is a Gamma variable, its direction uniform."""
    design = LDPNetwork(epsilon=0.5, units=1, step=0.01, radius=1e9)  # nothing is projected
    program = design.program(ARMS, 1, recording=False)
    tables = program.tables
    p, scale = 2 + 1 + 1 + 1, 2.0 / 0.5
    assert (tables.n_parameters, tables.warm_up) == (p, 1)
    world, state = program.world(ARMS, 1), np.zeros(program.state_shape)
    record = empty_record(0, 3, with_propensities=False, dimension=2)
    stream = generator(np.random.SeedSequence(1))
    moves = np.empty((20_000, p))
    for move in moves:
        results = Results(np.zeros((1, 2, 1, 3, 3)), np.zeros((1, 2)), np.zeros(1), record)
        program.entry(tables, world, stream, state, results)
        move[:] = state[1, 2 : 2 + p] - tables.initial[0]
    # a first step is step times radius over rho times the report
    reports = moves / (1e7 / math.sqrt(tables.squares[-1]))
    lengths = np.linalg.norm(reports, axis=1)
    # the gradient has a length of at most 1, the noise one of about 20
    assert lengths.mean() == pytest.approx(p * scale, rel=0.02)
    assert (lengths**2).mean() == pytest.approx(p * (p + 1) * scale**2, rel=0.05)
    assert tables.squares[-1] == 1.0 + p * (p + 1) * scale**2
    directions = reports / lengths[:, None]
    assert directions.mean(axis=0) == pytest.approx(0.0, abs=0.04)
    assert (directions**2).mean(axis=0) == pytest.approx(1.0 / p, rel=0.05)
    assert design.guarantee(100, 2).epsilon == 0.5
    assert design.reward_guarantee(100, 2).epsilon == 0.5


@pytest.mark.slow
def test_a_network_can_learn_what_lines_cannot() -> None:
    contexts = np.random.default_rng(3).random((4_000, 2))
    arms = SmoothArms(2, 2, contexts=contexts, order="resampled")
    found = LDPNetwork(epsilon=NO_NOISE).replicate(arms, 4_000, 4, rng=1).regret.mean()
    uniform = 4_000 * (arms.expected(contexts).max(axis=1) - arms.expected(contexts).mean(axis=1)).mean()
    assert found < 0.3 * uniform


def test_a_network_names_everything_that_is_wrong() -> None:
    with pytest.raises(ParameterError, match=r"epsilon.*\n?.*units.*\n?.*radius"):
        LDPNetwork(epsilon=-1.0, units=0, radius=0.0)


# --- noise in the visited bin -------------------------------------------------------------------------------


@pytest.mark.slow
def test_without_noise_the_visited_bin_is_as_good_as_all() -> None:
    """One bin, always visited: the same law of reports; with the same stream the same run."""
    logs = (ARMS.auxiliary(3_000, epsilon=4.0, rng=1), ARMS.auxiliary(2_000, epsilon=8.0, rng=2))
    shared = {"epsilon": 16.0, "refinement": 0.0, "auxiliary": logs}
    plain = LDPBandit(**shared).replicate(ARMS, 5_000, 4, rng=6)
    visited = VisitedBinOnly(**shared).replicate(ARMS, 5_000, 4, rng=6)
    np.testing.assert_array_equal(plain.regret, visited.regret)
    assert plain.released["dropped"].max() > 0.0


@pytest.mark.slow
def test_bins_count_their_own_visitors_alone() -> None:
    """Halves need as many visitors as if they were whole, not as many participants."""
    shared = {"epsilon": 8.0, "auxiliary": (ARMS.auxiliary(30_000, epsilon=8.0, rng=1),)}
    plain = LDPBandit(**shared, check_every=100).replicate(ARMS, 20_000, 4, rng=6)
    visited = VisitedBinOnly(**shared).replicate(ARMS, 20_000, 4, rng=6)
    assert visited.released["bins"].mean() > plain.released["bins"].mean() + 2.0
    again = VisitedBinOnly(**shared).replicate(ARMS, 20_000, 4, rng=6)
    np.testing.assert_array_equal(visited.regret, again.regret)


# --- Figure 6 -----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_arms_at_a_point_are_those_with_a_propensity() -> None:
    """Everybody is at the point: each round's propensities are what the releases say."""
    here = SmoothArms(3, 2, contexts=np.tile(learning.POINT, (3_000, 1)))
    for log in (
        LDPBandit(epsilon=64.0, calibration="published").run(here, 3_000, rng=4),
        LDPBandit(epsilon=64.0, auxiliary=(here.auxiliary(500, rng=1),)).run(here, 3_000, rng=4),
    ):
        active = learning.arms_at(log, learning.POINT, 3, 3_000)
        propensities = active / active.sum(axis=1, keepdims=True)
        np.testing.assert_allclose(propensities, log.arrays.propensities)
        assert np.ptp(active.sum(axis=1)) > 0


@pytest.mark.slow
def test_curves_are_running_averages() -> None:
    log = learning.trial("corrected", "effective", (2_000, 4_000), 0, 3)
    table = learning.curves(log, 2_000, points=50)
    last = table.iloc[-1]
    contexts = np.stack([log.arrays.context[name] for name in log.context], axis=1)
    rewards = ARMS.expected(contexts)
    lost = rewards.max(axis=1) - rewards[np.arange(2_000), log.arrays.action]
    assert last["round"] == 2_000
    assert last["average regret"] == pytest.approx(lost.mean())
    assert last[["arm 1", "arm 2", "arm 3"]].sum() == pytest.approx(1.0)


@pytest.mark.slow
def test_what_is_decided_before_a_trial_is_what_its_first_round_shows() -> None:
    logs = tuple(ARMS.auxiliary(15_000, epsilon=16.0, rng=number) for number in (1, 2))
    log = LDPBandit(epsilon=1.0, auxiliary=logs, check_every=100).run(ARMS, 400, rng=3)
    lost, undecided = learning.at_the_start(log)
    middles = (np.arange(8) + 0.5) / 8
    points = np.stack(np.meshgrid(middles, middles), axis=-1).reshape(-1, 2)
    left = np.stack([learning.arms_at(log, point, 3, 400)[0] for point in points])
    assert undecided == pytest.approx((left.sum(axis=1) > 1).mean())
    assert 0.0 < undecided < 1.0
    best = ARMS.expected(points).argmax(axis=1)
    assert lost == pytest.approx(1.0 - left[np.arange(64), best].mean(), abs=0.1)


# --- data ---------------------------------------------------------------------------------------------------


def made_up(n: int = 300) -> data.Rows:
    draws = np.random.default_rng(0)
    features = pd.DataFrame(draws.normal(size=(n, 5)), columns=list("abcde"))
    features["constant"] = 1.0
    features["e"] *= 100.0
    labels = pd.Series(np.where(features["a"] + features["b"] > 0.0, "yes", "no"))
    return data.Rows(features, labels, np.arange(n) % 3 - 1)


def test_scales_come_from_public_rows_alone() -> None:
    rows = made_up()
    found = data.scores(rows)
    moved = rows.features.copy()
    moved.loc[rows.source != data.PUBLIC] += 7.0
    changed = data.scores(dataclasses.replace(rows, features=moved))
    public = rows.source == data.PUBLIC
    pd.testing.assert_frame_equal(found[public], changed[public])
    assert not np.allclose(found[~public], changed[~public])
    # principal components: uncorrelated, the first varies most
    values = found[public].to_numpy()
    correlations = np.corrcoef(values.T) - np.eye(3)
    assert np.abs(correlations).max() < 1e-10
    assert np.all(np.diff(values.var(axis=0)) <= 0.0)


def test_a_task_has_its_people_and_those_from_elsewhere() -> None:
    task = data.task("made up", made_up(), 1_000, 400)
    assert (task.environment.rows, task.horizon, len(task.sources)) == (100, 1_000, 1)
    (log,) = task.reports(np.random.SeedSequence(1))
    assert log.log.n_rounds == 400
    assert ((log.contexts >= 0.0) & (log.contexts <= 1.0)).all()
    once = data.task("made up", made_up())
    (log,) = once.reports(np.random.SeedSequence(1))
    assert (once.horizon, log.log.n_rounds) == (100, 100)
    assert len(np.unique(log.contexts, axis=0)) > 90
    assert not log.mismatches(once.environment)


def test_shipped_sets_are_split_in_thirds() -> None:
    rows = data.shipped("digits", np.random.SeedSequence(1))
    assert np.bincount(rows.source + 1).tolist() == [599, 599, 599]
    assert sorted(rows.labels.unique()) == [0, 1]


ADULT = "{age}, Private, 1, HS-grad, 9, {status}, Sales, Husband, White, Male, 0, 0, {hours}, {land}, {label}"


def adult_lines(end: str) -> list[str]:
    lines = []
    for k in range(60):
        land = "United-States" if k % 4 else "Peru"
        status = "Divorced" if k % 3 else "Widowed"
        label = (">50K" if k % 2 else "<=50K") + end
        lines.append(ADULT.format(age=20 + k, status=status, hours=30 + k % 7, land=land, label=label))
    return lines


def test_adult_is_read_as_uci_has_it(tmp_path: Path) -> None:
    unknown = adult_lines("")[1].replace("Private", "?")
    (tmp_path / "adult.data").write_text("\n".join([*adult_lines(""), unknown, ""]))
    (tmp_path / "adult.test").write_text("\n".join(["|1x3 Cross validator", *adult_lines("."), ""]))
    rows = data.adult(tmp_path)
    assert np.bincount(rows.source).tolist() == [90, 30]
    assert sorted(set(rows.labels)) == ["<=50K", ">50K"]
    assert "fnlwgt" not in rows.features
    assert {"marital-status_Divorced", "marital-status_Widowed", "education-num"} <= set(rows.features)
    split = data.set_aside(rows, 0.2, np.random.SeedSequence(1))
    assert np.bincount(split.source + 1).tolist() == [18, 72, 30]
    task = data.task("Adult", split)
    assert (task.horizon, task.environment.arms) == (72, ("<=50K", ">50K"))


def test_bad_files_get_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"adult\.data is not a file"):
        data.adult(tmp_path)
    (tmp_path / "adult.data").write_text("1, 2, 3\n")
    with pytest.raises(ParameterError, match="must have 15 columns, this has 3"):
        data.adult(tmp_path)
    (tmp_path / "adult.data").write_text("\n".join(adult_lines("!")))
    with pytest.raises(ParameterError, match=r"must be <=50K or >50K, found '<=50K!'"):
        data.adult(tmp_path)
    (tmp_path / "adult.data").write_text("")
    with pytest.raises(ParameterError, match=r"adult\.data is no table of comma-separated values"):
        data.adult(tmp_path)


def test_prepared_files(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    frame = made_up(120).features.assign(
        where=["town", "land"] * 60, label=[0, 1, 1] * 40, source=[0, 0, 1, 2] * 30
    )
    frame.loc[5, "a"] = np.nan
    frame.to_csv(path, index=False)
    rows = data.prepared("Jobs", path)
    assert np.bincount(rows.source).tolist() == [59, 30, 30]
    assert {"where_town", "where_land"} <= set(rows.features)
    assert len(data.task("Jobs", data.set_aside(rows, 0.1, np.random.SeedSequence(1))).sources) == 2
    cases = {
        "has no column label and no column source": frame.drop(columns=["label", "source"]),
        "column source must hold whole numbers from 0": frame.assign(source="here"),
        "two classes or more, found 1": frame.assign(label=1),
        "sources must be numbered": frame.assign(source=[0, 0, 3, 3] * 30),
        "the trial needs 30 complete rows": frame.assign(source=1),
        "3 features or more, found 2": frame[["a", "b", "label", "source"]],
    }
    for told, wrong in cases.items():
        wrong.to_csv(path, index=False)
        with pytest.raises(ParameterError, match=told):
            data.prepared("Jobs", path)
    with pytest.raises(ParameterError, match="is not a file"):
        data.prepared("Taxi", tmp_path / "taxi.csv")


# --- Table 2 ------------------------------------------------------------------------------------------------


def test_marks_need_a_gain_over_every_other() -> None:
    draws = np.random.default_rng(2)
    rewards = pd.DataFrame(draws.normal(size=(40, 6)) * 0.01, columns=table_2.COLUMNS)
    rewards["LDPLinear w"] += 1.0
    assert table_2.marked(rewards) == "LDPLinear w"
    rewards["network w"] = rewards["LDPLinear w"] + np.tile([0.01, -0.01], 20)
    assert table_2.marked(rewards) == ""
    rewards["network w"] = rewards["LDPLinear w"]
    assert table_2.marked(rewards) == ""
    few = rewards.drop(columns="network w").iloc[:4]
    gain = few["LDPLinear w"] - few["LDPBandit w"]
    assert stats.wilcoxon(gain, alternative="greater").pvalue == 1.0 / 16.0
    assert table_2.marked(few) == ""


def test_ranks_of_ties_are_the_smallest() -> None:
    values = [1.0, 0.9004, 0.9003, 0.8, 0.8, 0.7]
    table = pd.DataFrame([dict(zip(table_2.COLUMNS, values, strict=True)) | {"rounds": "n"}])
    assert table_2.rank_sums(table)[table_2.COLUMNS].iloc[0].tolist() == [1, 2, 2, 4, 4, 6]


@pytest.mark.slow
def test_a_small_table() -> None:
    task = data.task("made up", made_up(), 400, 100)
    measured = table_2.measure([task], 2, 7, 10, 1)
    assert len(measured) == 2 * (1 + 3 * (2 + 4))
    table = table_2.summary(measured)
    assert len(table) == 8
    # without auxiliary data nothing depends on their epsilon
    kept = table[(table["rounds"] == "n") & (table["epsilon"] == 1.0)]
    assert kept["LDPLinear wo"].nunique() == kept["network wo"].nunique() == 1
    assert kept["LDPLinear w"].nunique() == 2
    row = measured[(measured["method"] == "LDPBandit w") & (measured["epsilon"] == 2.0)]
    row = row[row["epsilon_m"] == 4.0]["n"].mean() / measured[measured["method"] == "ABSE"]["n"].mean()
    assert table["LDPBandit w"].iloc[-1] == pytest.approx(row)


def test_what_the_printed_table_says() -> None:
    assert printed.smallest_rank_sums() == {size: list(sums) for size, sums in printed.RANK_SUMS.items()}
    assert printed.unchanged(2.0, "w") == (12, 12)
    assert printed.unchanged(2.0, "wo") == (2, 12)


# --- figures ------------------------------------------------------------------------------------------------


def test_the_constant_makes_a_density() -> None:
    grid = (np.arange(400) + 0.5) / 400
    away = np.maximum.outer(np.abs(grid - 0.5), np.abs(grid - 0.5))
    for gamma in (0.0, 0.2, 1.0, 2.0):
        assert claims.density_constant(gamma) * (away**gamma).mean() == pytest.approx(1.0, abs=1e-4)


def test_ratios_have_the_delta_methods_error() -> None:
    draws = np.random.default_rng(4)
    first, second = 10.0 + 0.1 * draws.normal(size=100_000), 4.0 + 0.05 * draws.normal(size=100_000)
    value, error = claims.ratio((10.0, 0.1), (4.0, 0.05))
    assert value == 2.5
    assert error == pytest.approx((first / second).std(), rel=0.02)


@pytest.mark.slow
def test_the_table_can_be_had_for_local_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    frame = made_up(300).features.assign(label=[0, 1, 1] * 100, source=[0, 0, 1] * 100)
    frame.to_csv(tmp_path / "taxi.csv", index=False)
    originals.main(["--taxi", str(tmp_path / "taxi.csv"), "--runs", "2", "--n-jobs", "1"])
    told = capsys.readouterr().out
    assert "LDPBandit w" in told
    assert told.count("Taxi") == 1 + 8
    with pytest.raises(SystemExit):
        originals.main([])
