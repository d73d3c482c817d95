"""Results side by side, given one after another or by name; and notes that name an exact test."""

from __future__ import annotations

import numpy as np
import pytest
from claims_said import says

from adaptinf import designs
from adaptinf.audit.binary.log_tests import exact_interval
from adaptinf.claims import tables
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.regression import adjusted_regression
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.contrasts import Contrasts
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.regression.adaptive_ols import AdaptiveOLS
from adaptinf.inference.results.comparison import compare
from adaptinf.inference.results.tables import format_number, format_pvalue
from adaptinf.log import AdaptiveLog, LogArrays
from adaptinf.simulation.environments import BernoulliArms


@pytest.fixture(scope="module")
def log() -> AdaptiveLog:
    return designs.EpsilonGreedy(exploration=0.4).run(BernoulliArms([0.4, 0.6]), 400, rng=1)


def test_results_one_after_another_are_named_by_their_methods(log: AdaptiveLog) -> None:
    means = ArmMeans(log)
    first, second = means.fit("aipw", weights="sqrt"), means.fit("alee")
    table = compare(first, second, alpha=0.1)
    assert list(table.results) == ["aipw (sqrt)", "alee"]
    assert table.to_frame().equals(compare({"aipw (sqrt)": first, "alee": second}, alpha=0.1).to_frame())
    contrast = Contrast(log, treatment=1, control=0).fit("alee")
    assert list(compare(second, contrast).results) == ["ArmMeans alee", "Contrast alee"]
    assert list(compare(second, second).results) == ["alee #1", "alee #2"]
    assert list(compare(second).results) == ["alee"]


@pytest.mark.parametrize("kind", ["number", "series", "nothing", "list"])
def test_anything_else_is_one_short_error(log: AdaptiveLog, kind: str) -> None:
    result = ArmMeans(log).fit("alee")
    given = {
        "number": (result, 3),
        "series": (result, result.params),
        "nothing": (),
        "list": ([result, result],),
    }[kind]
    with pytest.raises(ParameterError, match=r"one after another, as in compare\(first, second\)") as caught:
        compare(*given)
    assert len(str(caught.value)) < 250


def test_what_is_no_result_is_named(log: AdaptiveLog) -> None:
    result = ArmMeans(log).fit("alee")
    with pytest.raises(ParameterError, match="'b' must be a result of a fit, not a Series"):
        compare({"a": result, "b": result.params})
    with pytest.raises(ParameterError, match="names must be strings, got 1"):
        compare({1: result})


def ecmo(**more: object) -> AdaptiveLog:
    """Twelve infants: the first on ECMO survives, the second dies on control, ten more survive on ECMO."""
    arrays = LogArrays(action=np.array([0, 1, *[0] * 10]), reward=np.array([1.0, 0.0, *[1.0] * 10]))
    return AdaptiveLog.from_arrays(arrays, arms=("ECMO", "control"), reward_range=(0, 1), **more)


def test_a_short_trial_of_two_arms_names_its_exact_test(log: AdaptiveLog) -> None:
    unnamed = {"test": "audit.exact_test(log, design)", "given": arm_fits.WITH_DESIGN()}
    assert says(ArmMeans(ecmo()).fit().notes, arm_fits.EXACT_TEST, **unnamed)
    named = ecmo(design=designs.PlayTheWinner().record())
    for result in (ArmMeans(named).fit(), Contrast(named, treatment="ECMO", control="control").fit()):
        calls = {"test": "audit.exact_test(log)", "interval": "audit.exact_interval(log)"}
        assert says(result.notes, arm_fits.EXACT_TEST, **calls, given="")
    for target in ("arm-means", "contrast"):
        rows = [" ".join(line.split()) for line in str(recommend(named, target)).splitlines()]
        assert "Exact audit.exact_interval(log), audit.exact_test(log)" in rows
    assert "exact_interval" not in str(recommend(named, stopping="data-chosen"))
    assert "audit.exact_interval(log, design), audit.exact_test(log, design)" in str(recommend(ecmo()))
    assert exact_interval(named).limits["difference"][1] == pytest.approx(0.0032, abs=1e-3)
    assert "exact_test" not in " ".join(ArmMeans(log).fit().notes)
    assert "exact_test" not in " ".join(ArmMeans(ecmo(feedback_rounds=0)).fit().notes)


def test_w_decorrelation_names_what_is_in_its_way() -> None:
    rng = np.random.default_rng(2)
    action = (rng.random(400) < 0.01).astype(np.int64)
    action[:2] = (0, 1)
    x = rng.normal(size=400)
    arrays = LogArrays(action=action, reward=x + rng.normal(size=400), context={"x": x})
    log = AdaptiveLog.from_arrays(arrays, arms=("a", "b"), context_free=True)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ action + x", log).fit(adjustment="w-decorrelation", ridge=10.0)
    cause = adjusted_regression.RARELY_SEEN(name="action[T.b]", rounds=int(action.sum()), n=400)
    assert says(caught.value.reason, adjusted_regression.TOO_MUCH_LEFT, cause=cause)
    assert not says(caught.value.alternatives, adjusted_regression.ONE_SCALE)
    wide = LogArrays(action=action, reward=arrays.reward, context={"x": 1e4 * x})
    log = AdaptiveLog.from_arrays(wide, arms=("a", "b"), context_free=True)
    with pytest.raises(InvalidForLog) as caught:
        AdaptiveOLS.from_formula("reward ~ action + x", log).fit(adjustment="w-decorrelation", ridge=1e3)
    assert says(caught.value.reason, adjusted_regression.TOO_MUCH_LEFT, cause=adjusted_regression.UNEVEN())


def test_p_values_are_adjusted_within_each_result() -> None:
    log = designs.EpsilonGreedy(exploration=0.5).run(BernoulliArms([0.4, 0.5, 0.6, 0.45]), 2_000, rng=2)
    found = {
        "sqrt": Contrasts(log, control=0).fit("aipw", "combined"),
        "alee": Contrasts(log, control=0).fit("alee"),
    }
    for adjust in ("holm", "bh", "max-t"):
        table = compare(found, adjust=adjust, below="p_value")
        frame = table.to_frame().set_index(["method", "term"])
        for name, result in found.items():
            simultaneous = adjust == "max-t"
            wanted = result.pvalues_simultaneous() if simultaneous else result.adjust(adjust)
            np.testing.assert_allclose(frame.loc[name, "p_value_adjusted"], wanted, rtol=1e-12)
            assert f"({format_pvalue(np.log(wanted.iloc[0]))})" in str(table)
        assert says([text for _, text in table.summary().lines], tables.ADJUSTED[adjust])
    low, high = found["sqrt"].conf_int_simultaneous().iloc[0]
    assert f"[{format_number(low)}, {format_number(high)}]" in str(compare(found, adjust="max-t"))
    assert "p_value_adjusted" not in compare(found).to_frame()
    with pytest.raises(ParameterError, match="the adjustment must be 'holm'"):
        compare(found, adjust="tukey")
