"""What a log is believed to say about itself."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

from adaptinf import designs
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms.models import ArmMeans, Contrast, default_estimator
from adaptinf.inference.effects.models import CATE
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.validity import policies as snapshots
from adaptinf.inference.validity import profile as log_traits
from adaptinf.inference.validity.policies import is_context_free
from adaptinf.inference.validity.profile import is_adaptive, profile_of
from adaptinf.log import AdaptiveLog, DesignRecord, LogArrays
from adaptinf.simulation.environments import BernoulliArms

WITHOUT_CONTEXTS = {"DPBAI", "DPBAIGauss", "DPOD", "ODLinBAI", "SequentialHalving"}
"""Designs that refuse environments with contexts, so that their logs have none."""


def followed(
    design: Any = None, *, chosen: bool = False, propensities: bool = True, **metadata: Any
) -> AdaptiveLog:
    """Arms drawn with .8 or .2 by a context that decides the rewards: both arms' means are 1/2."""
    rng = np.random.default_rng(0)
    site = rng.integers(0, 2, 2000)
    share = np.where(site == 1, 0.8, 0.2)
    action = (rng.random(2000) < share).astype(np.int64)
    arrays = LogArrays(
        action=action,
        reward=rng.binomial(1, np.where(site == 1, 0.8, 0.2)).astype(float),
        propensity=np.where(action == 1, share, 1 - share) if propensities else None,
        propensities=np.column_stack([1 - share, share]) if propensities and not chosen else None,
        context={"site": site},
    )
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), design=_record(design), **metadata)


def fixed(
    *, context: bool = True, share: Any = 0.5, rounds: int = 400, binary: bool = True, **metadata: Any
) -> AdaptiveLog:
    """Arm b drawn with a probability that no reward moves."""
    rng = np.random.default_rng(2)
    chance = np.broadcast_to(share, rounds).astype(float)
    action = (rng.random(rounds) < chance).astype(np.int64)
    arrays = LogArrays(
        action=action,
        reward=rng.binomial(1, 0.4, rounds).astype(float) if binary else rng.normal(size=rounds),
        propensity=np.where(action == 1, chance, 1 - chance),
        propensities=np.column_stack([1 - chance, chance]),
        context={"site": rng.integers(0, 2, rounds)} if context else {},
    )
    metadata["design"] = _record(metadata.get("design"))
    return AdaptiveLog.from_arrays(arrays, arms=("a", "b"), **metadata)


def _record(design: Any) -> DesignRecord | None:
    return DesignRecord(design) if isinstance(design, str) else design


def test_every_design_is_of_one_kind() -> None:
    kinds = [
        snapshots._CONTEXT_FREE,
        log_traits._BY_FINITE_CONTEXT,
        log_traits._BY_CONTEXT_VECTOR,
        log_traits._BY_POSITION,
        log_traits._BY_SCALAR,
        WITHOUT_CONTEXTS,
    ]
    public = [getattr(designs, name) for name in designs.__all__]
    names = [
        one.__name__
        for one in public
        if inspect.isclass(one) and issubclass(one, designs.Design) and not inspect.isabstract(one)
    ]
    assert len(names) >= 18
    for name in names:
        assert sum(name in kind for kind in kinds) == 1, name
    assert set().union(*kinds) <= set(names)


def test_a_locally_private_linear_bandit_has_no_arm_means() -> None:
    log = followed(designs.LDPLinear(epsilon=8.0).record(), propensities=False)
    assert profile_of(log).decides_by_context
    for fit in (ArmMeans(log).fit, lambda: ArmMeans(log).fit("alee")):
        with pytest.raises(InvalidForLog, match="a regression of an arm's rewards on contexts"):
            fit()
    assert not any(one.verdict.valid for one in recommend(log).methods)


class TestNames:
    @pytest.mark.parametrize("name", ["Thompson", "UCB", "Uniform", "EpsilonGreedy"])
    def test_a_bare_name_is_not_believed_against_moving_propensities(self, name: str) -> None:
        log = followed(name)
        assert not profile_of(log).context_free
        assert profile_of(log).adaptive
        result = ArmMeans(log).fit()
        assert (result.estimator, result.weights) == ("aipw", "uniform")
        np.testing.assert_allclose(result.estimate, 0.5, atol=5 * result.std_error.max())
        weighted = ArmMeans(log).fit("aipw", "sqrt")
        assert np.all(np.abs(weighted.estimate - 0.5) > 4 * weighted.std_error)

    def test_a_bare_name_is_believed_where_no_propensity_changes(self) -> None:
        assert profile_of(fixed(design="Thompson")).context_free
        assert profile_of(fixed(design="Uniform")).context_free
        assert not profile_of(fixed(design="Thompson", propensity_status="estimated")).context_free
        assert not profile_of(fixed(design="LinUCB")).context_free
        assert not profile_of(fixed()).context_free

    def test_records_of_the_library_are_believed(self) -> None:
        every = [
            designs.EpsilonGreedy(),
            designs.Mixture(designs.Uniform(), 0.2),
            designs.Mixture(designs.UCB(), 0.2),
            designs.PrivateSuccessiveElimination(epsilon=1.0),
            designs.PrivateUCB(epsilon=1.0),
            designs.SuccessiveElimination(),
            designs.Thompson(),
            designs.UCB(),
        ]
        for design in every:
            assert is_context_free(followed(design.record())), design

    def test_uniform_that_its_propensities_contradict(self) -> None:
        assert not profile_of(fixed(design="Uniform")).adaptive
        assert is_adaptive(fixed(design="Uniform", share=np.linspace(0.2, 0.8, 400)))
        assert profile_of(followed("Uniform", chosen=True)).adaptive


