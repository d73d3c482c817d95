"""All arms against a control: each row its contrast, the joint covariance, what holds at once, lifts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy import stats

import adaptinf as ai
from adaptinf.claims import Said, laws, tables
from adaptinf.claims.arms import contrasts as claims
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.typing import FloatArray

ARMS = ("a", "b", "c", "d")
ROUNDS = 400


def frame(seed: int = 0, *, binary: bool = False, batches: int = 8, rounds: int = ROUNDS) -> pd.DataFrame:
    """Propensities that move from batch to batch; arm d is possible from the third batch on."""
    rng = np.random.default_rng(seed)
    batch = np.arange(rounds) * batches // rounds
    every = 0.1 + 0.6 * rng.dirichlet(np.ones(4), size=batches)
    every[:2, 3] = 0.0
    every = (every / every.sum(axis=1, keepdims=True))[batch]
    arm = np.array([rng.choice(4, p=row) for row in every])
    reward = rng.normal(2.0 + 0.3 * arm, 1.0) if not binary else rng.binomial(1, 0.3 + 0.1 * arm)
    rows = pd.DataFrame({"arm": np.array(ARMS)[arm], "y": reward.astype(float), "batch": batch})
    rows[[f"p_{name}" for name in ARMS]] = every
    return rows


def log_of(rows: pd.DataFrame, **options: Any) -> ai.AdaptiveLog:
    given: dict[str, Any] = {"propensities": "p_{arm}", "batch": "batch", "arms": list(ARMS)}
    return ai.AdaptiveLog(rows, action="arm", reward="y", **(given | options))


def literal(rows: pd.DataFrame, control: str) -> tuple[list[float], FloatArray]:
    """Estimates and covariance, round by round: AIPW with the arm's running mean, and combined weights."""
    others = [name for name in ARMS if name != control]
    seen: dict[str, list[float]] = {name: [] for name in ARMS}
    every: list[float] = []
    kept: dict[str, list[tuple[float, float]]] = {name: [] for name in others}
    for t, row in enumerate(rows.to_dict("records")):
        score = {}
        for name in ARMS:
            past = seen[name] or every
            model = sum(past) / len(past) if past else 0.0
            score[name] = (
                model + (row["y"] - model) / row[f"p_{name}"] * (row["arm"] == name)
                if row[f"p_{name}"]
                else 0.0
            )
        for name in others:
            e, q = row[f"p_{name}"], row[f"p_{control}"]
            weight = 0.0 if t == 0 or e == 0.0 else (1.0 / e + 1.0 / q) ** -0.5
            kept[name].append((weight, score[name] - score[control]))
        seen[row["arm"]].append(row["y"])
        every.append(row["y"])
    estimates, influences = [], []
    for name in others:
        total = sum(h for h, _ in kept[name])
        estimate = sum(h * s for h, s in kept[name]) / total
        estimates.append(estimate)
        influences.append([h * (s - estimate) / total for h, s in kept[name]])
    return estimates, np.array(influences) @ np.array(influences).T


def test_rows_are_the_contrasts_and_the_covariance_is_the_literal_one() -> None:
    rows = frame()
    log = log_of(rows)
    found = ai.Contrasts(log, control="b").fit()
    estimates, covariance = literal(rows, "b")
    np.testing.assert_allclose(found.estimate, estimates, rtol=1e-10)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-9)
    for place, arm in enumerate("acd"):
        pair = ai.Contrast(log, treatment=arm, control="b").fit()
        assert found.terms[place] == pair.terms[0]
        assert found.estimate[place] == pair.estimate[0]
        assert found.std_error[place] == pair.std_error[0]
        np.testing.assert_array_equal(found.conf_int().iloc[place], pair.conf_int().iloc[0])
        assert found.pvalues.iloc[place] == pair.pvalues.iloc[0]
    assert (found.estimator, found.weights, found.validity) == ("aipw", "combined", "asymptotic")


