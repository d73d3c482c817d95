"""LDPBandit and ABSE: privacy of a report, releases, propensities, and everything that is refused."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numba
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from statsmodels.datasets import anes96

import adaptinf as ai
from adaptinf.designs import Uniform
from adaptinf.designs.local.bins import LDPBandit, bin_sums
from adaptinf.designs.local.bins_kernel import _choose, _update, bin_columns
from adaptinf.designs.local.cube_designs import ABSE
from adaptinf.designs.local.cube_tree import EDGES
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.privacy.noise import Buffer
from adaptinf.simulation.environments import BernoulliArms, Classification, LinearArms
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog, UnitCube
from adaptinf.simulation.environments.vector_arms import SmoothArms

ARMS = SmoothArms(3, 2)


def test_guarantees_are_those_of_a_report_whatever_the_calibration() -> None:
    for calibration in ("corrected", "published"):
        design = LDPBandit(epsilon=2.0, calibration=calibration)
        whole, rewards = design.guarantee(1000, 3), design.reward_guarantee(1000, 3)
        assert (whole.epsilon, whole.delta, whole.unit, whole.model) == (2.0, 0.0, "record", "local")
        assert (whole.notion, rewards.notion) == ("anticipating", "standard")
        assert "the participant's own arm" in whole.reasons[0]
        assert (rewards.epsilon, rewards.unit, rewards.model) == (0.5, "reward", "local")
    log = LDPBandit(epsilon=2.0).run(ARMS, 50, rng=0)
    assert log.guarantee is not None
    assert log.guarantee.epsilon == 2.0
    assert log.reward_guarantee is not None
    assert log.reward_guarantee.epsilon == 0.5
    assert log.noise == "simulation"
    assert log.feedback_rounds == 49


@numba.njit
def _one_more(tables: Any, state: Any, context: Any, arm: int, reward: float, source: Any) -> None:
    _choose(tables, state, context, source)
    _update(tables, state, context, arm, reward, source)


def reports_of(
    design: LDPBandit, state: np.ndarray, x: tuple[float, float], arm: int, y: float
) -> np.ndarray:
    """All U and V of one participant, without noise, in a given state of the server."""
    tables = design.tables(3, 2, horizon=10**9)
    before, after = state.copy(), state.copy()
    source = Buffer(np.zeros(4), np.zeros(10_000), np.zeros(2, dtype=np.int64))
    _one_more(tables, after, np.array(x), arm, y, source)
    blocks = slice(EDGES + 4 + 3, EDGES + 4 + 9)
    return (after - before)[1:, blocks]


@pytest.mark.slow
def test_a_report_moves_by_four_with_the_record_and_by_one_with_the_reward() -> None:
    design = LDPBandit(epsilon=1.0)
    state = np.zeros((16, bin_columns(3, 2, 1)))
    warm = design.tables(3, 2, horizon=10**9)._replace(refinement=1e9)
    source = Buffer(np.full(40, 0.4), np.full(400, 50.0), np.zeros(2, dtype=np.int64))
    for step in range(3):
        _one_more(warm, state, np.array([0.1, 0.2]), step, 1.0, source)
    bins = int(state[0, 3])
    assert bins >= 4
    records = list(itertools.product([0.1, 0.6, 0.9], [0.1, 0.7], [0, 1, 2], [0.0, 0.5, 1.0, 7.0, -3.0]))
    reports = [reports_of(design, state, (x1, x2), arm, y) for x1, x2, arm, y in records]
    distances = [np.abs(one - other).sum() for one, other in itertools.combinations(reports, 2)]
    assert max(distances) == pytest.approx(4.0)
    same_place = [
        np.abs(reports[i] - reports[j]).sum()
        for i, j in itertools.combinations(range(len(records)), 2)
        if records[i][:3] == records[j][:3]
    ]
    assert max(same_place) == pytest.approx(1.0)
    assert design.tables(3, 2, 10).scales[0] == pytest.approx(max(distances) / design.epsilon)


@pytest.mark.slow
def test_equal_reports_make_equal_sums_whatever_is_behind_them() -> None:
    """To the last bit: a participant of the arm or of another one, with noise that makes up for it."""
    tables = LDPBandit(epsilon=1.0).tables(2, 1, horizon=10**9)
    rng = np.random.default_rng(0)
    begun = np.zeros((4, bin_columns(2, 1, 1)))
    noise = np.array([0.1, 0.2, 0.3, 0.4])  # small sums, so that adding 1 to them costs bits
    _one_more(tables, begun, np.array([0.5]), 1, 1.0, Buffer(np.full(9, 0.1), noise, np.zeros(2, np.int64)))
    compared = apart = 0
    for _ in range(200):
        reports = 1.0 + rng.laplace(scale=4.0, size=2)
        states = []
        for arm in (0, 1):  # the report is on arm 0, whose count and sum are 1 or 0
            noises = np.array([*(reports - (1.0 - arm)), *(np.array([2.0, 3.0]) - arm)])
            state = begun.copy()
            source = Buffer(np.full(9, 0.9 * arm), noises, np.zeros(2, np.int64))
            _one_more(tables, state, np.array([0.5]), arm, 1.0, source)
            states.append(state)
        if (1.0 + (reports - 1.0) == reports).all():
            assert np.array_equal(*states)
            first = (begun[1, COUNT] + 1.0) + (reports[0] - 1.0)
            apart += first != begun[1, COUNT] + reports[0]
            compared += 1
    assert compared > 50
    assert apart > 0.1 * compared  # what the raw count would have told in the last bits


COUNT = EDGES + 2 + 2
"""Column of the noisy count of arm 0, with two arms and one coordinate."""


@pytest.mark.slow
@pytest.mark.parametrize("check_every", [1, 20])
def test_bins_that_nobody_visits_are_noised_by_every_participant(check_every: int) -> None:
    """Noise in the visited bin alone would leave these sums at exactly zero, and tell where people are."""
    corner = SmoothArms(3, 2, contexts=np.random.default_rng(0).random((1_500, 2)) / 16, order="resampled")
    design = LDPBandit(epsilon=200.0, check_every=check_every)
    scores, participants = [], []
    for log in design.logs(corner, 1_500, 120, rng=1):
        table = bin_sums(log)
        far = table[(table["low_x1"] >= 0.0625) | (table["low_x2"] >= 0.0625)]
        scores.append((far[["count", "sum"]].to_numpy() / far[["noise_sd"]].to_numpy()).ravel())
        participants.append(np.repeat(far["participants"].to_numpy(), 2))
    score, t = np.concatenate(scores), np.concatenate(participants)
    assert (score != 0.0).all()
    long = t > 500
    assert 100 < long.sum() < score.size - 100
    for group in (score[long], score[~long & (t > 100)]):
        # each squared score has mean 1 and, up to the tails of a single Laplace, variance 2
        assert abs((group**2).mean() - 1.0) < 4.5 * math.sqrt(2.2 / group.size)
        assert abs(group.mean()) < 4.5 / math.sqrt(group.size)


def test_released_sums_are_the_true_ones_plus_noise() -> None:
    """At an epsilon where noise is negligible the sums count what the log contains."""
    log = LDPBandit(epsilon=1e9).run(ARMS, 3_000, rng=3)
    table = bin_sums(log)
    frame = log.frame
    begun = {0: 0}
    for row in table.itertuples():
        inside = np.ones(3_000, dtype=bool)
        for name in ("x1", "x2"):
            low, high = getattr(row, f"low_{name}"), getattr(row, f"high_{name}")
            inside &= ((frame[name] >= low) & (frame[name] < high)).to_numpy()
        start = begun.setdefault(int(row.bin), int(row.until) - int(row.participants))
        rounds = (frame["t"] > start) & (frame["t"] <= row.until)
        own = frame[inside & rounds & (frame["action"] == row.arm)]
        assert row.count == pytest.approx(len(own), abs=1e-4)
        assert row.sum == pytest.approx(own["reward"].sum(), abs=1e-4)
    assert table["bin"].nunique() > 3
    assert set(log.releases["mechanism"]) == {"public", "laplace reports"}


def test_bins_tile_the_cube_at_every_time() -> None:
    log = LDPBandit(epsilon=1024.0).run(ARMS, 5_000, rng=4)
    table = bin_sums(log).groupby("bin").first()
    begin, end = table["until"] - table["participants"], bin_sums(log).groupby("bin")["until"].max()
    volume = (table["high_x1"] - table["low_x1"]) * (table["high_x2"] - table["low_x2"])
    last = bin_sums(log).groupby("bin")["until"].max()
    for t in (1, 1_000, 3_000, 5_000):
        now = (begin < t) & (end >= t)
        assert volume[now].sum() == pytest.approx(1.0)
    assert last.max() == 5_000
    assert table["low_x1"].min() == 0.0
    ratio = (table["high_x1"] - table["low_x1"]) / (table["high_x2"] - table["low_x2"])
    assert set(ratio) <= {0.5, 1.0, 2.0}


def test_propensities_are_one_over_the_arms_left_in_the_bin() -> None:
    log = LDPBandit(epsilon=1024.0).run(ARMS, 20_000, rng=5)
    arrays = log.arrays
    assert arrays.propensities is not None
    assert arrays.propensity is not None
    assert log.propensity_status == "exact"
    left = (arrays.propensities > 0.0).sum(axis=1)
    np.testing.assert_allclose(arrays.propensities.sum(axis=1), 1.0)
    np.testing.assert_allclose(arrays.propensity, 1.0 / left)
    assert set(left) == {1, 2, 3}
    # the draws follow them
    first = arrays.action == np.argmax(arrays.propensities > 0.0, axis=1)
    for arms in (2, 3):
        hits = int(first[left == arms].sum())
        assert stats.binomtest(hits, int((left == arms).sum()), 1.0 / arms).pvalue > 1e-5


def test_check_every_draws_the_noise_of_a_gap_and_the_last_partial_gap() -> None:
    for horizon in (100, 103):
        table = bin_sums(LDPBandit(epsilon=1.0, check_every=10).run(ARMS, horizon, rng=6))
        assert (table["participants"] == horizon).all()
        assert (table["until"] == horizon).all()


def test_a_full_partition_stays_as_it_is_and_says_so() -> None:
    sims = LDPBandit(epsilon=1024.0, max_bins=3).replicate(ARMS, 10_000, 2, rng=7)
    assert sims.released["bins"].ravel().tolist() == [3.0, 3.0]
    assert sims.released["full"].ravel().tolist() == [1.0, 1.0]
    roomy = LDPBandit(epsilon=1024.0).replicate(ARMS, 10_000, 2, rng=7)
    assert roomy.released["full"].ravel().tolist() == [0.0, 0.0]
    one = LDPBandit(epsilon=1024.0, max_bins=1).replicate(ARMS, 3_000, 1, rng=7)
    assert one.released["bins"].ravel().tolist() == [1.0]


def test_run_is_the_first_replicate() -> None:
    for design in (LDPBandit(epsilon=50.0), ABSE(lipschitz=0.4)):
        log = design.run(ARMS, 3_000, rng=8)
        sims = design.replicate(ARMS, 3_000, 2, rng=8)
        assert sims.pulls[0].tolist() == np.bincount(log.arrays.action, minlength=3).tolist()
        points = np.stack([log.arrays.context["x1"], log.arrays.context["x2"]], axis=1)
        f = ARMS.expected(points)
        regret = (f.max(axis=1) - f[np.arange(3_000), log.arrays.action]).sum()
        assert sims.regret[0] == pytest.approx(regret)


def test_the_log_survives_storage(tmp_path: Any) -> None:
    log = LDPBandit(epsilon=50.0).run(ARMS, 1_000, rng=9)
    log.to_parquet(tmp_path / "log.parquet")

    again = ai.read_log(tmp_path / "log.parquet")
    pd.testing.assert_frame_equal(bin_sums(again), bin_sums(log))


def test_bin_sums_needs_reports() -> None:
    with pytest.raises(InvalidForLog, match="no sums of reports by bin"):
        bin_sums(Uniform().run(ARMS, 10, rng=0))


def test_in_a_mixture_overridden_rounds_report_the_arm_that_was_pulled() -> None:
    log = Mixture(LDPBandit(epsilon=1e9), exploration=0.5).run(ARMS, 2_000, rng=10)
    table = bin_sums(log)
    first = table[table["bin"] == 0].iloc[0]
    frame = log.frame[log.frame["t"] <= first["until"]]
    assert first["count"] == pytest.approx((frame["action"] == first["arm"]).sum(), abs=1e-4)
    assert log.arrays.propensities is not None
    assert log.arrays.propensities.min() >= 0.5 / 3 - 1e-12


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"epsilon": 0.0}, "epsilon must be above 0, got 0.0"),
        ({"epsilon": math.inf}, "epsilon must be above 0"),
        ({"epsilon": "1"}, "epsilon must be a number"),
        ({"epsilon": 1.0, "calibration": "exact"}, "calibration must be one of 'corrected', 'published'"),
        ({"epsilon": 1.0, "width": 0.0}, "width must be above 0"),
        ({"epsilon": 1.0, "refinement": -1.0}, "refinement must be at least 0"),
        ({"epsilon": 1.0, "check_every": 0}, "check_every must be a whole number of at least 1"),
        ({"epsilon": 1.0, "axis": "x1"}, "axis must be one of 'random', 'first'"),
        ({"epsilon": 1.0, "max_bins": 2.5}, "max_bins must be a whole number"),
        ({"epsilon": 1.0, "calibration": "published", "width": 2.0}, "must be omitted"),
    ],
)
def test_parameters_that_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        LDPBandit(**arguments)


@pytest.mark.parametrize("design", [LDPBandit(epsilon=8.0), ABSE()], ids=lambda design: type(design).__name__)
def test_a_single_pass_over_labelled_rows(design: Any) -> None:
    survey = anes96.load_pandas().data
    cube = UnitCube(low=[1, 18], high=[7, 100], names=["selfLR", "age"])
    environment = Classification(survey, "vote", ["selfLR", "age"], scaler=cube, order="shuffled")
    rows = len(survey)
    if isinstance(design, LDPBandit):
        given = environment.auxiliary(survey.iloc[[0, 5, 3]], epsilon=4.0, rng=12)
        with_auxiliary = LDPBandit(epsilon=1.0, auxiliary=(given,))
        assert with_auxiliary.run(environment, 100, rng=0).n_rounds == 100
    sims = design.replicate(environment, rows, 130, rng=7)
    assert np.array_equal(sims.regret, rows - sims.sums.sum(axis=1))
    log = design.run(environment, rows, rng=7)
    assert log.arrays.reward.sum() == sims.sums[0].sum()
    contexts = np.stack([log.arrays.context[name] for name in ("selfLR", "age")], axis=1)
    used = np.unique(contexts, axis=0, return_counts=True)
    there = np.unique(environment.contexts, axis=0, return_counts=True)
    assert np.array_equal(used[0], there[0])
    assert np.array_equal(used[1], there[1])


@pytest.mark.parametrize("design", [LDPBandit(epsilon=1.0), ABSE()])
@pytest.mark.parametrize(
    ("environment", "message"),
    [
        (BernoulliArms([0.5, 0.4]), "requires context vectors"),
        (LinearArms(np.eye(2), rewards="normal", shared=True), r"contexts must lie in the cube \[0, 1\]\^2"),
        (LinearArms(np.eye(2), contexts="orthant"), "all arms must have the same context vector"),
        (
            LinearArms(np.eye(2), contexts=[[0.5, 1.2]], shared=True, order="resampled"),
            r"1 rows do not \(the first is row 0\): scale them with a UnitCube",
        ),
        (
            LinearArms(np.eye(2), 0.1, contexts=[[0.5, 1.0]], shared=True, rewards="uniform"),
            r"rewards must lie in \[0, 1\]",
        ),
        (SmoothArms(1, 2), "at least 2 arms"),
    ],
)
def test_environments_that_are_refused(design: Any, environment: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        design.run(environment, horizon=1, rng=0)


def test_shared_linear_contexts_in_the_cube_will_do() -> None:
    environment = LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", shared=True, rewards="bernoulli")
    log = LDPBandit(epsilon=1024.0, axis="first").run(environment, 4_000, rng=11)
    assert bin_sums(log)["bin"].nunique() > 3


def test_auxiliary_contexts_and_arms_have_the_laws_that_were_asked_for() -> None:
    given = SmoothArms(4, 3).auxiliary(20_000, gamma=1.5, kappa=0.4, epsilon=2.0, rng=13)
    radius = 2.0 * np.abs(given.contexts - 0.5).max(axis=1)
    assert stats.kstest(radius, lambda r: np.asarray(r) ** 4.5).pvalue > 1e-5
    for k in range(3):
        assert abs(given.contexts[:, k].mean() - 0.5) < 4.5 * 0.5 / math.sqrt(20_000)
    policy = 0.4 / 4 + 1.2 / 12 * np.arange(4)
    counts = np.bincount(given.log.arrays.action, minlength=4)
    assert stats.chisquare(counts, 20_000 * policy).pvalue > 1e-5
    assert given.log.arrays.propensities is not None
    np.testing.assert_allclose(given.log.arrays.propensities[0], policy)
    flat = SmoothArms(3, 2).auxiliary(20_000, rng=14)
    assert stats.kstest(flat.contexts[:, 0], "uniform").pvalue > 1e-5
    assert stats.kstest(flat.contexts[:, 1], "uniform").pvalue > 1e-5
    expected = ARMS.expected(flat.contexts)[np.arange(20_000), flat.log.arrays.action]
    assert abs((flat.log.arrays.reward - expected).mean()) < 4.5 * 0.5 / math.sqrt(20_000)


def test_good_auxiliary_data_help_where_there_is_no_learning_without() -> None:
    """epsilon = 1, n = 80,000: uniform choice has a regret of 34,978."""
    for size, most in ((0, 36_000.0), (100_000, 17_000.0)):
        logs = (ARMS.auxiliary(size, epsilon=8.0, rng=15),) if size else ()
        design = LDPBandit(epsilon=1.0, auxiliary=logs)
        regret = design.replicate(ARMS, 80_000, 3, rng=16).regret
        assert (regret < most).all()
        assert size or (regret > 34_000.0).all()
    log = design.run(ARMS, 2_000, rng=17)
    assert log.guarantee is not None
    assert log.guarantee.epsilon == 1.0
    assert log.design is not None
    assert log.design.parameters["auxiliary"] == [{"n_rounds": 100_000, "epsilon": 8.0}]
    table = bin_sums(log)
    assert (table["participants"] <= 2_000).all()
    assert (table["until"] <= 2_000).all()


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        (SmoothArms(4, 2), r"auxiliary log 1: its arms are \[0, 1, 2, 3\]"),
        (SmoothArms(3, 1), "its contexts have 1 coordinates, but those of the trial have 2"),
    ],
)
def test_auxiliary_logs_that_do_not_fit_are_refused(arms: SmoothArms, message: str) -> None:
    design = LDPBandit(epsilon=1.0, auxiliary=(arms.auxiliary(20, rng=0),))
    with pytest.raises(ParameterError, match=message):
        design.run(ARMS, 10, rng=0)


def test_auxiliary_data_that_no_trial_could_use_are_refused() -> None:
    good = ARMS.auxiliary(20, rng=0).log
    with pytest.raises(ParameterError, match="epsilon must be above 0"):
        AuxiliaryLog(good, epsilon=0.0)
    with pytest.raises(ParameterError, match=r"contexts must lie in \[0, 1\]\^2"):
        AuxiliaryLog(Uniform().run(LinearArms(np.eye(2), shared=True), 20, rng=0), epsilon=1.0)
    with pytest.raises(ParameterError, match="the log must have context columns"):
        AuxiliaryLog(Uniform().run(BernoulliArms([0.5, 0.4]), 20, rng=0), epsilon=1.0)
    with pytest.raises(ParameterError, match="auxiliary must be a tuple of AuxiliaryLog"):
        LDPBandit(epsilon=1.0, auxiliary=(good,))  # type: ignore[arg-type]
    normal = Uniform().run(LinearArms(np.eye(2), contexts="orthant", shared=True), 99, rng=0)
    with pytest.raises(ParameterError, match=r"rewards must lie in \[0, 1\]"):
        AuxiliaryLog(normal, epsilon=1.0)
    with pytest.raises(ParameterError) as error:
        ARMS.auxiliary(0, gamma=-1.0, kappa=2.0, epsilon=0.0)
    assert all(name in str(error.value) for name in ("n must", "gamma", "kappa", "epsilon"))


def test_abse_refuses_and_promises_nothing() -> None:
    with pytest.raises(ParameterError, match="lipschitz must be above 0"):
        ABSE(lipschitz=0.0)
    assert ABSE().guarantee(100, 2) is None
    log = ABSE(lipschitz=0.5).run(SmoothArms(3, 1), 20_000, rng=12)
    assert log.noise is None
    assert log.releases.empty
    assert log.arrays.propensities is not None
    assert set((log.arrays.propensities > 0).sum(axis=1)) >= {2, 3}
