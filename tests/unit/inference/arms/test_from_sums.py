"""Arms from sums by batch: against the definition by rows, sums.md's own formulas, and rows of all kinds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording
from hypothesis import given, settings
from hypothesis import strategies as st

import adaptinf as ai
from adaptinf.claims import propensities, rare_outcomes, stationarity
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.data import availability
from adaptinf.claims.data import sums as claims
from adaptinf.claims.tables import TOO_LONG
from adaptinf.claims.views import Assumed
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.scores.batch_sums import lagged_weights
from adaptinf.inference.scores.inverse import lagged_combined_weights
from adaptinf.log.validation import nested_options


def frame_of(
    seed: int,
    n_arms: int = 3,
    sizes: tuple[int, ...] = (30, 40, 25, 50),
    varying: bool = True,
    kind: str = "gamma",
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = []
    for batch, size in enumerate(sizes):
        base = rng.dirichlet(np.full(n_arms, 3.0)) * 0.8 + 0.2 / n_arms
        for _ in range(size):
            share = base * (1.0 + varying * rng.random() * np.arange(n_arms))
            share /= share.sum()
            arm = int(rng.choice(n_arms, p=share))
            reward = {
                "gamma": lambda arm=arm: rng.gamma(1.5) * (1 + arm) + 3.0,
                "binary": lambda arm=arm: float(rng.random() < 0.3 + 0.1 * arm),
                "zeros": lambda arm=arm: float(rng.random() < 0.4) * rng.lognormal(arm, 1.0),
                "far": lambda arm=arm: rng.normal(1000.0 + arm),
            }[kind]()
            rows.append((batch, arm, reward, *share))
    return pd.DataFrame(rows, columns=["batch", "arm", "y", *(f"propensity_{k}" for k in range(n_arms))])


def log_of(frame: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    return ai.AdaptiveLog(frame, action="arm", reward="y", batch="batch", **nested_options(options))


def literal(frame: pd.DataFrame, arms: list[int], weight: Any) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and covariance, round by round from the definition; weight(batch, arm) -> h."""
    rows = list(frame.itertuples(index=False))
    columns: dict[int, list[tuple[float, float]]] = {arm: [] for arm in arms}
    for t, row in enumerate(rows):
        before = [other for other in rows if other.batch < row.batch]
        others = [other for s, other in enumerate(rows) if other.batch == row.batch and s != t]
        for arm in arms:
            own = [other.y for other in before if other.arm == arm]
            known = own or [other.y for other in before] or [other.y for other in others]
            m = math.fsum(known) / len(known)
            e = getattr(row, f"propensity_{arm}")
            columns[arm].append((weight(row.batch, arm), m + (row.arm == arm) * (row.y - m) / e))
    estimate, influence = [], []
    for arm in arms:
        total = math.fsum(h for h, _ in columns[arm])
        mean = math.fsum(h * score for h, score in columns[arm]) / total
        estimate.append(mean)
        influence.append([h * (score - mean) / total for h, score in columns[arm]])
    gram = [[math.fsum(x * y for x, y in zip(a, b, strict=True)) for a in influence] for b in influence]
    return np.array(estimate), np.array(gram)


def lag(frame: pd.DataFrame, pair: list[int]) -> Any:
    """Combined weights by the batch before."""
    inverse = sum(1.0 / frame[f"propensity_{arm}"] for arm in pair)
    mean = inverse.groupby(frame["batch"]).mean()
    return lambda batch, arm: 1.0 if batch == 0 else mean[batch - 1] ** -0.5


