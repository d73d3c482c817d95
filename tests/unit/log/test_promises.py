"""What a log says of privacy beside its guarantee: who vouches for it, persons, counts by design."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from claims_said import says

import adaptinf as ai
from adaptinf.claims import tables
from adaptinf.claims.logs import promises as claims
from adaptinf.claims.privacy import guarantees, releases
from adaptinf.errors import InvalidForLog, LogValidationError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog, read_log
from adaptinf.log.validation import nested_options
from adaptinf.simulation.environments import (
    BernoulliArms,
    Environment,
    FiniteContext,
    LinearArms,
    NormalArms,
    SmoothArms,
    Tableau,
)
from adaptinf.simulation.environments.cube_contexts import AuxiliaryLog

FRAME = pd.DataFrame(
    {"arm": ["a", "b", "a", "b", "a"], "y": [1.0, 0.0, 1.0, 1.0, 0.0], "who": ["x", "y", "x", "z", "x"]}
)
ROLES: dict[str, Any] = {"action": "arm", "reward": "y", "unit": "who", "reward_range": (0, 1)}
PROMISE = PrivacyGuarantee(0.5)


def own_log(**options: Any) -> AdaptiveLog:
    return AdaptiveLog(FRAME, **nested_options({**ROLES, "guarantee": PROMISE, **options}))


def test_a_log_with_repeated_units_states_both_guarantees() -> None:
    log = own_log()
    assert log.guarantee == PROMISE
    person = log.person_guarantee
    assert person is not None
    assert (person.epsilon, person.rounds) == (1.5, 3)
    assert person.reasons[0] == claims.MOST_ROUNDS(most=3)
    whole = "epsilon = 1.5, pure, per person with at most 3 rounds (reward), central, standard"
    assert repr(log).splitlines()[2:4] == [
        "  guarantee: epsilon = 0.5, pure, per reward, central, standard; stated by the user, not derived",
        f"  {claims.PERSON(guarantee=whole)}",
    ]


def test_a_declared_cap_takes_the_place_of_the_most_rounds() -> None:
    log = own_log(rounds_per_unit=4)
    assert log.person_guarantee == PROMISE.group(4)
    assert own_log(guarantee=PROMISE.group(2)).person_guarantee.epsilon == 2.0  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"rounds_per_unit": 2}, "rounds_per_unit is 2, but 1 unit has more (up to 3)"),
        ({"rounds_per_unit": 0}, "rounds_per_unit must be a whole number of at least 1, got 0"),
        ({"rounds_per_unit": 3, "unit": None}, "rounds_per_unit requires unit="),
        ({"released_rounds": 6}, "released_rounds must be a whole number from 0 to 5, got 6"),
        ({"released_rounds": True}, "released_rounds must be a whole number from 0 to 5, got True"),
        (
            {"feedback_rounds": 4, "released_rounds": 3},
            "released_rounds = 3 must be at least feedback_rounds = 4",
        ),
    ],
)
def test_counts_that_cannot_be_are_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(LogValidationError) as caught:
        own_log(**options)
    assert told in str(caught.value)
    assert len(caught.value.problems) == 1


def test_logs_without_units_or_with_one_round_each_state_one_guarantee() -> None:
    assert own_log(unit=None).person_guarantee is None
    single = FRAME.assign(who=list("uvwxy"))
    assert AdaptiveLog(single, **ROLES, guarantee=PROMISE).person_guarantee is None
    assert own_log(guarantee=None).person_guarantee is None


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_files_keep_who_vouches_and_the_counts(tmp_path: Path, name: str) -> None:
    logs = [
        own_log(rounds_per_unit=3, feedback_rounds=2, released_rounds=4),
        ai.designs.PrivateUCB(epsilon=1.0).run(BernoulliArms([0.5, 0.4]), horizon=20, rng=0),
    ]
    for log in logs:
        path = tmp_path / name
        log.to_parquet(path) if name.endswith("parquet") else log.to_csv(path)
        read = read_log(path)
        assert read.equals(log)
        kept = (
            "guarantee_source",
            "released_rounds",
            "feedback_rounds",
            "rounds_per_unit",
            "person_guarantee",
        )
        assert [getattr(read, one) for one in kept] == [getattr(log, one) for one in kept]
    assert (logs[0].guarantee_source, logs[1].guarantee_source) == ("stated", "design")


def test_results_say_that_a_guarantee_was_typed_in() -> None:
    result = ai.ArmMeans(own_log()).fit(estimator="sample-mean", test="t")
    assert "Guarantee: not covered" in " ".join(str(result).split())
    stated = result.explain().texts
    assert says(stated, guarantees.AS_STATED)
    person = own_log().person_guarantee
    assert person.epsilon == 1.5
    assert says(stated, guarantees.ALL_ROUNDS_OF_A_UNIT, guarantee=person)
    assert says(stated, tables.CORRECTS_ROUNDS)
    log = ai.designs.PrivateUCB(epsilon=1.0).run(BernoulliArms([0.5, 0.4]), horizon=200, rng=0)
    plain = ai.ArmMeans(log).fit(estimator="sample-mean")
    assert not any("stated" in text for text in (str(plain), *plain.explain().texts))


FEATURES = [[0.0, 1.0], [0.0, 0.5], [1.0, 0.0], [0.5, 0.5], [0.2, 0.3]]
LINEAR = LinearArms([[0.9, 0.1], [0.1, 0.9]], contexts="orthant", rewards="bernoulli")
GROUPS = FiniteContext(probabilities=[0.5, 0.5], means=[[0.1, 0.9], [0.5, 0.5]])
FIVE = BernoulliArms([0.9, 0.45, 0.2, 0.55, 0.31])
COUNTS: dict[str, tuple[Any, Environment, int]] = {
    "PrivateUCB": (ai.designs.PrivateUCB(epsilon=1.0), BernoulliArms([0.5, 0.4]), 100),
    "LinPriv": (ai.designs.LinPriv(epsilon=1.0), LINEAR, 100),
    "PrivateSuccessiveElimination": (
        ai.designs.PrivateSuccessiveElimination(epsilon=1.0, beta=0.5),
        BernoulliArms([0.9, 0.1]),
        6_000,
    ),
    "DPConSE": (ai.designs.DPConSE(epsilon=1.0), GROUPS, 4_000),
    "DPBAI": (ai.designs.DPBAI(epsilon=1.0, features=FEATURES), FIVE, 203),
    "DPOD": (ai.designs.DPOD(epsilon=1.0, features=FEATURES), FIVE, 203),
    "LDPBandit": (ai.designs.LDPBandit(epsilon=4.0), SmoothArms(n_arms=3, dimension=2), 200),
    "LDPLinear": (ai.designs.LDPLinear(epsilon=4.0), SmoothArms(n_arms=3, dimension=2), 200),
}


def expected_counts(name: str, log: AdaptiveLog) -> tuple[int, int]:
    """Rounds that can move actions, and releases too, from the log's own columns."""
    last = int(log.releases["round"].max()) if len(log.releases) else 0
    if name == "DPConSE":
        used, half = log.arrays.randomised, log.n_rounds // 2
        assert used is not None
        return int(used[:half].sum()), int(used.sum())
    if name == "PrivateSuccessiveElimination":
        return min(last, log.n_rounds - 1), last
    return (last, last) if name in ("DPBAI", "DPOD") else (log.n_rounds - 1, log.n_rounds)


