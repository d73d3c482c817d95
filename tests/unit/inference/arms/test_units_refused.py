"""Where units have several rounds: methods that take rounds to be independent say that they are not valid."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says, wording

import adaptinf as ai
from adaptinf.claims import stationarity
from adaptinf.claims import units as of_units
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.arms.sample_means import OPENING, UNITS_DEPEND
from adaptinf.claims.units import NOT_DRAWN_BY_ROUND
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog
from adaptinf.log.validation import nested_options

DEPEND = wording(of_units.DEPENDENT, rounds=400, units=40)


def unit_log(*, propensity: bool = True, rounds: int = 10, units: int = 40, **given: Any) -> AdaptiveLog:
    """A fair coin in every round; units in turn, in batches of one turn each."""
    rng = np.random.default_rng(3)
    who = np.tile(np.arange(units), rounds)
    frame = pd.DataFrame(
        {
            "who": who,
            "arm": np.where(rng.integers(0, 2, len(who)) == 1, "b", "a"),
            "y": (rng.random(len(who)) < 0.2 + 0.6 * (who % 2)).astype(float),
            "e": 0.5,
            "wave": np.arange(len(who)) // units,
        }
    )
    given = {"batch": "wave", "unit": "who", "reward_range": (0.0, 1.0), **given}
    return AdaptiveLog(
        frame, action="arm", reward="y", propensity="e" if propensity else None, **nested_options(given)
    )


def test_recommend_says_which_methods_units_spoil() -> None:
    found = ai.recommend(unit_log(), "contrast", treatment="b", control="a")
    labels = {row.verdict.name: row.verdict for row in found.methods}
    for name in ("alee", "batched", "sample-mean", "sample-mean with corrected columns"):
        assert labels[name].label == "not valid"
        assert says(labels[name].reason, of_units.DEPENDENT, units=40, rounds=400)
    assert labels["betting sequence on sample means"].label == "not valid"
    assert labels["betting sequence on ipw scores"].label == "for the logged rounds"
    assert of_units.OF_LOGGED_ROUNDS() in labels["betting sequence on ipw scores"].warning
    assert labels["aipw with uniform weights"].label == "asymptotic"


def test_one_round_a_unit_spoils_nothing() -> None:
    found = ai.recommend(unit_log(rounds=1), "contrast", treatment="b", control="a")
    plain = ai.recommend(unit_log(rounds=1, unit=None), "contrast", treatment="b", control="a")
    assert [repr(row) for row in found.methods] == [repr(row) for row in plain.methods]


@pytest.mark.parametrize("estimator", ["alee", "batched"])
def test_estimators_without_propensities_are_refused(estimator: str) -> None:
    with pytest.raises(InvalidForLog, match=DEPEND) as error:
        ai.Contrast(unit_log(), treatment="b", control="a").fit(estimator)
    assert "aipw with uniform weights" in error.value.alternatives


def test_batch_tests_are_refused() -> None:
    with pytest.raises(InvalidForLog, match=DEPEND):
        ai.Contrast(unit_log(), treatment="b", control="a").batch_test()


@pytest.mark.parametrize("settled", [{}, {"feedback_rounds": 0}])
def test_sample_means_are_a_baseline_that_is_not_valid(settled: dict[str, Any]) -> None:
    result = ai.ArmMeans(unit_log(**settled)).fit("sample-mean")
    assert result.validity == "not valid"
    assert says(result.notes, OPENING, worth=UNITS_DEPEND())
    assert says(result.cautions, of_units.NOT_BY_UNIT)


def test_without_propensities_there_is_no_default() -> None:
    with pytest.raises(InvalidForLog, match=DEPEND) as error:
        ai.ArmMeans(unit_log(propensity=False)).fit()
    assert error.value.alternatives == (
        arm_fits.AIPW_BY_UNIT(),
        arm_fits.BASELINE(name="sample-mean", where=arm_fits.WITH_UNITS()),
    )
    fixed = unit_log(propensity=False, feedback_rounds=0)
    with pytest.raises(InvalidForLog) as error:
        ai.ArmMeans(fixed).fit()
    assert arm_fits.CLUSTERED() in error.value.alternatives
    log = ai.AdaptiveOLS.from_formula("y ~ C(arm)", fixed).fit()  # and it does run
    assert (log.covariance_type, log.cautions) == ("CR2", ())


def test_sequences_of_scores_are_for_the_logged_rounds() -> None:
    log = unit_log()
    result = ai.ConfidenceSequence(log, "contrast", treatment="b", control="a").fit()
    assert result.estimator == "ipw"
    assert says(result.cautions[0], stationarity.UNTESTED)
    assert says(result.cautions[1], of_units.OF_LOGGED_ROUNDS)
    stated = ai.ConfidenceSequence(log, "contrast", treatment="b", control="a").fit(stationary=True)
    assert stated.cautions == result.cautions[1:]
    with pytest.raises(InvalidForLog, match=DEPEND):
        ai.ConfidenceSequence(log).fit(estimator="sample-mean")


def test_sequences_need_a_draw_a_round() -> None:
    log = unit_log()
    kept = log.frame.assign(action=log.frame["action"].to_numpy()[np.arange(400) % 40])
    once = AdaptiveLog(
        kept, action="action", reward="reward", propensity="propensity", unit="unit_id", reward_range=(0, 1)
    )
    with pytest.raises(InvalidForLog) as caught:
        ai.ConfidenceSequence(once).fit()
    assert says(caught.value.reason, NOT_DRAWN_BY_ROUND)