@pytest.mark.parametrize("seed", range(3))
def test_rows_and_sums_are_the_literal_estimate(seed: int) -> None:
    frame = frame_of(seed)
    log = log_of(frame)
    estimate, covariance = literal(frame, [0, 1, 2], lambda batch, arm: 1.0)
    pair_mean, pair_covariance = literal(frame, [2, 0], lag(frame, [2, 0]))
    for data in (log, ai.Sums.of_log(log)):
        result = ai.ArmMeans(data).fit("aipw", weights="uniform", outcome="batch-mean")
        np.testing.assert_allclose(result.estimate, estimate, rtol=1e-12)
        np.testing.assert_allclose(result.covariance, covariance, rtol=1e-10, atol=1e-14)
        found = ai.Contrast(data, treatment=2, control=0).fit("aipw", outcome="batch-mean")
        assert found.weights == "combined"
        np.testing.assert_allclose(found.estimate, pair_mean[0] - pair_mean[1], rtol=1e-11)
        variance = pair_covariance[0, 0] + pair_covariance[1, 1] - 2.0 * pair_covariance[0, 1]
        np.testing.assert_allclose(found.std_error**2, variance, rtol=1e-10)


def test_contrasts_are_the_polynomial_in_sums_of_one_query() -> None:
    """With R = Y - m A and V = G - 2 m F + m^2 D of each batch and arm, sums of y^j / e^p over its rounds."""
    frame = frame_of(11)
    weight = lag(frame, [1, 0])
    total = bottom = 0.0
    parts = []
    for batch, rows in frame.groupby("batch"):
        n, h = len(rows), weight(batch, 0)
        before = frame[frame["batch"] < batch]
        pieces = []
        for arm in (1, 0):
            own = rows[rows["arm"] == arm]
            y, e = own["y"], own[f"propensity_{arm}"]
            m = before.loc[before["arm"] == arm, "y"].mean() if batch else rows["y"].mean()
            factor = 1.0 if batch else n / (n - 1)
            r = factor * ((y / e).sum() - m * (1 / e).sum())
            v = factor**2 * ((y**2 / e**2).sum() - 2 * m * (y / e**2).sum() + m**2 * (1 / e**2).sum())
            pieces.append((m, r, v))
        (m1, r1, v1), (m0, r0, v0) = pieces
        total, bottom = total + h * (n * (m1 - m0) + r1 - r0), bottom + h * n
        parts.append((h, n, m1 - m0, r1 - r0, v1 + v0))
    delta = total / bottom
    variance = (
        sum(h * h * (n * (m - delta) ** 2 + 2 * (m - delta) * r + v) for h, n, m, r, v in parts) / bottom**2
    )
    found = ai.Contrast(ai.Sums.of_log(log_of(frame)), treatment=1, control=0).fit()
    np.testing.assert_allclose(found.estimate, delta, rtol=1e-12)
    np.testing.assert_allclose(found.std_error**2, variance, rtol=1e-11)


def fits(data: Any, model: str, **options: Any) -> Any:
    try:
        if model == "means":
            return ai.ArmMeans(data).fit(**options)
        return ai.Contrast(data, treatment=1, control=0).fit(**options)
    except InvalidForLog as error:
        return error.method, error.reason


def assert_same_limits(rows: Any, sums: Any) -> None:
    """Equal, but that limits too far apart for one way may be kept by the other.

    Rows know the range of the rewards, and sums their variance.
    """
    own, other = sums.conf_int().to_numpy(), rows.conf_int().to_numpy()
    alone = np.isnan(own).any(axis=1) != np.isnan(other).any(axis=1)
    kept = np.where(np.isnan(own), other, own)[alone]
    longest = np.where(np.isnan(own).any(axis=1), sums.facts.longest, rows.facts.longest)[alone]
    assert (np.ptp(kept, axis=1) > longest).all()
    np.testing.assert_allclose(own[~alone], other[~alone], rtol=1e-9)