@pytest.mark.slow
@pytest.mark.parametrize("weights", ["combined", "uniform"])
@pytest.mark.parametrize("estimator", ["aipw", "ipw"])
@pytest.mark.parametrize("shift", [0.0, 1e4])
def test_sums_have_the_covariance_of_their_rows(weights: str, estimator: str, shift: float) -> None:
    rows = frame(1)
    rows["y"] += shift * (estimator == "aipw")
    log = log_of(rows)
    options = {"outcome": "batch-mean"} if estimator == "aipw" else {}
    of_rows = ai.Contrasts(log, control="a").fit(estimator, weights, **options)
    of_sums = ai.Contrasts(ai.Sums.of_log(log), control="a").fit(estimator, weights)
    assert of_rows.covariance is not None
    np.testing.assert_allclose(of_sums.estimate, of_rows.estimate, rtol=1e-9)
    np.testing.assert_allclose(of_sums.covariance, of_rows.covariance, rtol=1e-9)
    gap = of_sums.conf_int_simultaneous() - of_rows.conf_int_simultaneous()
    assert np.abs(gap.to_numpy()).max() < 1e-4 * of_rows.std_error.min()  # the error of the joint law


def test_sums_without_propensities_share_the_control_s_variance() -> None:
    rows = frame(2, batches=4, rounds=2_000)
    rows = rows[rows["batch"] >= 2]
    columns = {"batch": "batch", "arm": "arm", "n": "n", "sum": "sum", "sum_squares": "squares"}
    table = rows.assign(squares=rows["y"] ** 2).groupby(["batch", "arm"], as_index=False)
    table = table.agg(n=("y", "size"), sum=("y", "sum"), squares=("squares", "sum"))
    found = ai.Contrasts(ai.Sums(table, **columns), control="a").fit("aipw", "uniform")
    spread = found.covariance
    assert spread is not None
    shared = spread[0, 1]
    np.testing.assert_allclose(spread[np.triu_indices(3, 1)], shared, rtol=1e-9)
    share = table.groupby("batch")["n"].sum() / len(rows)
    mine = table[table["arm"] == "a"].set_index("batch")
    inside = mine["squares"] - mine["sum"] ** 2 / mine["n"]
    variance = (inside / (mine["n"] - 1) * share**2 / mine["n"]).sum()
    assert shared == pytest.approx(variance, rel=1e-9)


def test_errors_by_unit_are_joint_too() -> None:
    rows = frame(3)
    rows["who"] = np.arange(len(rows)) % 50
    log = log_of(rows, unit="who", batch=None)
    found = ai.Contrasts(log, control="a").fit()
    one = ai.Contrast(log, treatment="c", control="b").fit(found.estimator, found.weights)
    assert found.covariance is not None
    step = np.array([-1.0, 1.0, 0.0])  # (c - a) - (b - a), with uniform weights over the same rounds
    rounds = rows["p_d"] >= 0.0
    assert rounds.all()
    assert math.sqrt(step @ found.covariance @ step) == pytest.approx(one.std_error[0], rel=0.02)


def test_what_holds_at_once_is_printed() -> None:
    found = ai.Contrasts(log_of(frame()), control="a").fit()
    text = str(found)
    assert "simultaneous for 3 terms (maximum t);" in " ".join(text.split())
    assert says(found.explain().texts, tables.AT_ONCE, count=3, method=laws.LARGEST_T())
    assert not says(found.explain(adjust=None).texts, tables.AT_ONCE)
    together = found.pvalues_simultaneous()
    assert np.all(together.to_numpy() >= found.pvalues.to_numpy())
    limits = found.conf_int_simultaneous()
    single = found.conf_int()
    assert (limits["low"] < single["low"]).all()
    first, _, below = text.partition("at once")
    for column in ("low", "high"):
        for one, both in zip(single[column], limits[column], strict=True):
            assert f"{one:.4f}" in first
            assert f"{both:.4f}" in below
            assert f"{both:.4f}" not in first
    table = ai.ArmMeans(log_of(frame())).fit().summary(adjust="max-t").as_text()
    assert "at once" in table
    with pytest.raises(ParameterError, match=r"'holm' or 'bh'.*'max-t'"):
        found.summary(adjust="dunnett")


