"""What a log is believed to say about itself."""

from __future__ import annotations

import dataclasses
import inspect
import warnings
from typing import Any

import numpy as np
import pytest
from claims_said import says, wording

from adaptinf import designs
from adaptinf.claims import adaptivity, contexts, propensities
from adaptinf.claims.arms.sample_means import CORRECTED_CAUTIONS
from adaptinf.claims.effects import rounds_and_weights
from adaptinf.errors import AdaptinfWarning, InvalidForLog
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.choice import default_estimator
from adaptinf.inference.effects.cate import CATE
from adaptinf.inference.recommend.recommendation import recommend
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits, LogArrays
from adaptinf.simulation.environments import BernoulliArms


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


def concrete_designs() -> list[type[designs.Design]]:
    public = [getattr(designs, name) for name in designs.__all__]
    return [
        one
        for one in public
        if inspect.isclass(one) and issubclass(one, designs.Design) and not inspect.isabstract(one)
    ]


def test_every_design_states_its_traits() -> None:
    assert len(concrete_designs()) >= 18
    for design in concrete_designs():
        assert any("traits" in vars(kind) for kind in design.__mro__[: design.__mro__.index(designs.Design)])


CONTEXTUAL = [
    designs.ABSE(),
    designs.ConSE(alpha=0.2),
    designs.DPConSE(epsilon=1.0),
    designs.LDPBandit(epsilon=1.0),
    designs.LDPLinear(epsilon=8.0),
    designs.LinPriv(epsilon=1.0),
    designs.LinUCB(),
]


@pytest.mark.parametrize("design", CONTEXTUAL, ids=lambda design: type(design).__name__)
def test_a_subclass_is_refused_as_its_parent_is(design: designs.Design) -> None:
    kind = type("Renamed", (type(design),), {})
    child = kind(**{field.name: getattr(design, field.name) for field in dataclasses.fields(design)})
    assert child.record().name == "Renamed"
    refusals = []
    for record in (design.record(), child.record()):
        log = followed(record, propensities=False)
        assert profile_of(log).decides_by_context
        assert not any(one.verdict.valid for one in recommend(log).methods)
        for estimator in (None, "alee", "sample-mean"):
            with pytest.raises(InvalidForLog) as caught:
                ArmMeans(log).fit(estimator)
            refusals.append(str(caught.value).replace("Renamed", type(design).__name__))
    assert refusals[:3] == refusals[3:]


class TestUnknownDesigns:
    def test_contexts_may_have_moved_the_choice(self) -> None:
        log = followed("HomegrownBandit", propensities=False)
        profile = profile_of(log)
        assert profile.adaptive
        assert not profile.context_free
        for estimator in (None, "alee", "sample-mean"):
            with pytest.raises(InvalidForLog, match=wording(contexts.VISIBLY, context="site")):
                ArmMeans(log).fit(estimator)
        assert ArmMeans(followed("HomegrownBandit")).fit().weights == "uniform"
        assert ArmMeans(followed("HomegrownBandit")).fit("alee").estimator == "alee"  # asked for, and noted

    def test_what_a_user_can_say(self) -> None:
        said = followed("HomegrownBandit", propensities=False, context_free=True)
        assert ArmMeans(said).fit().estimator == "alee"
        stated = DesignRecord("HomegrownBandit", {}, DesignTraits(uses_context="no", own_coins=False))
        assert profile_of(followed(stated)).context_free
        unsaid = DesignRecord("HomegrownBandit", {}, DesignTraits(own_coins=False))
        assert profile_of(followed(unsaid, propensities=False)).undeclared_context

    def test_constant_propensities_leave_no_question(self) -> None:
        assert not profile_of(fixed(design="HomegrownBandit")).undeclared_context


def test_a_locally_private_linear_bandit_has_no_arm_means() -> None:
    log = followed(designs.LDPLinear(epsilon=8.0).record(), propensities=False)
    assert profile_of(log).decides_by_context
    for fit in (ArmMeans(log).fit, lambda: ArmMeans(log).fit("alee")):
        with pytest.raises(InvalidForLog, match=wording(contexts.REGRESSION, covariates="contexts")):
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
        weighted = ArmMeans(followed(name, context_free=True)).fit("aipw", "sqrt")
        assert np.all(np.abs(weighted.estimate - 0.5) > 4 * weighted.std_error)
        lagged = ArmMeans(log).fit("aipw", "sqrt")
        np.testing.assert_allclose(lagged.estimate, 0.5, atol=4 * lagged.std_error.max())

    def test_a_bare_name_decides_nothing(self) -> None:
        for name in ("Thompson", "Uniform", "LinUCB", None):
            log = fixed(design=name, share=np.linspace(0.2, 0.8, 400))
            assert not profile_of(log).context_free
            assert profile_of(log).adaptive

    def test_records_of_the_library_are_believed(self) -> None:
        every = [
            designs.EpsilonGreedy(),
            designs.SequentialHalving(),
            designs.Mixture(designs.UCB(), 0.2),
            designs.PrivateSuccessiveElimination(epsilon=1.0),
            designs.PrivateUCB(epsilon=1.0),
            designs.SuccessiveElimination(),
            designs.Thompson(),
            designs.UCB(),
        ]
        for design in every:
            assert profile_of(followed(design.record())).context_free, design

    def test_uniform_that_its_propensities_contradict(self) -> None:
        record = designs.Uniform().record()
        assert not profile_of(fixed(design=record)).adaptive
        assert profile_of(fixed(design=record, share=np.linspace(0.2, 0.8, 400))).adaptive
        assert profile_of(followed(record, chosen=True)).adaptive


