"""Diagnosis of a log: what it finds where something is wrong, what it refuses to say, and its tables."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from claims_said import says
from scipy import stats

from adaptinf import designs
from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities
from adaptinf.errors import ParameterError
from adaptinf.inference.diagnostics import log_checks
from adaptinf.inference.diagnostics.arm_checks import (
    Differences,
    batch_groups,
    common_drift,
    fitted_decay,
    homogeneity,
    low_rounds,
)
from adaptinf.inference.diagnostics.choice_checks import ChiSquare, calibration_bins, chi_square, count_test
from adaptinf.inference.diagnostics.diagnosis_results import (
    AGAINST,
    CAUTION,
    FINE,
    NO_EVIDENCE,
    NOT_APPLICABLE,
    Check,
    judged,
)
from adaptinf.inference.diagnostics.log_checks import diagnose
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms, FiniteContext, Tableau

ENV = BernoulliArms([0.4, 0.6])
GREEDY = designs.EpsilonGreedy(exploration=0.4)


@functools.cache
def gathered() -> AdaptiveLog:
    return GREEDY.run(ENV, 1500, rng=1)


def changed(log: AdaptiveLog, keep: np.ndarray | None = None, **columns: object) -> AdaptiveLog:
    """The log with other columns, or with some rows alone."""
    arrays = log.arrays
    named = {
        "action": arrays.action,
        "reward": arrays.reward,
        "propensity": arrays.propensity,
        "propensities": arrays.propensities,
        "batch": arrays.batch,
        **columns,
    }
    status = named.pop("status", None)
    if keep is not None:
        named = {name: None if value is None else value[keep] for name, value in named.items()}
    return AdaptiveLog.from_arrays(LogArrays(**named), arms=log.arms, propensity_status=status)


def with_propensities(log: AdaptiveLog, propensities: np.ndarray) -> AdaptiveLog:
    own = propensities[np.arange(log.n_rounds), log.arrays.action]
    return changed(log, propensity=own, propensities=propensities)


def verdicts(log: AdaptiveLog, name: str, **options: object) -> dict[str, str]:
    return {check.term: check.verdict for check in diagnose(log, **options).check(name)}


def test_a_log_in_order_raises_no_concern() -> None:
    found = diagnose(gathered())
    assert found.concerns == ()
    tested = [check for check in found.checks if not math.isnan(check.log_pvalue)]
    assert {check.verdict for check in tested} == {NO_EVIDENCE}
    assert {check.name for check in found.checks} == set(claims.QUESTIONS)


# --- something is wrong ---------------------------------------------------------------------------------


def test_propensities_that_are_too_even() -> None:
    """Shrunk towards a half, as a model that is regularised would have them."""
    wrong = with_propensities(gathered(), 0.5 * gathered().arrays.propensities + 0.25)
    assert verdicts(wrong, "propensity calibration") == dict.fromkeys(("0", "1", "all arms"), AGAINST)
    assert diagnose(wrong).check("sample ratio, anytime")[0].verdict == AGAINST


def test_propensities_that_are_wrong_only_in_the_bins() -> None:
    """Two kinds of rounds whose propensities are swapped: the counts agree, and the bins do not."""
    rng = np.random.default_rng(4)
    right = np.where(np.arange(1000) % 2 == 0, 0.25, 0.75)
    action = (rng.random(1000) < right).astype(np.int64)
    swapped = np.stack([right, 1.0 - right], axis=1)
    arrays = LogArrays(
        action=action,
        reward=rng.random(1000),
        propensity=swapped[np.arange(1000), action],
        propensities=swapped,
    )
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"))
    found = diagnose(log)
    assert found.check("sample ratio")[0].verdict == NO_EVIDENCE
    assert found.check("propensity calibration", "all arms")[0].verdict == AGAINST
    z = found.tables["calibration"].query("arm == 'b'")["z"].tolist()
    assert z[0] > 10
    assert z[1] < -10


def test_propensities_of_the_round_after() -> None:
    """Off by one: the propensities after the update, as a common slip logs them."""
    log = designs.EpsilonGreedy(exploration=0.2).run(BernoulliArms([0.5, 0.5]), 3000, rng=2)
    late = np.vstack([log.arrays.propensities[1:], log.arrays.propensities[-1:]])
    assert verdicts(with_propensities(log, late), "propensity calibration")["all arms"] == AGAINST


def test_lost_rounds() -> None:
    """A quarter of an arm's rounds is missing."""
    rng = np.random.default_rng(0)
    lost = (gathered().arrays.action == 1) & (rng.random(gathered().n_rounds) < 0.25)
    found = diagnose(changed(gathered(), keep=~lost))
    assert found.check("sample ratio")[0].verdict == AGAINST
    assert says(found.check("sample ratio")[0].claims, claims.LOST_ROUNDS)