class TestEstimatedPropensities:
    def test_constant_ones_do_not_show_that_none_moved(self) -> None:
        assert profile_of(fixed()).constant_propensities
        assert not profile_of(fixed()).moves
        assert profile_of(fixed(propensity_status="estimated")).moves
        assert not profile_of(fixed(propensity_status="estimated", adaptive_rounds=0)).moves
        assert not profile_of(followed(propensity_status="estimated")).varying_propensities
        log = fixed(propensity_status="estimated")
        assert "not normal in general" in recommend(log).best.verdict.warning

    def test_they_do_not_show_randomised_rounds(self) -> None:
        assert CATE(fixed(), by="site").fit().estimator == "difference-in-means"
        estimated = CATE(fixed(propensity_status="estimated"), by="site")
        with pytest.raises(InvalidForLog, match="cannot show that arms were drawn with fixed probabilities"):
            estimated.fit("difference-in-means")
        assert estimated.fit("aipw").estimator == "aipw"
        settled = CATE(fixed(propensity_status="estimated", adaptive_rounds=0), by="site").fit()
        assert settled.estimator == "difference-in-means"
        assert "The propensities were estimated" in " ".join(settled.notes)


def test_max_information_rests_on_contexts_without_a_part() -> None:
    """The corrected intervals of sample means miss both means where contexts chose the arms."""
    guarantee = PrivacyGuarantee(epsilon=0.001)
    log = followed(chosen=True, guarantee=guarantee, reward_guarantee=guarantee)
    name = "sample-mean with its corrected columns"
    table = recommend(log)
    found = {one.verdict.name: one.verdict for one in table.methods}[name]
    assert table.best.verdict.name == "aipw with uniform weights"
    assert "contexts had no part in the choice" in found.assumes
    assert "exact only if contexts had no part" in found.warning
    without = LogArrays(action=log.arrays.action, reward=log.arrays.reward, context=log.arrays.context)
    unknown = AdaptiveLog.from_arrays(
        without, arms=("a", "b"), guarantee=guarantee, reward_guarantee=guarantee
    )
    assert default_estimator(unknown).estimator == "alee"
    plain = AdaptiveLog.from_arrays(
        LogArrays(action=log.arrays.action, reward=log.arrays.reward),
        arms=("a", "b"),
        guarantee=guarantee,
        reward_guarantee=guarantee,
    )
    best = recommend(plain).best.verdict
    assert (best.name, best.label, best.warning) == (name, "exact", "")


class TestNothingAdapts:
    def test_sample_means_come_first(self) -> None:
        log = designs.Uniform().run(BernoulliArms([0.1, 0.9]), 60, rng=0)
        names = [one.verdict.name for one in recommend(log).methods]
        assert names[:2] == ["sample-mean", "sample-mean with exact binomial tests"]
        assert ArmMeans(log).fit().estimator == "sample-mean"
        assert Contrast(log, treatment=1, control=0).fit().estimator == "sample-mean"
        assert default_estimator(fixed(adaptive_rounds=0)).estimator == "sample-mean"
        normal = recommend(fixed(adaptive_rounds=0, context=False, binary=False))
        assert normal.best.verdict.name == "sample-mean"

    def test_scores_come_first_where_probabilities_change(self) -> None:
        """By contexts or by a plan, sample means may mix the rounds of the arms unequally."""
        assert default_estimator(followed(adaptive_rounds=0)).estimator == "aipw"
        planned = fixed(share=np.linspace(0.2, 0.8, 400), context=False, adaptive_rounds=0)
        assert default_estimator(planned).estimator == "aipw"

    def test_small_samples_are_covered(self) -> None:
        """95% intervals of 600 logs, less four binomial errors."""
        truth, inside = np.array([0.1, 0.9]), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptinfWarning)
            for log in designs.Uniform().logs(BernoulliArms(truth), 60, 600, 5):
                bounds = ArmMeans(log).fit().conf_int().to_numpy()
                inside.append((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))
        assert np.all(np.mean(inside, axis=0) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 600))