class TestEstimatedPropensities:
    def test_constant_ones_do_not_show_that_none_moved(self) -> None:
        assert profile_of(fixed()).constant_propensities
        assert not profile_of(fixed()).moves
        assert not profile_of(fixed()).adaptive
        assert profile_of(fixed(propensity_status="estimated")).adaptive
        assert profile_of(fixed(propensity_status="estimated")).moves
        assert not profile_of(fixed(propensity_status="estimated", feedback_rounds=0)).moves
        assert not profile_of(followed(propensity_status="estimated")).varying_propensities
        log = fixed(propensity_status="estimated")
        assert says(recommend(log).best.verdict.warning, propensities.UNSETTLED)

    def test_they_do_not_show_randomised_rounds(self) -> None:
        assert CATE(fixed(), by="site").fit().estimator == "difference-in-means"
        estimated = CATE(fixed(propensity_status="estimated"), by="site")
        with pytest.raises(InvalidForLog) as error:
            estimated.fit("difference-in-means")
        assert says(error.value.reason, rounds_and_weights.ESTIMATES_SHOW_NOTHING)
        assert estimated.fit("aipw").estimator == "aipw"
        settled = CATE(fixed(propensity_status="estimated", feedback_rounds=0), by="site").fit()
        assert settled.estimator == "difference-in-means"
        assert says(settled.notes, rounds_and_weights.CONSTANT_BY_ESTIMATES)


def test_max_information_rests_on_contexts_without_a_part() -> None:
    """The corrected intervals of sample means miss both means where contexts chose the arms."""
    guarantee = PrivacyGuarantee(epsilon=0.001)
    log = followed(chosen=True, guarantee=guarantee, reward_guarantee=guarantee)
    name = "sample-mean with corrected columns"
    table = recommend(log)
    found = {one.verdict.name: one.verdict for one in table.methods}[name]
    assert table.best.verdict.name == "aipw with uniform weights"
    assert says(found.assumes, contexts.NO_PART)
    (untold,) = [one for one in CORRECTED_CAUTIONS if one.fact == "contexts_untold"]
    assert says(found.warning, untold, label="exact", no_part=contexts.NO_PART())
    without = LogArrays(action=log.arrays.action, reward=log.arrays.reward, context=log.arrays.context)
    unknown = AdaptiveLog.from_arrays(
        without, arms=("a", "b"), guarantee=guarantee, reward_guarantee=guarantee
    )
    with pytest.raises(InvalidForLog, match=wording(contexts.VISIBLY, context="site")):
        default_estimator(unknown)
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
        assert default_estimator(fixed(feedback_rounds=0)).estimator == "sample-mean"
        normal = recommend(fixed(feedback_rounds=0, context=False, binary=False))
        assert normal.best.verdict.name == "sample-mean"

    def test_constant_propensities_cannot_adapt(self) -> None:
        """Whatever design the log names, and with exact tests where events are few."""
        for design in (None, "Thompson", designs.Thompson().record()):
            log = fixed(design=design, context=False, binary=False)
            best = recommend(log).best.verdict
            assert best.name == "sample-mean"
            assert says(best.reason, adaptivity.NEVER_MOVE)
            result = ArmMeans(log).fit()
            assert (result.estimator, result.validity) == ("sample-mean", "asymptotic")
            assert "not valid" not in " ".join(result.notes)
        rare = fixed(context=False, rounds=30)
        assert ArmMeans(rare).fit().reference.exact
        names = [one.verdict.name for one in recommend(rare).methods if one.verdict.valid]
        assert names[:2] == ["sample-mean", "sample-mean with exact binomial tests"]

    def test_scores_come_first_where_probabilities_change(self) -> None:
        """By contexts or by a plan, sample means may mix the rounds of the arms unequally."""
        assert default_estimator(followed(feedback_rounds=0)).estimator == "aipw"
        planned = fixed(share=np.linspace(0.2, 0.8, 400), context=False, feedback_rounds=0)
        assert default_estimator(planned).estimator == "aipw"

    @pytest.mark.slow
    def test_small_samples_are_covered(self) -> None:
        """95% intervals of 600 logs, less four binomial errors."""
        truth, inside = np.array([0.1, 0.9]), []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", AdaptinfWarning)
            for log in designs.Uniform().logs(BernoulliArms(truth), 60, 600, 5):
                bounds = ArmMeans(log).fit().conf_int().to_numpy()
                inside.append((bounds[:, 0] <= truth) & (truth <= bounds[:, 1]))
        assert np.all(np.mean(inside, axis=0) > 0.95 - 4 * np.sqrt(0.05 * 0.95 / 600))