def test_the_critical_value_is_dunnett_s() -> None:
    """Equal arms of one variance: correlations are near a half, degrees of freedom those of the arms."""
    rng = np.random.default_rng(5)
    samples = [rng.normal(size=4_000) for _ in range(4)]
    rows = pd.DataFrame({"arm": np.repeat(ARMS, 4_000), "y": np.concatenate(samples)}).sample(
        frac=1.0, random_state=1
    )
    rows[[f"p_{name}" for name in ARMS]] = 0.25
    found = ai.Contrasts(log_of(rows, batch=None), control="a").fit("ipw", "uniform")
    limits = found.conf_int_simultaneous().to_numpy()
    critical = (limits[:, 1] - found.estimate) / found.std_error
    theirs = stats.dunnett(*samples[1:], control=samples[0], random_state=1)
    ci = theirs.confidence_interval(0.95)
    spread = math.sqrt(np.mean([one.var(ddof=1) for one in samples]) * 2.0 / 4_000)
    expected = (ci.high - ci.low) / 2.0 / spread
    np.testing.assert_allclose(critical, expected, atol=0.02)


def test_terms_whose_covariance_is_unknown_are_held_by_bonferroni() -> None:
    log = log_of(frame()[lambda rows: rows["batch"] >= 2])
    found = ai.Contrasts(log, control="a").fit("batched")
    assert found.covariance is None
    assert "simultaneous for 3 terms (Bonferroni);" in " ".join(str(found).split())
    assert says(found.explain().texts, tables.AT_ONCE, count=3, method=laws.BONFERRONI())
    single = found.conf_int(0.05 / 3).to_numpy()
    assert np.all(found.conf_int_simultaneous().to_numpy()[:, 0] >= single[:, 0] - 1e-12)


def test_combinations_hold_at_once_as_contrasts_do() -> None:
    """The differences to arm a, as combinations of arm means with one weight for all."""
    log = log_of(frame()[lambda rows: rows["batch"] >= 2])
    means = ai.ArmMeans(log).fit("aipw", "uniform", test="normal")
    tests = means.t_test(["b - a = 0", "c - a = 0", "d - a = 0"])
    found = ai.Contrasts(log, control="a").fit("aipw", "uniform", test="normal")
    assert tests.covariance is not None
    np.testing.assert_allclose(tests.covariance, found.covariance, rtol=1e-9)
    np.testing.assert_allclose(tests.conf_int_simultaneous(), found.conf_int_simultaneous(), rtol=1e-6)
    np.testing.assert_allclose(tests.pvalue_simultaneous, found.pvalues_simultaneous(), rtol=1e-6)
    np.testing.assert_allclose(tests.adjust("bh"), found.adjust("bh"), rtol=1e-9)
    with pytest.raises(ParameterError, match="'holm' or 'bh'"):
        tests.adjust("sidak")


# Lifts


def test_a_lift_is_the_ratio_with_the_delta_method() -> None:
    rows = frame(6, binary=True, rounds=2_000)
    log = log_of(rows)
    found = ai.Contrasts(log, control="a", treatments=["b"]).fit("aipw", "uniform", lift=True)
    pair = rows[(rows["p_b"] > 0) & (rows["p_a"] > 0)]
    assert len(pair) == len(rows)
    means = ai.ArmMeans(log, ["b", "a"]).fit("aipw", "uniform")
    assert means.covariance is not None
    ratio = means.estimate[0] / means.estimate[1]
    slope = np.array([1.0 / means.estimate[0], -1.0 / means.estimate[1]])
    error = math.sqrt(slope @ means.covariance @ slope)
    df = float(np.min(means.reference.df))  # type: ignore[attr-defined]
    half = stats.t.ppf(0.975, df) * error
    assert found.terms == ("b / a - 1",)
    assert found.estimate[0] == pytest.approx(ratio - 1.0, rel=1e-12)
    assert found.std_error[0] == pytest.approx(ratio * error, rel=1e-12)
    expected = [ratio * math.exp(-half) - 1.0, ratio * math.exp(half) - 1.0]
    np.testing.assert_allclose(found.conf_int().iloc[0], expected, rtol=1e-9)
    p = 2.0 * stats.t.sf(abs(math.log(ratio)) / error, df)
    assert found.pvalues.iloc[0] == pytest.approx(p, rel=1e-9)
    at_limit = ai.Contrasts(log, control="a", treatments=["b"]).fit(
        "aipw", "uniform", lift=True, null=expected[0]
    )
    assert at_limit.pvalues.iloc[0] == pytest.approx(0.05, rel=1e-6)


