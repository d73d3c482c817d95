"""Sequences from sums: a slow version from rows, their error under chosen stopping, and what is refused."""

import math

import numpy as np
import pandas as pd
import pytest
from claims_said import says
from scipy.optimize import brentq
from scipy.special import betaln, lambertw

import adaptinf as ai
from adaptinf.claims import sequences as claims
from adaptinf.claims.data.availability import LEFT_OUT
from adaptinf.claims.logs.rows import NEEDS_ROWS
from adaptinf.claims.rare_outcomes import SHAPE_UNKNOWN
from adaptinf.errors import InvalidForLog, ParameterError

ALPHA, T_OPT, START = 0.05, 1000, 100


def _log(seed: int, horizon: int = 1200, *, binary: bool = True) -> ai.AdaptiveLog:
    """Thompson-like shares by batch from plain NumPy; the arms' rewards are 0/1, or normal around 50."""
    rng = np.random.default_rng(seed)
    size, share, rows = 100, np.full(3, 1.0 / 3.0), []
    for batch in range(horizon // size):
        arm = rng.choice(3, size=size, p=share)
        mean = np.array([0.3, 0.35, 0.5])[arm]
        reward = rng.binomial(1, mean) if binary else rng.normal(50.0 + mean, 2.0)
        rows.append(pd.DataFrame({"arm": arm, "y": reward, "batch": batch}).assign(**_columns(share)))
        share = np.clip(rng.dirichlet(np.array([2.0, 2.0, 3.0])), 0.1, None)
        share /= share.sum()
    frame = pd.concat(rows, ignore_index=True)
    return ai.AdaptiveLog(
        frame,
        action="arm",
        reward="y",
        batch="batch",
        propensities="p{arm}",
        arms=[0, 1, 2],
        reward_range=(0, 1) if binary else None,
    )


def _columns(share):
    return {f"p{arm}": value for arm, value in enumerate(share)}


def _scores(log, code, estimator, upto, bounded):
    """Scores of an arm by the definitions, row by row, of the batches before `upto`."""
    frame = log.frame
    action, reward = log.arrays.action, log.arrays.reward
    batch = frame["batch"].to_numpy()
    propensity = log.arrays.propensities[:, code]
    found = []
    for t in np.flatnonzero(batch < upto):
        chosen = action[t] == code
        if estimator == "ipw":
            prediction = 0.5 if bounded else 0.0
        elif batch[t] == 0:
            others = (batch == 0) & (np.arange(len(batch)) != t)
            prediction = reward[others].mean()
        else:
            earlier = (batch < batch[t]) & (action == code)
            prediction = reward[earlier].mean()
        found.append(prediction + chosen * (reward[t] - prediction) / propensity[t])
    return np.array(found)


def _mixture_ends(looks, lowest, highest):
    """Running intersection of the asymptotic sequence over (count, mean, variance, rewards) after batches."""
    solution = -float(np.real(lambertw(-(ALPHA**2) / math.e, -1)))
    low, high, scale = lowest, highest, None
    for count, mean, variance, rewards in looks:
        if rewards < START or variance == 0.0:
            continue
        scale = variance * T_OPT / (solution - 1.0) if scale is None else scale
        total = count * variance + scale
        width = math.sqrt(total * (math.log(total / scale) - 2.0 * math.log(ALPHA))) / count
        low, high = max(low, mean - width), min(high, mean + width)
    return low, high


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("estimator", ["ipw", "aipw"])
@pytest.mark.parametrize("seed", [0, 1])
def test_scores_after_batches_as_row_by_row(seed, estimator, binary):
    log = _log(seed, binary=binary)
    sums = ai.Sums.of_log(log)
    result = ai.ConfidenceSequence(sums, "contrast", treatment=2, control=0).fit(estimator=estimator)
    looks = []
    for upto in range(1, 13):
        score = _scores(log, 2, estimator, upto, binary) - _scores(log, 0, estimator, upto, binary)
        batch = log.frame["batch"].to_numpy() < upto
        rewards = min(np.sum(log.arrays.action[batch] == code) for code in (0, 2))
        looks.append((len(score), score.mean(), score.var(), rewards))
    ends = (-1.0, 1.0) if binary else (-math.inf, math.inf)
    np.testing.assert_allclose(result.conf_int().to_numpy()[0], _mixture_ends(looks, *ends), rtol=1e-9)
    np.testing.assert_allclose(result.estimate[0], looks[-1][1], rtol=1e-9)
    np.testing.assert_allclose(result.std_error[0], score.std(ddof=1) / math.sqrt(len(score)), rtol=1e-9)
    p = result.pvalues.iloc[0]
    if p < 0.5:  # its interval has an end at the null
        assert min(abs(result.conf_int(p).to_numpy()[0])) < 1e-9


@pytest.mark.parametrize("binary", [True, False])
def test_sample_means_after_batches_as_row_by_row(binary):
    log = _log(3, binary=binary)
    result = ai.ConfidenceSequence(ai.Sums.of_log(log)).fit()
    ends = (0.0, 1.0) if binary else (-math.inf, math.inf)
    batch = log.frame["batch"].to_numpy()
    for code in range(3):
        looks = []
        for upto in range(1, 13):
            own = log.arrays.reward[(log.arrays.action == code) & (batch < upto)]
            looks.append((len(own), own.mean(), own.var(), len(own)))
        found = result.conf_int().to_numpy()[code]
        np.testing.assert_allclose(found, _mixture_ends(looks, *ends), rtol=1e-9)


def test_beta_binomial_after_batches_from_its_definition():
    log = _log(4)
    result = ai.ConfidenceSequence(ai.Sums.of_log(log)).fit("beta-binomial")
    solution = -float(np.real(lambertw(-(ALPHA**2) / math.e, -1)))
    size, batch = T_OPT / (solution - 1.0) - 1.0, log.frame["batch"].to_numpy()
    for code in range(3):
        low, high = 0.0, 1.0
        for upto in range(1, 13):
            own = log.arrays.reward[(log.arrays.action == code) & (batch < upto)]
            wins, losses = own.sum(), len(own) - own.sum()
            for won, lost, side in ((wins, losses, 0), (losses, wins, 1)):
                mean, count = won / len(own), len(own)

                def wealth(m, won=won, lost=lost):
                    prior = betaln(size * m + won, size * (1 - m) + lost) - betaln(size * m, size * (1 - m))
                    return prior - won * math.log(m) - lost * math.log(1 - m) + math.log(ALPHA)

                assert count > 0
                end = brentq(wealth, 1e-9, mean, xtol=1e-13)
                low, high = (max(low, end), high) if side == 0 else (low, min(high, 1.0 - end))
        np.testing.assert_allclose(result.conf_int().to_numpy()[code], (low, high), atol=1e-9)


def test_one_row_a_batch_is_the_sequence_of_rows():
    """With a batch a round the ends of batches are all rounds: sums and rows have one sequence."""
    rng = np.random.default_rng(5)
    frame = pd.DataFrame(
        {"arm": rng.integers(0, 2, 300), "y": rng.binomial(1, 0.4, 300), "batch": range(300)}
    )
    frame["p"] = 0.5
    log = ai.AdaptiveLog(
        frame.assign(q=0.5),
        action="arm",
        reward="y",
        batch="batch",
        propensities={0: "p", 1: "q"},
        arms=[0, 1],
        reward_range=(0, 1),
    )
    sums = ai.Sums.of_log(log)
    for method in ("beta-binomial", "normal-mixture", "asymptotic"):
        rows, batches = (ai.ConfidenceSequence(one).fit(method, start=20) if method == "asymptotic"
                         else ai.ConfidenceSequence(one).fit(method) for one in (log, sums))  # fmt: skip
        np.testing.assert_allclose(batches.conf_int(), rows.conf_int(), atol=1e-9)
        np.testing.assert_allclose(batches.pvalues, rows.pvalues, rtol=1e-6)


def test_table_shows_the_ends_of_batches_and_what_was_known_between():
    sums = ai.Sums.of_log(_log(6))
    result = ai.ConfidenceSequence(sums, "contrast", treatment=2, control=0).fit()
    assert result.table()["t"].tolist() == list(range(100, 1300, 100))
    between = result.table(rounds=[250, 200])
    assert between["t"].tolist() == [200, 250]
    assert between.drop(columns="t").nunique().tolist() == [1, 1, 1, 1]
    with pytest.raises(
        ParameterError, match="nothing is known before the first batch is complete, after round 100"
    ):
        result.table(rounds=[99])
    assert np.array_equal(result.table()[["low", "high"]].to_numpy()[-1], result.conf_int().to_numpy()[0])


def test_merging_keeps_the_sequence():
    log = _log(7)
    whole = ai.ConfidenceSequence(ai.Sums.of_log(log)).fit().conf_int()
    sums = ai.Sums.of_log(log)
    parts = [
        ai.Sums(
            sums.frame[sums.frame["batch"].isin(kept)],
            batch="batch",
            arm="arm",
            n="n",
            sum="sum",
            sum_squares="sum",
            propensity="propensity",
            reward_range=(0, 1),
        )
        for kept in (range(0, 12, 2), range(1, 12, 2))
    ]
    np.testing.assert_allclose(ai.ConfidenceSequence(parts[1] + parts[0]).fit().conf_int(), whole, rtol=1e-9)


def test_refusals_name_what_runs():
    sums = ai.Sums.of_log(_log(8))
    with pytest.raises(InvalidForLog, match=rf"betting sequence .* {NEEDS_ROWS()}.*method='asymptotic'"):
        ai.ConfidenceSequence(sums).fit("betting")
    with pytest.raises(InvalidForLog) as caught:
        ai.ConfidenceSequence(sums).fit("normal-mixture", estimator="ipw")
    assert says(caught.value.reason, claims.BOUNDS_NOT_IN_SUMS)
    with pytest.raises(InvalidForLog, match="policy-value"):
        ai.ConfidenceSequence(sums, "policy-value", policy=0)
    with pytest.raises(ParameterError, match="floor bounds the scores of rounds"):
        ai.ConfidenceSequence(sums).fit(estimator="ipw", floor=0.05)
    numbers = ai.Sums.of_log(_log(8, binary=False))
    with pytest.raises(InvalidForLog) as caught:
        ai.ConfidenceSequence(numbers).fit("beta-binomial")
    assert says(caught.value.reason, claims.BOUNDS_NEEDED)
    shares = sums.frame[["batch", "arm", "n", "sum"]]
    table = ai.Sums(
        shares, batch="batch", arm="arm", n="n", sum="sum", sum_squares="sum", reward_range=(0, 1)
    )
    with pytest.raises(InvalidForLog) as caught:
        ai.ConfidenceSequence(table).fit(estimator="aipw")
    assert says(caught.value.reason, claims.ESTIMATES)
    assert ai.ConfidenceSequence(table).fit("beta-binomial").conf_int().notna().all(axis=None)
    late = shares.assign(p=1 / 3)
    late = late[(late["arm"] != 0) | (late["batch"] > 2)]
    late.loc[late["batch"] <= 2, "p"] = 0.5
    table = ai.Sums(late, batch="batch", arm="arm", n="n", sum="sum", sum_squares="sum", propensity="p")
    assert (
        LEFT_OUT(arm="0", left="160", rounds=1060) in ai.ConfidenceSequence(table).fit(estimator="ipw").notes
    )


def test_values_between_the_ends_are_no_counts():
    frame = pd.DataFrame(
        {"b": [1, 1], "arm": ["x", "y"], "n": [100, 100], "s": [40.0, 50.0], "q": [30.0, 50.0]}
    )
    table = ai.Sums(
        frame.assign(p=0.5),
        batch="b",
        arm="arm",
        n="n",
        sum="s",
        sum_squares="q",
        propensity="p",
        reward_range=(0, 1),
    )
    with pytest.raises(InvalidForLog) as caught:
        ai.ConfidenceSequence(table).fit("beta-binomial")
    assert says(caught.value.reason, claims.NOT_AT_ENDS, low=0, high=1)


def test_unknown_skewness_is_cautioned():
    frame = pd.DataFrame(
        {"b": [1, 1], "arm": ["x", "y"], "n": [400, 400], "s": [40.0, 50.0], "q": [30.0, 50.0]}
    )
    table = ai.Sums(
        frame.assign(p=0.5), batch="b", arm="arm", n="n", sum="s", sum_squares="q", propensity="p"
    )
    assert says(ai.ConfidenceSequence(table).fit().cautions, SHAPE_UNKNOWN)


def test_recommend_offers_them_where_the_data_chose_the_rounds():
    sums = ai.Sums.of_log(_log(9))
    table = ai.recommend(sums, stopping="data-chosen")
    assert table.best.verdict.label == "anytime"
    assert table.fit().model == "ConfidenceSequence"
    valid = table.frame[table.frame["label"] != "not valid"]
    assert len(valid) == 5
    rows = ai.recommend(_log(9), stopping="data-chosen").frame.set_index("method")["length"]
    shown = valid.set_index("method")["length"]
    ratio = shown / rows[shown.index]
    np.testing.assert_allclose(ratio, ratio.iloc[0], rtol=1e-9)


@pytest.mark.parametrize("target", ["arm-means", "contrast"])
def test_lengths_to_expect_are_those_of_rows(target):
    """Of every method that both allow; relative to the first, which is the same one."""
    log = _log(11)
    pair = {} if target == "arm-means" else {"treatment": 2, "control": 0}
    sums, rows = (
        ai.recommend(one, target, **pair).frame.query("label != 'not valid'").set_index("method")["length"]
        for one in (ai.Sums.of_log(log), log)
    )
    both = sums.index.intersection(rows.index)
    assert sums.notna().all()
    assert len(both) >= (8 if target == "arm-means" else 10)
    np.testing.assert_allclose(sums[both] / sums[both[0]], rows[both] / rows[both[0]], rtol=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize(("method", "estimator"), [("asymptotic", "aipw"), ("asymptotic", "sample-mean"),
                                                   ("beta-binomial", "sample-mean")])  # fmt: skip
def test_ever_missing_is_rare_under_greedy_batches(method, estimator):
    """Batches of 50 go to the leader with probability .8: at most a share alpha of 400 runs ever misses.

    A true rate of .05 exceeds 40 of 400 with probability below 1e-4.
    """
    rng, missed = np.random.default_rng(10), 0
    for _ in range(400):
        cells, wins, pulls = [], np.ones(2), np.full(2, 2.0)
        for batch in range(20):
            share = np.where(wins / pulls == (wins / pulls).max(), 0.8, 0.2)
            share = share / share.sum()
            n = rng.multinomial(50, share)
            won = rng.binomial(n, [0.3, 0.3])
            wins, pulls = wins + won, pulls + n
            cells += [(batch, arm, n[arm], won[arm], share[arm]) for arm in (0, 1)]
        frame = pd.DataFrame(cells, columns=["b", "arm", "n", "s", "p"])
        sums = ai.Sums(
            frame, batch="b", arm="arm", n="n", sum="s", sum_squares="s", propensity="p", reward_range=(0, 1)
        )
        found = ai.ConfidenceSequence(sums, "contrast", treatment=1, control=0).fit(
            method, estimator=estimator
        )
        missed += int(found.pvalues.iloc[0] <= ALPHA)
    assert missed <= 40