def assert_same(rows: Any, sums: Any, *, batches: int = 2) -> None:
    """Equal, but that rows alone tell whether rewards drift within the one batch that there may be."""
    if isinstance(rows, tuple) or isinstance(sums, tuple):
        assert rows == sums
        return
    for name in ("estimate", "std_error"):
        np.testing.assert_allclose(getattr(sums, name), getattr(rows, name), rtol=1e-10, atol=1e-14)
    scale = np.max(np.nan_to_num(np.abs(rows.covariance)))
    np.testing.assert_allclose(sums.covariance, rows.covariance, rtol=1e-10, atol=1e-10 * scale)
    assert_same_limits(rows, sums)
    assert set(sums.details) == set(rows.details)
    for name, values in rows.details.items():
        np.testing.assert_allclose(sums.details[name], values, rtol=1e-9)
    assert (sums.validity, sums.weights) == (rows.validity, rows.weights)
    # "Worth 20 rewards, below 20" is told where 20 is rounded down, which may be by either way alone.
    tied = " 20.0 rewards", "(10.0)"
    # Rows test drift by other sums than sums can: test_pieces.py holds these against each other.
    moved = stationarity.SHARES_MOVED, stationarity.BOTH_MOVED
    said = [
        [
            text
            for text in each.cautions
            if not any(map(text.__contains__, tied)) and not any(says(text, one) for one in moved)
        ]
        for each in (sums, rows)
    ]
    assert said[0] == said[1]
    apart = claims.READ, arm_fits.CHOSEN, arm_fits.EXACT_TEST, stationarity.ONLY_SHARES_MOVED, TOO_LONG
    own = [
        [
            note
            for note in each.notes
            if not any(says(note, one) for one in apart) and not (batches == 1 and isinstance(note, Assumed))
        ]
        for each in (sums, rows)
    ]
    assert own[0] == own[1]


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    seed=st.integers(0, 10_000),
    n_arms=st.integers(2, 4),
    sizes=st.lists(st.integers(8, 40), min_size=1, max_size=5),
    varying=st.booleans(),
    kind=st.sampled_from(["gamma", "binary", "zeros", "far"]),
    adaptive=st.booleans(),
    model=st.sampled_from(["means", "contrast"]),
    test=st.sampled_from(["auto", "t", "hall", "normal"]),
)
@pytest.mark.filterwarnings("ignore::adaptinf.errors.AdaptinfWarning")
def test_sums_equal_rows(
    seed: int,
    n_arms: int,
    sizes: list[int],
    varying: bool,
    kind: str,
    adaptive: bool,
    model: str,
    test: str,
) -> None:
    frame = frame_of(seed, n_arms, tuple(sizes), varying, kind)
    log = log_of(frame, feedback_rounds=None if adaptive else 0)
    sums = ai.Sums.of_log(log)
    shared = ("combined",) if model == "contrast" else ("joint", "combined")
    calls = [
        {**estimator, "weights": weights}
        for weights in ("uniform", *shared, *(() if varying else ("sqrt",)))
        for estimator in ({"estimator": "aipw", "outcome": "batch-mean"}, {"estimator": "ipw"})
    ]
    for call in (*calls, {"estimator": "sample-mean"}):
        assert_same(
            fits(log, model, test=test, **call), fits(sums, model, test=test, **call), batches=len(sizes)
        )
    if not varying and model == "contrast":
        assert_same(fits(log, model, estimator="batched"), fits(sums, model, estimator="batched"))
    if kind == "binary":
        call = {"estimator": "sample-mean", "test": "exact"}
        assert_same(fits(log, model, **call), fits(sums, model, **call))


def test_the_chosen_arms_propensities_alone() -> None:
    frame = frame_of(3)
    frame["p"] = frame[["propensity_0", "propensity_1", "propensity_2"]].to_numpy()[
        np.arange(len(frame)), frame["arm"]
    ]
    log = log_of(frame[["batch", "arm", "y", "p"]], propensity="p")
    sums = ai.Sums.of_log(log)
    assert_same(fits(log, "means", estimator="aipw", outcome="batch-mean"), fits(sums, "means"))
    with pytest.raises(InvalidForLog, match="every arm's propensity"):
        ai.Contrast(sums, treatment=1, control=0).fit(weights="combined")