def test_lifts_do_not_depend_on_the_size_of_rewards() -> None:
    rows = frame(7)
    scaled = rows.assign(y=rows["y"] * 1e6)
    one, other = (ai.Contrasts(log_of(given), control="a").fit(lift=True) for given in (rows, scaled))
    np.testing.assert_allclose(other.conf_int(), one.conf_int(), rtol=1e-9)


def test_where_a_mean_is_negative_the_interval_is_fieller_s() -> None:
    rows = frame(8)
    rows["y"] -= 3.0 + 5.0 * (rows["arm"] == "a")
    log = log_of(rows)
    found = ai.Contrasts(log, control="a", treatments=["b"]).fit("aipw", "uniform", lift=True)
    means = ai.ArmMeans(log, ["b", "a"]).fit("aipw", "uniform")
    (top, bottom), spread = means.estimate, means.covariance
    assert spread is not None
    df = float(np.min(means.reference.df))  # type: ignore[attr-defined]
    g = stats.t.ppf(0.975, df) ** 2
    a, b, c = (
        bottom**2 - g * spread[1, 1],
        top * bottom - g * spread[0, 1],
        top**2 - g * spread[0, 0],
    )
    roots = [(b + sign * math.sqrt(b * b - a * c)) / a - 1.0 for sign in (-1.0, 1.0)]
    np.testing.assert_allclose(found.conf_int().iloc[0], sorted(roots), rtol=1e-9)


def reasons(found: Any) -> list[Said]:
    """Why there are no lifts, in the order of the notes."""
    none = [note for note in found.notes if isinstance(note, Said) and note.claim is claims.NO_LIFT]
    return [note.values["reason"] for note in none]


def test_few_events_and_a_control_near_zero_have_no_lift() -> None:
    rows = frame(9, binary=True)
    seldom = rows.assign(y=np.where((rows["arm"] == "b") & (np.arange(len(rows)) % 7 > 0), 0.0, rows["y"]))
    found = ai.Contrasts(log_of(seldom), control="a").fit(lift=True)
    assert np.isnan(found.estimate[0])
    assert np.isfinite(found.estimate[1:]).all()
    assert [one.claim for one in reasons(found)] == [claims.FEW_OUTCOMES]
    assert says(found.notes, claims.NO_LIFT, term="b / a - 1")
    assert math.isnan(found.conf_int_simultaneous()["low"].iloc[0])
    near = frame(10)
    near["y"] -= 2.0
    none = ai.Contrasts(log_of(near), control="a").fit(lift=True)
    assert np.isnan(none.estimate).all()
    assert [(one.claim, one.values["fewest"]) for one in reasons(none)] == [(claims.NEAR_ZERO, 3.0)] * 3
    with pytest.raises(InvalidForLog, match="a lift by batched"):
        ai.Contrasts(log_of(rows[rows["batch"] >= 2]), control="a").fit("batched", lift=True)