@pytest.mark.parametrize("name", COUNTS)
def test_designs_say_how_many_rounds_can_move_actions_and_releases(name: str) -> None:
    design, env, horizon = COUNTS[name]
    log = design.run(env, horizon=horizon, rng=1)
    assert (log.feedback_rounds, log.released_rounds) == expected_counts(name, log)
    promised = log.reward_guarantee
    assert promised is not None
    for choice, n in (("actions", log.feedback_rounds), ("releases", log.released_rounds)):
        correction = ai.correction_for(log, chosen_from=choice)  # type: ignore[arg-type]
        assert (correction.epsilon, correction.n, correction.chosen_from) == (promised.epsilon, n, choice)  # type: ignore[union-attr]


TABLES: dict[str, tuple[Any, int, list[float]]] = {
    "PrivateSuccessiveElimination": (COUNTS["PrivateSuccessiveElimination"][0], 6_000, [0.9, 0.1]),
    "DPBAI": (COUNTS["DPBAI"][0], 203, [0.9, 0.45, 0.2, 0.55, 0.31]),
    "DPOD": (COUNTS["DPOD"][0], 203, [0.9, 0.45, 0.2, 0.55, 0.31]),
    "DPConSE": (COUNTS["DPConSE"][0], 4_000, [0.1, 0.9]),
    "PrivateUCB": (COUNTS["PrivateUCB"][0], 100, [0.5, 0.4]),
}