def test_an_arm_that_is_gone_in_a_batch() -> None:
    frame = frame_of(5, varying=False)
    gone = frame["batch"] == 2
    frame = frame[~(gone & (frame["arm"] == 2))].reset_index(drop=True)
    columns = [f"propensity_{k}" for k in range(3)]
    frame.loc[frame["batch"] == 2, "propensity_2"] = 0.0
    frame[columns] = frame[columns].div(frame[columns].sum(axis=1), axis=0)
    log = log_of(frame)
    sums = ai.Sums.of_log(log)
    call = {"estimator": "aipw", "outcome": "batch-mean", "weights": "uniform"}
    assert_same(fits(log, "means", **call), fits(sums, "means", **call))
    for weights in ("uniform", "combined"):
        pair = {"estimator": "aipw", "outcome": "batch-mean", "weights": weights}
        rows = ai.Contrast(log, treatment=2, control=0).fit(**pair)
        assert_same(rows, ai.Contrast(sums, treatment=2, control=0).fit(**pair))
        assert says(rows.notes, availability.LEFT_OUT)


def test_lagged_weights_are_those_of_rows() -> None:
    frame = frame_of(8)
    frame.loc[frame["batch"] == 1, "propensity_0"] = 0.0
    every = frame[["propensity_0", "propensity_1"]].to_numpy()
    batch = frame["batch"].to_numpy()
    with np.errstate(divide="ignore"):
        inverse = np.array([(1.0 / every[batch == b]).sum(axis=0) for b in range(4)])
    rounds = np.bincount(batch).astype(float)
    found = lagged_weights(inverse, rounds, np.array([True, False, True, True]))
    np.testing.assert_allclose(found[batch], lagged_combined_weights(every, batch), rtol=1e-12)


def test_shares_in_place_of_propensities() -> None:
    frame = frame_of(21, 2, (60, 80, 50), varying=False)
    grouped = frame.groupby(["batch", "arm"])["y"].agg(n="count", mean="mean", variance="var", total="sum")
    grouped["squares"] = frame.assign(q=frame["y"] ** 2).groupby(["batch", "arm"])["q"].sum()
    names = {"batch": "batch", "arm": "arm", "n": "n", "sum": "total", "sum_squares": "squares"}
    sums = ai.Sums(grouped.reset_index(), **names)
    result = ai.ArmMeans(sums).fit(test="t")
    share = frame.groupby("batch").size() / len(frame)
    for arm in (0, 1):
        own = grouped.xs(arm, level="arm")
        np.testing.assert_allclose(result.estimate[arm], (share * own["mean"]).sum(), rtol=1e-12)
        np.testing.assert_allclose(
            result.std_error[arm] ** 2, (own["variance"] * share**2 / own["n"]).sum(), rtol=1e-10
        )
    assert (sums.propensity_status, result.weights) == ("estimated", "uniform")
    assert says(result.notes, claims.SHARES_STAND_IN)
    assert says(result.cautions, rare_outcomes.SHAPE_UNKNOWN)
    nonzero = frame.assign(other=frame["y"] != 0.0).groupby(["batch", "arm"])["other"].sum()
    counted = ai.Sums(grouped.assign(other=nonzero).reset_index(), **names, nonzero="other")
    cautions = ai.ArmMeans(counted).fit(test="t").cautions
    assert not says(cautions, rare_outcomes.SHAPE_UNKNOWN)
    assert says(cautions, rare_outcomes.SKEWNESS_UNKNOWN)
    assert not any("nonzero=" in caution for caution in cautions)
    with pytest.raises(InvalidForLog, match="the sums do not contain the skewness of the rewards:"):
        ai.ArmMeans(sums).fit(test="hall")
    with pytest.raises(InvalidForLog) as caught:
        ai.Contrast(sums, treatment=1, control=0).fit(weights="combined")
    assert says(caught.value.reason, claims.OF_SHARES)
    few = grouped.reset_index().assign(n=[4, 56, 40, 40, 25, 25])
    few[["total", "squares"]] = few["n"].to_numpy()[:, None] * [3.0, 12.0]
    assert says(ai.ArmMeans(ai.Sums(few, **names)).fit().cautions, claims.FEW_IN_A_BATCH, n=4)