@pytest.mark.parametrize(
    ("made", "fitted", "word"),
    [
        ({"control": "z"}, {}, "z"),
        ({"control": "a", "treatments": ["a", "b"]}, {}, "the control 'a' is among the treatments"),
        ({"control": "a", "treatments": ["b", "b"]}, {}, "b"),
        ({"control": "a"}, {"null": math.nan}, "null must be a finite number"),
        ({"control": "a"}, {"lift": "yes"}, "lift must be"),
        ({"control": "a"}, {"lift": True, "estimand": "received"}, "refers to assigned arms: omit estimand="),
        ({"control": "a"}, {"keep_scores": True}, "keep_scores is not supported here: use"),
    ],
)
def test_bad_input(made: dict[str, Any], fitted: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        ai.Contrasts(log_of(frame()), **made).fit(**fitted)


@pytest.mark.slow
def test_intervals_hold_together() -> None:
    """Five equal arms under batched Thompson sampling; binomial error over 1,000 logs."""
    arms = ai.environments.NormalArms(np.zeros(5))
    design = ai.designs.Thompson(prior="normal", floor=0.05, batch_size=50)
    held = computed = 0
    for number, log in enumerate(design.logs(arms, 500, 1_000, np.random.SeedSequence(4))):
        found = ai.Contrasts(log, control=0).fit()
        # The smallest adjusted p-value lies between the plain one and Bonferroni's, or a little above: all
        # terms have the fewest degrees of freedom. Far from .05 it need not be integrated.
        least, most = found.pvalues.min(), 4.4 * found.pvalues.min()
        if number < 20 or least <= 0.05 < most:
            together = found.pvalues_simultaneous().min()
            assert least <= together <= most
            least, computed = together, computed + 1
        held += bool(least > 0.05)
    assert 20 < computed < 300
    assert held / 1_000 > 0.94 - 3.7 * math.sqrt(0.05 * 0.95 / 1_000)
    assert held / 1_000 < 0.985


def test_ratio_metrics_against_a_control() -> None:
    """Each row the contrast of its pair; the joint covariance from what rounds add; lifts."""
    rows = frame(5, rounds=800)
    orders = np.random.default_rng(6).poisson(2.0, size=800) + (rows["arm"] == "b").to_numpy()
    log = log_of(rows)
    result = ai.Contrasts(log, control="a", treatments=["b", "c"], denominator=orders).fit()
    assert [one.kind for one in result.estimands] == ["ratio-contrast"] * 2
    parts = []
    for place, arm in enumerate(("b", "c")):
        pair = ai.Contrast(log, treatment=arm, control="a", denominator=orders).fit(keep_scores=True)
        assert result.estimate[place] == pair.estimate[0]
        assert result.std_error[place] == pair.std_error[0]
        assert pair.scores is not None
        parts.append(pair.scores["influence"][:, 0])
    assert result.covariance is not None
    np.testing.assert_allclose(result.covariance, np.array(parts) @ np.array(parts).T, rtol=1e-9)
    lifts = ai.Contrasts(log, control="a", treatments=["b", "c"], denominator=orders).fit(lift=True)
    assert [one.kind for one in lifts.estimands] == ["ratio-lift"] * 2
    ones = ai.Contrasts(log, control="a", denominator=np.ones(800)).fit(lift=True)
    plain = ai.Contrasts(log, control="a").fit(lift=True)
    np.testing.assert_allclose(ones.conf_int(), plain.conf_int(), rtol=1e-10)


def test_the_lift_of_a_ratio_metric() -> None:
    """Of two arms with even shares and sample means: R1 / R0 - 1, error by the delta method for each arm."""
    rng = np.random.default_rng(7)
    arm, orders = rng.integers(2, size=600), rng.poisson(2.0, size=600) + 1.0
    reward = orders * rng.gamma(4.0, 1.0 + 0.2 * arm)
    log = ai.AdaptiveLog(
        pd.DataFrame({"arm": arm, "y": reward, "p_0": 0.5, "p_1": 0.5}),
        action="arm",
        reward="y",
        propensities="p_{arm}",
    )
    found = ai.Contrasts(log, control=0, denominator=orders).fit("sample-mean", lift=True)
    relative, ratios = 0.0, []
    for k in (0, 1):
        y, z = reward[arm == k], orders[arm == k]
        ratio = y.mean() / z.mean()
        ratios.append(ratio)
        relative += (np.std(y - ratio * z, ddof=1) / math.sqrt(len(y)) / z.mean() / ratio) ** 2
    assert found.estimate[0] == pytest.approx(ratios[1] / ratios[0] - 1.0, rel=1e-10)
    assert found.std_error[0] == pytest.approx(ratios[1] / ratios[0] * math.sqrt(relative), rel=1e-8)
