"""Audits of designs: the neighbours that they take, the claims that they refuse, and what they look at."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from adaptinf.audit.privacy.designs import audit_trials, neighbouring_trials
from adaptinf.audit.privacy.designs.audited_trial import Neighbours, replays
from adaptinf.audit.privacy.epsilon_audit import epsilon_lower_bound
from adaptinf.designs import DPConSE, LDPBandit, Mixture, PrivateUCB
from adaptinf.errors import ParameterError
from adaptinf.simulation.environments import Tableau


def ucb() -> tuple[PrivateUCB, Neighbours]:
    design = PrivateUCB(epsilon=1.0, counter="binary")
    return design, neighbouring_trials(design)[0]


@pytest.mark.parametrize(
    ("score", "message"),
    [
        (lambda seen: np.full(seen.actions.shape[0], np.nan), "with 2000 NaN"),
        (lambda seen: np.zeros(3), r"got shape \(3,\)"),
    ],
)
def test_a_score_is_one_number_a_run(score: Any, message: str) -> None:
    design, pair = ucb()
    with pytest.raises(ParameterError, match=message):
        epsilon_lower_bound(design, dataclasses.replace(pair, score=score), runs=2_000, rng=0)


def test_neighbours_run_the_design_that_is_audited() -> None:
    pair = neighbouring_trials(LDPBandit(epsilon=4.0))[0]
    with pytest.raises(ParameterError, match="neighbours are trials of a different design"):
        epsilon_lower_bound(LDPBandit(epsilon=1.0), pair, runs=2_000, rng=0)


@pytest.mark.slow
def test_neighbours_may_run_the_design_in_a_state() -> None:
    found = epsilon_lower_bound(LDPBandit(epsilon=4.0), runs=2_000, rng=0)
    assert 1.0 < found.epsilon <= 4.0


def test_actions_are_looked_at_where_they_tell_something() -> None:
    with pytest.raises(ParameterError, match="view='actions' leaves nothing to examine"):
        epsilon_lower_bound(LDPBandit(epsilon=1.0), view="actions", runs=2_000, rng=0)


@pytest.mark.slow
def test_actions_that_come_after_the_participant_tell_something() -> None:
    assert epsilon_lower_bound(DPConSE(epsilon=4.0), view="actions", runs=2_000, rng=0).epsilon > 0.5


def test_a_claim_is_held_against_neighbours_of_its_unit() -> None:
    design = DPConSE(epsilon=1.0)
    reward = design.reward_guarantee(100, 2)
    with pytest.raises(
        ParameterError,
        match="must be a guarantee per record, because the neighbours differ in one record; it is per reward",
    ):
        epsilon_lower_bound(design, neighbouring_trials(design)[0], promised=reward, runs=2_000, rng=0)


def test_neighbours_differ_in_one_unit() -> None:
    _, pair = ucb()
    first = np.full((7, 2), 0.5)
    second = first.copy()
    second[:3] = 1.0
    with pytest.raises(ParameterError, match="differ in one round, but they differ in rounds 1, 2, 3"):
        dataclasses.replace(pair, first=Tableau(first), second=Tableau(second))
    record = neighbouring_trials(DPConSE(epsilon=1.0))[0]
    with pytest.raises(ParameterError, match="the same contexts if unit is reward"):
        dataclasses.replace(record, unit="reward", hidden=())


def test_digits_of_a_designs_releases() -> None:
    zeros = np.zeros((8, 2))
    one = zeros.copy()
    one[0] = 1.0
    pair = Neighbours(Tableau(zeros), Tableau(one), 8, "reward", "reward 1 is 0 or 1")
    result = epsilon_lower_bound(PrivateUCB(epsilon=1.0), pair, view="digits", runs=10_000, rng=0)
    assert result.refuted
    assert result.event.startswith("the log-ratio of the sizes and lowest set bits of the released values")


def test_an_action_that_does_not_follow_from_the_releases_is_a_finding() -> None:
    design = PrivateUCB(epsilon=1.0)
    trial = audit_trials(design)[2]
    seen = trial.sample(design, 64, np.random.SeedSequence(0))
    assert seen.rewards.shape == seen.actions.shape
    (replay,) = replays(trial, design)
    _, _, same, _ = replay(seen)
    assert same.what == "the arm"
    assert np.array_equal(same.seen, same.recomputed)
    actions = seen.actions.copy()
    actions[5, -1] = (actions[5, -1] + 1) % 3
    other = replay(dataclasses.replace(seen, actions=actions))[2]
    assert np.argwhere(other.seen != other.recomputed).tolist() == [[5, actions.shape[1] - 1]]
    # a release that is another one changes what must be done later
    releases = seen.releases.copy()
    releases[5, 3, 3] += 50.0
    later = replay(dataclasses.replace(seen, releases=releases))[2]
    assert set(np.nonzero(later.seen != later.recomputed)[0].tolist()) == {5}


@pytest.mark.parametrize("exploration", [0.0, 0.3])
def test_exact_counts_are_recomputed(exploration: float) -> None:
    own = DPConSE(epsilon=1.0, contrast_share=1)
    design = Mixture(own, exploration) if exploration else own
    for trial in audit_trials(design):
        seen = trial.sample(design, 64, np.random.SeedSequence(0))
        assert trial.replay is not None
        assert trial.noise is not None
        parts = [part for one in replays(trial, design) for part in one(seen)]
        assert parts[-1].what == "the exact count"
        for part in parts:
            np.testing.assert_array_equal(part.seen, part.recomputed)
        (noise,) = trial.noise(seen)
        assert all(name.startswith("the contrast of context 0") for name in noise.names)
        assert 0.45 < noise.uniforms.mean() < 0.55
        # a count that is another one than that of the rounds
        releases = seen.releases.copy()
        releases[5, releases[5, :, 1] == 1, 3] += 1.0
        counts = trial.replay(dataclasses.replace(seen, releases=releases))[0]
        assert np.unique(np.nonzero(counts.seen != counts.recomputed)[0]).tolist() == [5]


@pytest.mark.slow
def test_defaults_look_at_releases_and_actions() -> None:
    design, pair = ucb()
    both = epsilon_lower_bound(design, pair, runs=4_000, rng=0)
    alone = [
        epsilon_lower_bound(design, pair, view=view, runs=4_000, rng=0) for view in ("releases", "actions")
    ]
    # half of the error each: never above the better of the two
    assert both.epsilon <= max(one.epsilon for one in alone)
    assert both.looked[0].startswith("Replayed, 512 runs each: two arms for 1,100 rounds")
    assert all(one.looked == () for one in alone)
    blind = epsilon_lower_bound(design, dataclasses.replace(pair, score=None), runs=4_000, rng=0)
    assert blind.event.startswith("the arms pulled in all rounds are")
