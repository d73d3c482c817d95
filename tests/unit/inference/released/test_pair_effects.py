"""The released difference of two arms: results, duality, notes and refusals."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import numpy as np
import pytest
from claims_said import says

from adaptinf import CATE, ArmMeans, Contrast, designs, environments, recommend
from adaptinf.claims.privacy import releases
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.released.effects import ReleasedReference, effect_from_two_means
from adaptinf.log import AdaptiveLog

ROUNDS = {"three": 30_000, "plain": 200, "two": 4_000}


@functools.cache
def log_of(name: str) -> AdaptiveLog:
    """Run when a test asks for it, not while tests are collected."""
    design, means = {
        "three": (designs.PrivateSuccessiveElimination(epsilon=1.0), [0.5, 0.45, 0.2]),
        "plain": (designs.UCB(), [0.5, 0.4]),
        "two": (designs.DPConSE(epsilon=1.0, contrast_share=1.0), [0.3, 0.6]),
    }[name]
    return design.run(environments.BernoulliArms(means), ROUNDS[name], rng=0)


@pytest.fixture
def three() -> AdaptiveLog:
    return log_of("three")


def test_an_interval_and_its_pvalue_agree(three: AdaptiveLog) -> None:
    result = Contrast(three, treatment=0, control=1).fit("released")
    assert (result.estimator, result.validity, result.private) == ("released", "asymptotic", True)
    low, high = result.conf_int(alpha=0.05).to_numpy()[0]
    for limit in (low, high):
        again = Contrast(three, treatment=0, control=1).fit("released", null=float(limit))
        assert again.pvalues.iloc[0] == pytest.approx(0.05, rel=1e-6)
    last = three.releases[three.releases["round"] == three.releases["round"].max()]
    assert result.params.iloc[0] == pytest.approx(last["value"].iloc[0] - last["value"].iloc[1], rel=1e-12)


def test_a_share_of_the_level_widens_interval_and_pvalue_alike() -> None:
    effect = effect_from_two_means([0.1], 1_000, scale=0.01)
    whole, part = ReleasedReference(effect), ReleasedReference(effect, share=0.1)
    np.testing.assert_allclose(part.interval(np.log(0.05)), whole.interval(np.log(0.005)), rtol=1e-12)
    assert part.log_pvalues(0.0)[0] == pytest.approx(whole.log_pvalues(0.0)[0] + np.log(10.0))
    assert part.log_pvalues(0.1)[0] == 0.0


def test_it_reads_nothing_but_releases(three: AdaptiveLog) -> None:
    arrays = dataclasses.replace(three.arrays, reward=1.0 - three.arrays.reward)
    other = AdaptiveLog.from_arrays(
        arrays, arms=three.arms, design=three.design, releases=three.releases, guarantee=three.guarantee
    )
    first, second = (Contrast(log, treatment=0, control=1).fit("released") for log in (three, other))
    np.testing.assert_array_equal(first.conf_int().to_numpy(), second.conf_int().to_numpy())


@pytest.mark.parametrize("name", ["three", "two"])
def test_the_sign_follows_the_arms(name: str) -> None:
    log = log_of(name)
    one, other = (Contrast(log, treatment=t, control=1 - t).fit("released") for t in (0, 1))
    np.testing.assert_allclose(one.params.to_numpy(), -other.params.to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(one.conf_int().to_numpy()[0], -other.conf_int().to_numpy()[0, ::-1], rtol=1e-9)


def test_pairs_named_after_have_equal_parts_of_alpha(three: AdaptiveLog) -> None:
    model = Contrast(three, treatment=0, control=1)
    before, after = model.fit("released"), model.fit("released", named="after")
    np.testing.assert_allclose(
        after.conf_int(alpha=0.06).to_numpy(), before.conf_int(alpha=0.02).to_numpy(), rtol=1e-9
    )
    assert says(before.notes, releases.NAMED_BEFORE)
    assert says(after.notes, releases.NAMED_AFTER, pairs=3)


def test_notes_name_the_epoch_and_its_share(three: AdaptiveLog) -> None:
    notes = Contrast(three, treatment=0, control=2).fit("released").notes
    assert says(notes, releases.EPOCH_ALONE, epoch=1)
    (told,) = [note for note in notes if says(note, releases.EPOCH_SHARE)]
    assert told.values["share"] == pytest.approx(0.1)


def test_one_context_agrees_with_cate() -> None:
    groups = environments.FiniteContext([1.0], [[0.3, 0.6]])
    log = designs.DPConSE(epsilon=1.0, contrast_share=1.0).run(groups, 4_000, rng=0)
    by_group = CATE(log, by="feature").fit("released")
    whole = Contrast(log, treatment=1, control=0).fit("released")
    np.testing.assert_allclose(whole.conf_int().to_numpy(), by_group.conf_int().to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(whole.params.to_numpy(), by_group.params.to_numpy(), rtol=1e-12)
    assert by_group.details["released_count"][0] == 2_000.0
    low, high = Contrast(log_of("two"), treatment=1, control=0).fit("released").conf_int().to_numpy()[0]
    assert low < 0.3 < high


def test_refusals(three: AdaptiveLog) -> None:
    with pytest.raises(InvalidForLog) as caught:
        Contrast(log_of("plain"), treatment=1, control=0).fit("released")
    assert says(caught.value.reason, releases.NO_PAIR_EFFECT)
    assert any("alee" in way for way in caught.value.alternatives)
    groups = environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    several = designs.DPConSE(epsilon=1.0).run(groups, 2_000, rng=0)
    with pytest.raises(InvalidForLog) as caught:
        Contrast(several, treatment=1, control=0).fit("released")
    assert says(caught.value.reason, releases.SEVERAL_GROUPS, n=2, groups="0, 1")
    moved = three.releases.assign(scale=three.releases["scale"] / 2)
    other = AdaptiveLog.from_arrays(three.arrays, arms=three.arms, design=three.design, releases=moved)
    with pytest.raises(InvalidForLog) as caught:
        Contrast(other, treatment=1, control=0).fit("released")
    assert says(caught.value.reason, releases.OTHER_SCALES, epoch=2)
    none = AdaptiveLog.from_arrays(
        three.arrays, arms=three.arms, design=three.design, releases=three.releases.iloc[:0]
    )
    with pytest.raises(InvalidForLog) as caught:
        Contrast(none, treatment=1, control=0).fit("released")
    assert says(caught.value.reason, releases.NO_COMMON_EPOCH)
    with pytest.raises(InvalidForLog) as caught:
        ArmMeans(three).fit("released")
    assert says(caught.value.reason, releases.NOTHING_IN_TIME)
    assert caught.value.alternatives == ("Contrast(log, treatment=, control=).fit('released')",)


@pytest.mark.parametrize("pair", [(0, 1), (0, 2)])
def test_units_that_return_before_the_epoch_ends_are_refused(
    three: AdaptiveLog, pair: tuple[int, int]
) -> None:
    """The last epoch of both arms, and all before it, whose releases decide its level; not what follows."""
    treatment, control = pair
    common = three.releases[three.releases["group"].isin(pair)].groupby("round")["group"].nunique()
    end = int(common[common == 2].index.max())

    def fitted(first: int, again: int) -> Any:
        given = {"design": three.design, "releases": three.releases, "guarantee": three.guarantee}
        log = AdaptiveLog.from_arrays(three.arrays, arms=three.arms, **given)
        log.units = np.arange(three.n_rounds)
        log.units[again] = log.units[first]
        return Contrast(log, treatment=treatment, control=control).fit("released")

    for places in ((0, 1), (0, end - 1), (end - 2, end - 1)):
        with pytest.raises(InvalidForLog) as caught:
            fitted(*places)
        assert says(caught.value.reason, releases.UNITS_CAME_BACK, n=1)
    told = Contrast(three, treatment=treatment, control=control).fit("released")
    np.testing.assert_array_equal(fitted(0, end).conf_int().to_numpy(), told.conf_int().to_numpy())


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"estimator": "released", "weights": "sqrt"}, "weights does not apply to private releases"),
        ({"estimator": "released", "test": "t"}, "test must be auto for private releases"),
        ({"estimator": "released", "named": "later"}, "named must be one of 'before', 'after', got 'later'"),
        ({"estimator": "released", "named": 3}, "named must be a string, got 3"),
        (
            {"estimator": "released", "chosen_from": "releases"},
            "chosen_from does not apply to private releases, whose test has no corrected columns",
        ),
        ({"estimator": "alee", "named": "after"}, "named='after' applies only to released"),
    ],
)
def test_odd_arguments(three: AdaptiveLog, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError, match=told):
        Contrast(three, treatment=1, control=0).fit(**arguments)


def test_it_is_recommended_where_it_serves(three: AdaptiveLog) -> None:
    rows = recommend(three, "contrast", treatment=1, control=0).methods
    own = next(row for row in rows if row.verdict.name == "released")
    assert own.verdict.label == "asymptotic"
    assert own.call == "Contrast(log, treatment=1, control=0).fit(estimator='released')"
    assert own.run().private