def test_rewards_far_from_zero_keep_their_digits() -> None:
    frame = frame_of(2, kind="gamma")
    near = ai.Contrast(ai.Sums.of_log(log_of(frame)), treatment=1, control=0).fit(test="t")
    far = ai.Contrast(ai.Sums.of_log(log_of(frame.assign(y=frame["y"] + 1e7))), treatment=1, control=0).fit(
        test="t"
    )
    np.testing.assert_allclose(far.estimate, near.estimate, rtol=1e-8)
    np.testing.assert_allclose(far.std_error, near.std_error, rtol=1e-8)


def test_propensities_that_the_counts_contradict_are_cautioned() -> None:
    table = pd.DataFrame(
        {
            "batch": np.repeat(np.arange(8), 2),
            "arm": [0, 1] * 8,
            "n": [530, 470] * 8,
            "buyers": [100, 110] * 8,
            "p": 0.5,
        }
    )
    names = {
        "batch": "batch",
        "arm": "arm",
        "n": "n",
        "sum": "buyers",
        "sum_squares": "buyers",
        "propensity": "p",
    }
    result = ai.ArmMeans(ai.Sums(table, **names)).fit("aipw")
    assert says(result.cautions, propensities.NOT_FOLLOWED)
    fair = ai.ArmMeans(ai.Sums(table.assign(n=[505, 495] * 8), **names)).fit("aipw")
    assert fair.cautions == ()


def test_a_guarantee_corrects_sample_means_of_sums() -> None:
    table = pd.DataFrame(
        {"batch": [0, 0, 1, 1], "arm": [0, 1] * 2, "n": [50, 50, 30, 70], "y": [20, 30, 12, 45]}
    )
    table["p"] = [0.5, 0.5, 0.3, 0.7]
    names = {"batch": "batch", "arm": "arm", "n": "n", "sum": "y", "sum_squares": "y", "propensity": "p"}
    guarantee = {"epsilon": 0.05, "unit": "reward"}
    result = ai.ArmMeans(ai.Sums(table, **names, guarantee=guarantee)).fit("sample-mean")
    rows = table.loc[table.index.repeat(table["n"])].reset_index(drop=True)
    rank = rows.groupby(["batch", "arm"]).cumcount()
    rows = rows.assign(y=(rank < rows["y"]).astype(float))
    log = ai.AdaptiveLog(
        rows[["batch", "arm", "y", "p"]],
        action="arm",
        reward="y",
        batch="batch",
        propensity="p",
        guarantee=guarantee,
    )
    expected = ai.ArmMeans(log).fit("sample-mean")
    np.testing.assert_allclose(result.pvalues_corrected, expected.pvalues_corrected, rtol=1e-10)
    np.testing.assert_allclose(result.conf_int_corrected(), expected.conf_int_corrected(), rtol=1e-10)


def test_batch_means_need_batches_and_one_round_a_unit() -> None:
    frame = frame_of(1)
    with pytest.raises(ParameterError, match="requires batches, but"):
        ai.ArmMeans(ai.AdaptiveLog(frame.drop(columns="batch"), action="arm", reward="y")).fit(
            outcome="batch-mean"
        )
    units = log_of(frame.assign(who=np.arange(len(frame)) // 2), unit="who")
    with pytest.raises(InvalidForLog, match="a unit's own earlier rewards"):
        ai.ArmMeans(units).fit("aipw", outcome="batch-mean")
    with pytest.raises(InvalidForLog, match="a unit's own earlier rewards"):
        ai.ArmMeans(ai.Sums.of_log(units)).fit("aipw", outcome="batch-mean")


def test_own_weights_of_batches_of_single_rounds_are_refused() -> None:
    frame = frame_of(5, sizes=(1,) * 60, varying=True)
    sums = ai.Sums.of_log(log_of(frame))
    with pytest.raises(InvalidForLog, match=wording(claims.MOVING)):
        ai.ArmMeans(sums).fit("aipw", "sqrt")
    stated = ai.Sums.of_log(log_of(frame, context_free=True))
    assert ai.ArmMeans(stated).fit("aipw", "sqrt").params.notna().all()