@pytest.mark.parametrize("name", TABLES)
def test_rewards_that_are_not_counted_move_neither_actions_nor_releases(name: str) -> None:
    design, horizon, means = TABLES[name]
    rewards = (np.random.default_rng(0).random((horizon, len(means))) < means).astype(float)
    log = design.run(Tableau(rewards, reward_range=(0, 1)), horizon=horizon, rng=2)
    last = int(log.releases["round"].max())
    counted = log.arrays.randomised if name == "DPConSE" else np.arange(horizon) < last
    assert counted is not None
    assert counted.sum() == log.released_rounds
    other = np.where(counted[:, None], rewards, 1.0 - rewards)
    again = design.run(Tableau(other, reward_range=(0, 1)), horizon=horizon, rng=2)
    assert np.array_equal(again.arrays.action, log.arrays.action)
    assert again.releases.equals(log.releases)
    everything = design.run(Tableau(1.0 - rewards, reward_range=(0, 1)), horizon=horizon, rng=2)
    assert not everything.releases.equals(log.releases)


def test_overridden_rounds_drop_out_of_designs_in_epochs() -> None:
    inner, env, _ = COUNTS["PrivateSuccessiveElimination"]
    log = ai.designs.Mixture(inner, exploration=0.2).run(env, horizon=9_000, rng=0)
    last = int(log.releases["round"].max())
    assert log.released_rounds is not None
    assert 0.7 * last < log.released_rounds < 0.9 * last


def test_a_log_that_does_not_say_counts_every_round() -> None:
    log = own_log(unit=None, feedback_rounds=2)
    assert ai.correction_for(log).n == 2  # type: ignore[union-attr]
    assert ai.correction_for(log, chosen_from="releases").n == 5  # type: ignore[union-attr]
    assert ai.correction_for(own_log(unit=None, released_rounds=4)).n == 5  # type: ignore[union-attr]


def test_a_correction_by_person_counts_persons_at_their_epsilon() -> None:
    correction = ai.correction_for(own_log(rounds_per_unit=3), unit="person")
    assert correction is not None
    assert (correction.epsilon, correction.n, correction.unit) == (1.5, 3, "person")
    assert correction.guarantee == PROMISE.group(3)
    assert "epsilon = 1.5, n = 3 persons" in correction.describe(0.05)


def test_a_correction_by_person_counts_units_that_print_alike() -> None:
    frame = pd.DataFrame({"a": [0, 1, 0], "y": [1.0, 0.0, 1.0], "u": ["a", "a\0", "b"]})
    log = ai.AdaptiveLog(frame, action="a", reward="y", unit="u", guarantee=PROMISE)
    assert ai.correction_for(log, unit="person").n == 3  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"unit": None}, "does not record which rounds belong to the same participant"),
        ({"guarantee": None}, "no reward-level privacy guarantee"),
        ({"guarantee": PrivacyGuarantee(0.5, 1e-6)}, "delta = 1e-06 is positive"),
    ],
)
def test_a_correction_by_person_is_refused_with_the_reason(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidForLog, match=told):
        ai.correction_for(own_log(**options), unit="person")