def test_declared_allocation() -> None:
    log = designs.Uniform().run(ENV, 2000, rng=1)
    assert verdicts(log, "sample ratio", expected=[1, 1]) == {"all arms": NO_EVIDENCE}
    found = diagnose(log, expected=[0.6, 0.4])
    assert found.check("sample ratio")[0].verdict == AGAINST
    assert found.check("sample ratio, anytime")[0].verdict == AGAINST
    bare = changed(log, propensity=None, propensities=None)
    assert verdicts(bare, "sample ratio", expected=[1, 1]) == {"all arms": NO_EVIDENCE}
    assert verdicts(bare, "sample ratio") == {"all arms": NOT_APPLICABLE}


def drifting(rounds: int, low: float, high: float, **options: object) -> AdaptiveLog:
    """Arm 1's mean rises halfway; arm 0's does not."""
    rng = np.random.default_rng(3)
    means = np.where(np.arange(rounds) < rounds // 2, low, high)
    tableau = (rng.random((rounds, 2)) < np.stack([np.full(rounds, 0.5), means], axis=1)).astype(float)
    return designs.EpsilonGreedy(exploration=0.4, **options).run(Tableau(tableau), rounds, rng=5)


def test_planted_drift() -> None:
    log = drifting(1500, 0.3, 0.6)
    assert verdicts(log, "drift over time") == {"0": NO_EVIDENCE, "1": AGAINST}
    row = diagnose(log).check("drift over time", "1")[0]
    assert row.statistic > 4
    assert says(row.claims, claims.MEAN_CHANGED)


def test_planted_drift_by_batch() -> None:
    log = drifting(1500, 0.3, 0.7, batch_size=50)
    assert verdicts(log, "drift by batch") == {"0": NO_EVIDENCE, "1": AGAINST}


def test_sample_means_that_drift_misleads() -> None:
    """Propensity and mean rise together: the sample mean leans on the late rounds, AIPW does not."""
    rng = np.random.default_rng(8)
    late = np.arange(2000) >= 1000
    share = np.where(late, 0.8, 0.2)
    action = (rng.random(2000) < share).astype(np.int64)
    reward = (rng.random(2000) < np.where(late, 0.7, 0.3)).astype(float)
    e = np.stack([1.0 - share, share], axis=1)
    arrays = LogArrays(action=action, reward=reward, propensity=e[np.arange(2000), action], propensities=e)
    found = diagnose(AdaptiveLog.from_arrays(arrays, arms=("a", "b")))
    row = found.check("sample mean against AIPW", "b")[0]
    assert row.verdict == AGAINST
    assert row.statistic > 5
    assert found.check("propensity calibration", "all arms")[0].verdict == NO_EVIDENCE


def test_overlap_and_effective_size() -> None:
    design = designs.Thompson(floor=(0.05, 1.0), batch_size=20)
    log = design.run(BernoulliArms([0.2, 0.8]), 2000, rng=3)
    found = diagnose(log)
    low = (log.arrays.propensities[:, 0] < 0.001).sum()
    assert low > 0
    rows = found.check("overlap", "0")
    assert [row.measure for row in rows] == [claims.BELOW(limit=0.01), claims.BELOW(limit=0.001)]
    assert rows[1].statistic == low
    assert rows[1].verdict == CAUTION
    assert found.check("overlap", "1")[1].verdict == FINE
    assert found.check("effective sample size", "0")[0].verdict == CAUTION
    decay = found.check("decay of propensities")
    assert decay[0].statistic == log.arrays.propensities.min()
    assert decay[0].verdict == CAUTION
    assert says(decay[1].claims, claims.EXPONENT_TO_LOOK_AT)
    assert found.tables["decay"]["smallest_0"].min() == pytest.approx(log.arrays.propensities[:, 0].min())


def test_a_few_rounds_without_overlap_are_no_concern() -> None:
    """One round in a hundred below .01 is fine, one more is not; below .001 one is too many."""
    e = np.full((200, 2), 0.5)
    e[:2] = [0.995, 0.005]
    log = with_propensities(changed(gathered(), keep=np.arange(200)), e)
    assert [row.verdict for row in diagnose(log).check("overlap", "1")] == [FINE, FINE]
    e[2] = [0.9995, 0.0005]
    log = with_propensities(changed(gathered(), keep=np.arange(200)), e)
    assert [row.verdict for row in diagnose(log).check("overlap", "1")] == [CAUTION, CAUTION]


# --- what does not apply --------------------------------------------------------------------------------


def reasons(log: AdaptiveLog) -> dict[str, tuple[str, ...]]:
    return {check.name: check.claims for check in diagnose(log).checks if check.verdict == NOT_APPLICABLE}


def test_no_propensities() -> None:
    found = reasons(changed(gathered(), propensity=None, propensities=None))
    assert set(found) == set(claims.QUESTIONS)
    assert set(found.values()) == {(propensities.NONE(),)}


def test_deterministic_design() -> None:
    """UCB's propensities are 0 and 1."""
    found = reasons(designs.UCB().run(ENV, 300, rng=0))
    assert says(found["propensity calibration"], claims.CERTAIN)
    assert says(found["sample ratio"], claims.CERTAIN)
    assert says(found["drift over time"], claims.NEVER_POSSIBLE)


def test_estimated_propensities_are_circular() -> None:
    found = diagnose(changed(gathered(), status="estimated"))
    assert says(found.check("propensity calibration")[0].claims, claims.CIRCULAR)
    assert says(found.check("sample ratio")[0].claims, claims.CIRCULAR)
    assert says(found.notes, claims.ERROR_IGNORED)
    assert found.check("drift over time", "0")[0].verdict == NO_EVIDENCE


def test_constant_propensities_leave_nothing_to_compare() -> None:
    found = reasons(designs.Uniform().run(ENV, 400, rng=0))
    assert says(found["sample mean against AIPW"], claims.SETTLED)
    assert says(found["drift by batch"], claims.NO_BATCHES)


def test_elimination_is_checked_where_it_is_random() -> None:
    """ConSE's propensities become 0 and 1: only the random rounds count."""
    env = FiniteContext([0.5, 0.5], [[0.2, 0.8], [0.8, 0.2]])
    log = designs.ConSE().run(env, 4000, rng=1)
    random = ((log.arrays.propensities > 0) & (log.arrays.propensities < 1)).all(axis=1)
    assert 100 < random.sum() < 4000
    found = diagnose(log)
    assert found.tables["calibration"].query("arm == 0")["rounds"].sum() == random.sum()
    assert found.check("sample ratio")[0].verdict == NO_EVIDENCE


def one_round(arms: int = 2, propensity: float = 0.5) -> AdaptiveLog:
    e = np.full((1, arms), (1.0 - propensity) / max(1, arms - 1))
    e[0, 0] = propensity
    arrays = LogArrays(
        action=np.zeros(1, dtype=np.int64),
        reward=np.ones(1),
        propensity=np.array([propensity]),
        propensities=e,
    )
    return AdaptiveLog.from_arrays(arrays, arms=tuple("abc"[:arms]))


def test_one_round() -> None:
    found = diagnose(one_round())
    assert found.check("propensity calibration", "a")[0].verdict == NOT_APPLICABLE
    assert found.check("sample ratio")[0].statistic == pytest.approx(1.0)
    assert says(found.check("sample mean against AIPW", "a")[0].claims, claims.FEW_REWARDS, fewest=20)
    assert says(found.check("decay of propensities")[1].claims, claims.FEW_ROUNDS, fewest=33)
    assert "Diagnosis" in str(found)


def test_one_arm() -> None:
    arrays = LogArrays(
        action=np.zeros(50, dtype=np.int64),
        reward=np.tile([0.0, 1.0], 25),
        propensity=np.ones(50),
        propensities=np.ones((50, 1)),
    )
    found = diagnose(AdaptiveLog.from_arrays(arrays, arms=("a",)))
    assert found.check("propensity calibration")[0].verdict == NOT_APPLICABLE
    assert found.check("sample ratio")[0].verdict == NOT_APPLICABLE
    assert found.check("effective sample size")[0].statistic == 50.0
    assert found.check("drift over time", "a")[0].verdict == NO_EVIDENCE


def test_constant_rewards() -> None:
    found = diagnose(changed(gathered(), reward=np.full(gathered().n_rounds, 0.3)))
    assert says(found.check("sample mean against AIPW", "0")[0].claims, claims.ONE_REWARD)
    assert found.check("drift over time", "1")[0].verdict == NOT_APPLICABLE
    assert found.check("propensity calibration", "all arms")[0].verdict == NO_EVIDENCE


def test_an_arm_that_was_never_chosen() -> None:
    arrays = gathered().arrays
    e = np.hstack([arrays.propensities, np.zeros((gathered().n_rounds, 1))])
    more = LogArrays(action=arrays.action, reward=arrays.reward, propensity=arrays.propensity, propensities=e)
    found = diagnose(AdaptiveLog.from_arrays(more, arms=(0, 1, 2)))
    assert found.check("propensity calibration", "2")[0].verdict == NOT_APPLICABLE
    assert found.check("sample ratio")[0].statistic == pytest.approx(
        diagnose(gathered()).check("sample ratio")[0].statistic
    )
    assert found.check("effective sample size", "2")[0].statistic == 0.0


def test_two_arms_need_the_chosen_arms_propensity_alone() -> None:
    half = changed(gathered(), propensities=None)
    for name in ("propensity calibration", "sample ratio", "sample ratio, anytime"):
        ours = [check.statistic for check in diagnose(half).check(name)]
        assert ours == pytest.approx([check.statistic for check in diagnose(gathered()).check(name)])


def test_three_arms_with_the_chosen_arms_propensity() -> None:
    """Inverse propensities: z is the sum of 1{A = a} / e - 1 over the root of its squares."""
    whole = GREEDY.run(BernoulliArms([0.4, 0.5, 0.6]), 1500, rng=2)
    log = changed(whole, propensities=None)
    found = diagnose(log)
    terms = (log.arrays.action == 1) / log.arrays.propensity - 1.0
    row = found.check("propensity calibration", "1")[0]
    assert row.statistic == pytest.approx(terms.sum() / math.sqrt((terms**2).sum()))
    assert row.measure == "z, inverse"
    assert found.check("propensity calibration", "all arms")[0].verdict == NO_EVIDENCE
    assert says(found.check("sample ratio")[0].claims, claims.NEEDS_EVERY)
    assert found.check("overlap", "1")[0].measure == claims.BELOW_WHERE_CHOSEN(limit=0.01)
    wrong = changed(log, propensity=0.6 * log.arrays.propensity)
    assert diagnose(wrong).check("propensity calibration", "all arms")[0].verdict == AGAINST


# --- parts ----------------------------------------------------------------------------------------------


def test_holm_and_verdicts() -> None:
    rows = [
        Check("a", "x", "z", 3.0, math.log(0.01), "", ("look",)),
        Check("a", "y", "z", 2.0, math.log(0.04), "", ("b",)),
        Check("b", "x", "n", 5.0, math.nan, FINE, ("c",)),
    ]
    found = judged(rows, 0.03)
    assert [math.exp(row.log_adjusted) for row in found[:2]] == pytest.approx([0.02, 0.04])
    assert [row.verdict for row in found] == [AGAINST, NO_EVIDENCE, FINE]
    assert [row.advice for row in found] == ["look", "", "c"]


def test_chi_square_without_variance() -> None:
    found = chi_square(np.zeros(2), np.zeros((2, 2)))
    assert found.df == 0
    assert math.isnan(found.log_pvalue)
    assert math.isnan(ChiSquare(math.nan, 0).statistic)
    assert count_test(np.array([4.0, 0.0]), np.array([4.0, 0.0]), np.diag([4.0, 0.0])).df == 0


def test_bins_need_random_choices() -> None:
    always = np.ones(40, dtype=np.int64)
    assert calibration_bins(always[:30], np.full((30, 2), 0.5)) == [None, None]
    bins = calibration_bins(always, np.full((40, 2), 0.5))[1]
    assert bins is not None
    assert bins.z.tolist() == pytest.approx([20 / math.sqrt(10)])
    assert (bins.low[0], bins.high[0]) == (0.0, 1.0)


def test_decay_of_few_rounds_and_zeros() -> None:
    assert math.isnan(fitted_decay(np.full((32, 2), 0.5)).exponent)
    flat = fitted_decay(np.full((33, 2), 0.5))
    assert flat.exponent == pytest.approx(0.0, abs=1e-12)
    certain = fitted_decay(np.tile([1.0, 0.0], (100, 1)))
    assert np.isnan(certain.smallest[:, 1]).all()
    assert low_rounds(np.array([[np.nan, 0.5], [0.001, 0.5]]), 0.01).tolist() == [1.0, 0.0]


def test_groups_of_batches() -> None:
    assert batch_groups(np.repeat([0, 1, 2], [8, 1, 1]), most=2).tolist() == [0] * 8 + [1] * 2
    assert batch_groups(np.array([0, 1])).tolist() == [0, 1]


def test_what_does_not_vary_has_no_test() -> None:
    assert homogeneity(np.full(2, 0.5), np.zeros(2)).df == 0
    assert all(map(math.isnan, common_drift(Differences(np.zeros(2), np.zeros((2, 2))))))


def test_all_p_values_of_the_table_are_adjusted_together() -> None:
    """Holm's by hand: running maxima of the sorted p-values times the number of those not yet passed."""
    found = diagnose(gathered())
    tests = [row for row in found.checks if not math.isnan(row.log_pvalue)]
    tests.sort(key=lambda row: row.log_pvalue)
    assert len({row.name for row in tests}) >= 4
    largest = 0.0
    for place, row in enumerate(tests):
        largest = max(largest, (len(tests) - place) * math.exp(row.log_pvalue))
        assert math.exp(row.log_adjusted) == pytest.approx(min(1.0, largest), rel=1e-9)
    assert says(found.notes, claims.HOLM, tests=len(tests), alpha=0.05)


def test_common_drift_is_found_and_what_could_be_missed_is_told() -> None:
    """Half a standard deviation over 1,000 rounds in both arms."""
    rng = np.random.default_rng(12)
    rewards = rng.normal(size=(1000, 2)) + np.linspace(0.0, 0.5, 1000)[:, None]
    log = designs.EpsilonGreedy(exploration=0.4).run(Tableau(rewards), 1000, rng=5)
    found = diagnose(log)
    assert found.check("common drift")[0].verdict == AGAINST
    assert found.check("common drift")[0].statistic > 3.0
    least = found.check("drift that could be missed", "all arms")[0].statistic
    assert 0.3 < least < 0.45
    assert says(found.notes[-1], claims.MISSED_ALONE)
    assert says(found.notes, claims.MISSED, drift="common drift", least=least)


@pytest.mark.parametrize("name", ["control_checks", "decay_checks", "arm_checks"])
def test_what_could_be_missed_counts_every_test_of_the_table(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    made = getattr(log_checks, name)
    one_more = Check("another", "all arms", "z", 0.0, math.log(0.5))
    plain = diagnose(gathered(), alpha=0.02)
    monkeypatch.setattr(log_checks, name, lambda *given: [*made(*given), one_more])
    more = diagnose(gathered(), alpha=0.02)
    sizes = [sum(not math.isnan(row.log_pvalue) for row in found.checks) for found in (plain, more)]
    assert sizes[1] == sizes[0] + 1
    for found, size in zip((plain, more), sizes, strict=True):
        frame = found.tables["drift"]
        critical = stats.t.isf(0.01 / size, frame["df"])
        least = (critical + stats.norm.ppf(0.8)) * frame["std_error"] / frame["sd"]
        np.testing.assert_allclose(frame["could_be_missed"], least, rtol=1e-12)


def test_a_large_origin_changes_no_statistic() -> None:
    first = diagnose(gathered()).to_frame()
    second = diagnose(changed(gathered(), reward=gathered().arrays.reward + 1e6)).to_frame()
    np.testing.assert_allclose(first["statistic"], second["statistic"], rtol=1e-6)


# --- tables and bad input -------------------------------------------------------------------------------


def test_frame_and_summary() -> None:
    found = diagnose(gathered())
    frame = found.to_frame()
    assert list(frame) == [
        "check", "term", "asks", "measure", "statistic", "p_value", "p_holm", "verdict", "advice"
    ]  # fmt: skip
    row = frame.query("check == 'sample ratio'").iloc[0]
    assert row["p_value"] == pytest.approx(math.exp(found.check("sample ratio")[0].log_pvalue))
    assert row["p_holm"] >= row["p_value"]
    known = frame["p_value"].notna().sum()
    assert says(found.notes, claims.HOLM, tests=known)
    summary = found.summary()
    assert "Diagnosis of the Log" in summary.as_text()
    assert "| sample ratio | all arms | chi2(1) |" in summary.as_markdown()
    assert summary.as_markdown().count("| sample mean against AIPW |") == 1
    lines = summary.as_text().splitlines()
    assert max(map(len, lines)) <= 80
    names = [name for name in found.questions if found.check(name)]
    assert [line for line in lines if line in names] == names  # the name of a check stands over its rows
    place = lines.index("sample ratio")
    assert lines[place + 1].split()[:3] == ["all", "arms", "chi2(1)"]
    assert r"\begin{tabular}" in summary.as_latex()
    assert found._repr_html_() == summary.as_html()
    assert str(found) == summary.as_text()


def test_a_declared_allocation_by_label() -> None:
    listed, named = (
        diagnose(gathered(), expected=[1, 3]),
        diagnose(gathered(), expected={gathered().arms[1]: 3, gathered().arms[0]: 1}),
    )
    assert listed.to_frame().equals(named.to_frame())
    with pytest.raises(ParameterError) as caught:
        diagnose(gathered(), expected={gathered().arms[0]: 1, "placebo": 2})
    assert f"no share for arm {gathered().arms[1]!r}" in str(caught.value)
    assert "expected: there is no arm 'placebo'; the log has 0, 1" in str(caught.value)
    with pytest.raises(ParameterError, match="one positive share for each of the 2 arms"):
        diagnose(gathered(), expected=dict.fromkeys(gathered().arms, "half"))


def test_checks_that_there_are_not() -> None:
    found = diagnose(gathered())
    with pytest.raises(
        ParameterError,
        match=r"name must be one of 'propensity calibration', 'sample ratio', .*; did you mean 'propens",
    ):
        found.check("calibration")
    assert found.check("overlap", gathered().arms[0]) == found.check("overlap", str(gathered().arms[0]))
    assert found.check("overlap", gathered().arms[0])
    with pytest.raises(ParameterError, match="term must be one of"):
        found.check("overlap", "placebo")


def test_bad_input() -> None:
    with pytest.raises(ParameterError, match="must be an AdaptiveLog"):
        diagnose([1, 2])
    with pytest.raises(ParameterError, match="alpha"):
        diagnose(gathered(), alpha=0.7)
    for wrong in ([0.5], [1.0, 0.0], "half", [np.nan, 1.0]):
        with pytest.raises(ParameterError, match="one positive share for each of the 2 arms"):
            diagnose(gathered(), expected=wrong)
