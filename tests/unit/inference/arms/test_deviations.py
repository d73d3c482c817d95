"""Arm means and contrasts where rewards are missing or late, or other arms are received than assigned."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording
from scipy import stats

from adaptinf.claims.arms import arm_fits
from adaptinf.claims.data import missing_rewards, received_arms
from adaptinf.claims.logs.readings import BY_ASSIGNMENT
from adaptinf.claims.units import INCOMPLETE, LATE_MEAN
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.recommend import recommend
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options

OBSERVED = np.array([0.9, 0.5])


def frame_of(seed: int, rounds: int = 400, gap: float = 0.0, by_group: bool = False) -> pd.DataFrame:
    """Epsilon-greedy of .2 on the observed rewards; rewards are missing by arm, or by arm and group."""
    rng = np.random.default_rng(seed)
    sums, counts = np.zeros(2), np.zeros(2)
    rows = []
    for _ in range(rounds):
        means = np.where(counts > 0, sums / np.maximum(counts, 1), 0.0)
        best = int(means[1] > means[0])
        e1 = 0.9 if best else 0.1
        arm, group = int(rng.random() < e1), int(rng.integers(0, 2))
        y = rng.normal(5.0 + gap * arm + group * by_group, 1.0)
        share = np.array([[0.9, 0.4], [0.5, 0.8]])[arm, group] if by_group else OBSERVED[arm]
        seen = rng.random() < share
        if seen:
            sums[arm] += y
            counts[arm] += 1
        rows.append(("ab"[arm], y if seen else np.nan, 1 - e1, e1, "gh"[group], share))
    return pd.DataFrame(rows, columns=["arm", "y", "propensity_a", "propensity_b", "group", "share"])


def log_of(frame: pd.DataFrame, **options: Any) -> AdaptiveLog:
    return AdaptiveLog(
        frame, **nested_options({"action": "arm", "reward": "y", "missing": "drop", **options})
    )


def literal(frame: pd.DataFrame, weights: str, by_group: bool = False, known: bool = False) -> dict[str, Any]:
    """Weighted means of m + 1{A = k} O (y - m) / (e pi), every sum written out; and their influence."""
    arms, y = frame["arm"].tolist(), frame["y"].to_numpy()
    group = frame["group"].tolist() if by_group else ["all"] * len(frame)
    scores, h = np.zeros((len(frame), 2)), np.zeros((len(frame), 2))
    for t in range(len(frame)):
        for k, arm in enumerate("ab"):
            mine = [s for s in range(t) if arms[s] == arm]
            cell = [s for s in mine if group[s] == group[t]]
            cell = cell if any(not math.isnan(y[s]) for s in cell) else mine
            seen = [y[s] for s in cell if not math.isnan(y[s])]
            earlier = [y[s] for s in range(t) if not math.isnan(y[s])]
            m = float(np.mean(seen)) if seen else float(np.mean(earlier)) if earlier else 0.0
            pi = len(seen) / len(cell) if seen else 1.0
            pi = float(frame["share"][t]) if known else pi
            e = float(frame[f"propensity_{arm}"][t])
            drawn = arms[t] == arm and not math.isnan(y[t])
            scores[t, k] = m + ((y[t] - m) / (e * pi) if drawn else 0.0)
            e1, e0 = frame["propensity_b"][t], frame["propensity_a"][t]
            kind = {"uniform": 1.0, "sqrt": math.sqrt(e), "combined": (1 / e1 + 1 / e0) ** -0.5}
            ready = bool(earlier) if known else any(not math.isnan(y[s]) for s in mine)
            h[t, k] = kind[weights] if ready else 0.0
    if weights == "combined":
        h = np.repeat(h.min(axis=1)[:, None], 2, axis=1)
    mean = (h * scores).sum(axis=0) / h.sum(axis=0)
    return {"mean": mean, "influence": h * (scores - mean) / h.sum(axis=0)}


@pytest.mark.parametrize("weights", ["uniform", "sqrt"])
@pytest.mark.parametrize("by_group", [False, True])
def test_means_by_the_formula(weights: str, by_group: bool) -> None:
    frame = frame_of(1, 150, by_group=by_group)
    log = log_of(frame, context=["group"] if by_group else [], context_free=True)
    found = ArmMeans(log).fit(estimator="aipw", weights=weights, keep_scores=True)
    wanted = literal(frame, weights, by_group)
    assert found.estimate == pytest.approx(wanted["mean"], abs=1e-10)
    assert found.std_error == pytest.approx(np.sqrt((wanted["influence"] ** 2).sum(axis=0)), abs=1e-10)
    assert found.scores is not None
    assert found.scores["influence"] == pytest.approx(wanted["influence"], abs=1e-10)


def test_contrast_by_the_formula() -> None:
    frame = frame_of(2, 150)
    found = Contrast(log_of(frame), treatment="b", control="a").fit()
    wanted = literal(frame, "combined")
    difference = wanted["influence"][:, 1] - wanted["influence"][:, 0]
    assert (found.estimator, found.weights) == ("aipw", "combined")
    assert found.estimate[0] == pytest.approx(wanted["mean"][1] - wanted["mean"][0], abs=1e-10)
    assert found.std_error[0] == pytest.approx(math.sqrt(difference @ difference), abs=1e-10)


def test_known_probabilities_of_observation_by_the_formula() -> None:
    frame = frame_of(3, 150, by_group=True)
    found = ArmMeans(log_of(frame, missing=None, observation="share", context_free=True)).fit(weights="sqrt")
    wanted = literal(frame, "sqrt", known=True)
    assert found.estimate == pytest.approx(wanted["mean"], abs=1e-10)
    assert found.std_error == pytest.approx(np.sqrt((wanted["influence"] ** 2).sum(axis=0)), abs=1e-10)


def test_nothing_changes_but_the_estimate_when_the_origin_moves() -> None:
    frame = frame_of(4, 200)
    before = ArmMeans(log_of(frame)).fit()
    after = ArmMeans(log_of(frame.assign(y=frame["y"] + 1e6))).fit()
    assert after.estimate - 1e6 == pytest.approx(before.estimate, abs=1e-8)
    assert after.std_error == pytest.approx(before.std_error, rel=1e-8)


def test_shares_missing_are_told_and_tested() -> None:
    frame = frame_of(5, 600)
    found = ArmMeans(log_of(frame)).fit()
    missing = frame["y"].isna().groupby(frame["arm"]).agg(["sum", "count"])
    told = ", ".join(f"{arm} {a / n:.1%} ({a} of {n})" for arm, (a, n) in missing.iterrows())
    assert says(found.notes, missing_rewards.SHARES, shares=told)
    table = np.array([missing["sum"], missing["count"] - missing["sum"]])
    wanted = stats.chi2_contingency(table, correction=False)
    assert says(found.cautions, missing_rewards.SHARES_DIFFER, df=1)
    assert found.cautions[0].values["statistic"] == pytest.approx(wanted.statistic, rel=1e-9)


def test_no_caution_where_arms_lose_as_many() -> None:
    rewards = np.tile([1.0, 2.0, 3.0, np.nan, np.nan, 1.5, 0.5, 2.5], 50)
    frame = pd.DataFrame({"arm": ["a", "b"] * 200, "y": rewards})
    frame = frame.assign(propensity_a=0.5, propensity_b=0.5)
    assert not ArmMeans(log_of(frame)).fit().cautions


def test_arm_without_an_observed_reward_has_no_estimate() -> None:
    frame = frame_of(6, 60)
    frame.loc[frame["arm"] == "b", "y"] = np.nan
    found = ArmMeans(log_of(frame)).fit(estimator="aipw")
    assert np.isnan(found.estimate[1])
    assert np.isfinite(found.estimate[0])


@pytest.mark.parametrize("estimator", ["sample-mean", "ipw", "alee"])
def test_other_estimators_refuse(estimator: str) -> None:
    log = log_of(frame_of(7, 100))
    with pytest.raises(InvalidForLog, match=wording(arm_fits.INCOMPLETE) + ".*aipw with sqrt weights"):
        ArmMeans(log).fit(estimator=estimator)


def test_outcome_models_that_would_not_settle_are_refused() -> None:
    log = log_of(frame_of(7, 100).assign(batch=np.arange(100) // 20), context=["group"], batch="batch")
    with pytest.raises(InvalidForLog, match="with means that are updated together with it"):
        ArmMeans(log).fit(outcome="batch-mean")
    with pytest.raises(InvalidForLog, match="with means that are updated together with it"):
        ArmMeans(log).fit(outcome=np.zeros((100, 2)))


def test_repeated_units_are_refused() -> None:
    frame = frame_of(8, 100).assign(person=np.arange(100) // 5)
    with pytest.raises(InvalidForLog, match=wording(INCOMPLETE)):
        ArmMeans(log_of(frame, unit="person")).fit()


def test_late_rewards_of_repeated_units_have_errors_by_unit() -> None:
    frame = frame_of(8, 100).assign(person=np.arange(100) // 5, known=np.arange(1, 101) + 7)
    frame["y"] = frame["y"].fillna(5.0)
    log = log_of(frame, unit="person", missing=None, outcome_round="known")
    found = ArmMeans(log).fit(estimator="aipw", keep_scores=True)
    assert says(found.notes, LATE_MEAN)
    assert found.scores is not None
    own = found.scores["influence"]
    by_unit = own.reshape(20, 5, 2).sum(axis=1)
    assert found.std_error == pytest.approx(np.sqrt(20 / 19 * (by_unit**2).sum(axis=0)), rel=1e-6)
    with pytest.raises(InvalidForLog, match=wording(INCOMPLETE)):
        ArmMeans(log_of(frame_of(8, 100).assign(person=np.arange(100) // 5), unit="person")).fit("aipw")


def test_recommendation_names_what_serves() -> None:
    table = recommend(log_of(frame_of(9, 100)))
    labels = {method.verdict.name: method.verdict.valid for method in table.methods}
    assert table.fit().estimator == "aipw"
    assert labels["aipw with sqrt weights"]
    assert not labels["sample-mean"]
    assert not labels["alee"]


# Bounds


@pytest.mark.parametrize("estimator", [None, "ipw", "sample-mean", "alee"])
def test_both_ends_are_fits_of_filled_logs(estimator: str | None) -> None:
    frame = frame_of(10, 200)
    span = (0.0, 10.0)
    log = log_of(frame, missing="worst", reward_range=span)
    found = ArmMeans(log).fit(estimator=estimator)
    low, high = (ArmMeans(log.filled(end)).fit(estimator=found.estimator) for end in span)
    assert found.estimate == pytest.approx(low.estimate)
    assert found.details["highest"] == pytest.approx(high.estimate)
    assert found.conf_int()["low"].to_numpy() == pytest.approx(low.conf_int()["low"].to_numpy())
    assert found.conf_int()["high"].to_numpy() == pytest.approx(high.conf_int()["high"].to_numpy())
    best = ArmMeans(log_of(frame, missing="best", reward_range=span)).fit(estimator=estimator)
    assert best.estimate == pytest.approx(high.estimate)
    assert best.conf_int().equals(found.conf_int())


def test_contrast_has_the_control_at_the_other_end() -> None:
    frame = frame_of(11, 200)
    log = log_of(frame, missing="worst", reward_range=(0.0, 10.0))
    found = Contrast(log, treatment="b", control="a").fit("ipw", "uniform")
    worst = frame["y"].fillna(frame["arm"].map({"b": 0.0, "a": 10.0}))
    wanted = Contrast(log_of(frame.assign(y=worst)), treatment="b", control="a").fit("ipw", "uniform")
    assert found.estimate == pytest.approx(wanted.estimate)
    assert found.details["lowest"][0] < found.details["highest"][0]


def test_pvalues_are_those_of_the_nearer_end_and_agree_with_the_interval() -> None:
    log = log_of(frame_of(12, 300), missing="worst", reward_range=(0.0, 10.0))
    found = ArmMeans(log).fit()
    low, high = found.conf_int(0.1).to_numpy()[0]
    for null in np.linspace(low - 1, high + 1, 41):
        p = math.exp(found.reference.log_pvalues(float(null))[0])
        assert (p <= 0.1) == (not low < null < high), null
    middle = float(found.estimate[0] + found.details["highest"][0]) / 2
    assert found.reference.log_pvalues(middle)[0] == 0.0


# Received


def compliance(seed: int, follow: float, rounds: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    e = np.where(np.arange(rounds) < rounds / 2, 0.5, 0.3)
    assigned, hidden = (rng.random(rounds) < e).astype(int), rng.normal(size=rounds)
    taken = np.where(rng.random(rounds) < follow, assigned, hidden > 0.0).astype(int)
    y = taken + hidden + rng.normal(size=rounds)
    columns = {"arm": np.array(["a", "b"])[assigned], "got": np.array(["a", "b"])[taken], "y": y}
    return pd.DataFrame({**columns, "propensity_a": 1 - e, "propensity_b": e})


def received(frame: pd.DataFrame) -> Contrast:
    log = AdaptiveLog(frame, action="got", assigned="arm", reward="y")
    return Contrast(log, treatment="b", control="a")


@pytest.mark.parametrize(("seed", "follow"), [(1, 0.7), (2, 0.1), (3, 0.02), (4, 1.0)])
def test_received_effect_inverts_the_test_of_rewards_less_shares(seed: int, follow: float) -> None:
    frame = compliance(seed, follow)
    model = received(frame)
    found = model.fit(estimand="received")
    share = frame.assign(y=(frame["got"] == "b") * 1.0)
    effects = [
        Contrast(AdaptiveLog(one, action="arm", reward="y"), treatment="b", control="a").fit(estimator="aipw")
        for one in (frame, share)
    ]
    assert found.estimate[0] == pytest.approx(effects[0].estimate[0] / effects[1].estimate[0])
    inside = found.reference.confidence_set(math.log(0.05))
    for ratio in [-1e4, -30.0, -2.0, 0.0, 0.5, 0.9, 1.0, 1.2, 3.0, 30.0, 1e4]:
        less = frame.assign(y=frame["y"] - ratio * share["y"])
        tested = Contrast(AdaptiveLog(less, action="arm", reward="y"), treatment="b", control="a")
        p = float(tested.fit(estimator="aipw").pvalues.iloc[0])
        within = any(low <= ratio <= high for low, high in inside)
        # degrees of freedom are the smaller ones of the two effects: those of one weight are the same
        assert within == (p > 0.05), (ratio, p, inside)
        assert math.exp(found.reference.log_pvalues(ratio)[0]) == pytest.approx(p, rel=1e-6)


def test_full_compliance_is_the_effect_of_assignment() -> None:
    frame = compliance(5, 1.0, 2_000)
    both = [received(frame).fit(estimand=name) for name in ("assigned", "received")]
    assert both[1].estimate[0] == pytest.approx(both[0].estimate[0], abs=0.01)
    assert both[1].conf_int().to_numpy() == pytest.approx(both[0].conf_int().to_numpy(), abs=0.01)


def test_sets_without_two_ends_are_cautioned() -> None:
    found = received(compliance(3, 0.02)).fit(estimand="received")
    assert np.isinf(found.conf_int().to_numpy()).any()
    ends = received_arms.TWO_RAYS, received_arms.NO_END
    assert any(says(found.cautions, one) for one in ends)


def test_analyses_are_by_assignment_and_say_so() -> None:
    frame = compliance(6, 0.5)
    found = received(frame).fit(estimator="sample-mean")
    means = frame.groupby("arm")["y"].mean()
    assert found.estimate[0] == pytest.approx(means["b"] - means["a"])
    count = int((frame["arm"] != frame["got"]).sum())
    assert says(found.explain().texts, BY_ASSIGNMENT, count=count, rounds=len(frame))


def test_received_is_refused_without_what_it_needs() -> None:
    frame = compliance(7, 0.5)
    plain = Contrast(AdaptiveLog(frame, action="arm", reward="y"), treatment="b", control="a")
    with pytest.raises(InvalidForLog, match="use assigned= together with action="):
        plain.fit(estimand="received")
    with pytest.raises(ParameterError, match="estimand must be"):
        plain.fit(estimand="taken")
    with pytest.raises(ParameterError, match="omit estimator"):
        received(frame).fit(estimand="received", estimator="alee")


# Late


def test_late_rewards_do_not_move_earlier_predictions() -> None:
    frame = frame_of(13, 200).assign(known=np.minimum(np.arange(1, 201) + 30, 230))
    frame["y"] = frame["y"].fillna(5.0)
    log = AdaptiveLog(frame, action="arm", reward="y", columns={"outcome_round": "known"})
    found = ArmMeans(log).fit(estimator="aipw", weights="uniform", keep_scores=True)
    assert found.scores is not None
    arms, y = frame["arm"].to_numpy(), frame["y"].to_numpy()
    for t in (0, 30, 31, 60, 199):
        for k, arm in enumerate("ab"):
            known = [s for s in range(t) if s + 31 <= t]
            mine = [y[s] for s in known if arms[s] == arm]
            m = np.mean(mine) if mine else np.mean([y[s] for s in known]) if known else 0.0
            e = frame[f"propensity_{arm}"][t]
            wanted = m + (y[t] - m) / e * (arms[t] == arm)
            assert found.scores["scores"][t, k] == pytest.approx(wanted, abs=1e-9), (t, arm)
            assert found.scores["weights"][t, k] == (1.0 if known else 0.0)
    frame["batch"] = np.arange(200) // 20
    batched = AdaptiveLog(frame, action="arm", reward="y", batch="batch", columns={"outcome_round": "known"})
    with pytest.raises(InvalidForLog, match="before they were known"):
        ArmMeans(batched).fit(outcome="batch-mean")


def test_rounds_of_an_incomplete_log_with_late_rewards() -> None:
    frame = frame_of(14, 120).assign(known=np.arange(1, 121) + 7)
    keep = np.arange(120) % 3 != 0
    found = ArmMeans(log_of(frame, outcome_round="known"), rounds=keep).fit(estimator="aipw")
    kept = frame[keep].assign(when=np.flatnonzero(keep) + 1)
    wanted = ArmMeans(log_of(kept, round="when", outcome_round="known")).fit(estimator="aipw")
    assert found.estimate == pytest.approx(wanted.estimate, abs=1e-12)
    assert found.std_error == pytest.approx(wanted.std_error, abs=1e-12)