def test_auxiliary_participants_have_guarantees_of_their_own() -> None:
    rng = np.random.default_rng(0)
    arms, rewards, x1, x2 = rng.integers(0, 2, 40), rng.integers(0, 2, 40), rng.random(40), rng.random(40)
    old = AdaptiveLog(
        pd.DataFrame({"arm": arms, "y": 1.0 * rewards, "x1": x1, "x2": x2}),
        action="arm",
        reward="y",
        context=["x1", "x2"],
        reward_range=(0, 1),
    )
    for design in (
        ai.designs.LDPBandit(epsilon=4.0, auxiliary=(AuxiliaryLog(old, epsilon=2.0),)),
        ai.designs.LDPLinear(epsilon=4.0, auxiliary=(AuxiliaryLog(old, epsilon=2.0),)),
    ):
        own = PrivacyGuarantee(2.0, unit="record", model="local")
        assert design.auxiliary_guarantees() == (own,)
        log = design.run(SmoothArms(n_arms=2, dimension=2), horizon=100, rng=0)
        assert log.auxiliary_guarantees == (own,)
        assert log.guarantee.epsilon == 4.0  # type: ignore[union-attr]
        assert f"  auxiliary log 1: {own}" in repr(log).splitlines()
        table = ai.AdaptiveOLS(log).fit("none").explain().texts
        assert says(table, guarantees.AUXILIARY, guarantees=str(own))
        assert says(table, guarantees.COVERS_ACTIONS_OF_OTHERS)


def test_rounds_of_one_unit_make_released_sums_vary_more() -> None:
    """Exact, by enumeration: the covariance of two rounds is the variance of a unit's own effect over 4."""
    kinds = {(0.0, 1.0): 0.5, (1.0, 0.0): 0.3, (1.0, 1.0): 0.2}
    effects = {kind: kind[1] - kind[0] for kind in kinds}
    mean = sum(p * effects[kind] for kind, p in kinds.items())
    spread = sum(p * (effects[kind] - mean) ** 2 for kind, p in kinds.items())
    product = single = 0.0
    for (kind, p), first, second in itertools.product(kinds.items(), (0, 1), (0, 1)):
        parts = [(2 * arm - 1) * (kind[arm] - 0.5) for arm in (first, second)]
        product += 0.25 * p * parts[0] * parts[1]
        single += 0.25 * p * parts[0]
    assert product - single**2 == pytest.approx(spread / 4)
    assert spread > 0


def released_log(units: Any) -> AdaptiveLog:
    log = ai.designs.DPConSE(epsilon=1.0).run(GROUPS, horizon=2_000, rng=0)
    frame = log.frame.assign(who=units)
    return AdaptiveLog(
        frame,
        action="action",
        reward="reward",
        context=["feature"],
        unit="who",
        reward_range=(0, 1),
        guarantee=log.guarantee,
        columns={"randomised": "randomised", "phase": "phase"},
        about={"design": log.design, "releases": log.releases},
    )


def test_released_effects_of_units_that_came_back_are_refused() -> None:
    once = released_log(np.arange(2_000))
    ai.CATE(once, by="feature").fit(estimator="released")
    halves = np.concatenate([np.arange(1_000), np.arange(1_000)])  # back, but not among the last sums
    ai.CATE(released_log(halves), by="feature").fit(estimator="released")
    twice = released_log(np.arange(2_000) // 2)
    with pytest.raises(InvalidForLog) as error:
        ai.CATE(twice, by="feature").fit(estimator="released")
    assert says(error.value.reason, releases.UNITS_CAME_BACK, n=500)


def test_a_normal_environment_changes_nothing_of_this() -> None:
    log = ai.designs.UCB().run(NormalArms([0.0, 1.0]), horizon=50, rng=0)
    assert (log.guarantee_source, log.person_guarantee, log.auxiliary_guarantees) == (None, None, ())
