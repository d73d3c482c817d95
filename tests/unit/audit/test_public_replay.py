"""The one replay of all designs, beside decisions that are written a second time in plain NumPy."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from literal_replays import EliminationReplay, LinearReplay, LiteralBins, SumsReplay, UCBReplay

from adaptinf.audit.privacy.designs import AuditTrial, audit_trials
from adaptinf.audit.privacy.designs.audited_trial import fixed_contexts, public_replay, replays
from adaptinf.designs import (
    DPBAI,
    DPOD,
    Design,
    DPBAIGauss,
    DPConSE,
    LDPBandit,
    LinPriv,
    Mixture,
    PrivateSuccessiveElimination,
    PrivateUCB,
    Uniform,
)
from adaptinf.privacy.noise import Fixed, gaussian, laplace, uniform
from adaptinf.simulation.environments import BernoulliArms
from adaptinf.simulation.transcripts import Transcripts, replay

RUNS = 32
FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]])

DESIGNS: dict[str, Design] = {
    "PrivateUCB": PrivateUCB(epsilon=1.0),
    "PrivateUCB, binary": PrivateUCB(epsilon=2.0, counter="binary", noise_width="tail-bound"),
    "PrivateUCB, published": PrivateUCB(epsilon=1.0, calibration="published"),
    "PrivateSuccessiveElimination": PrivateSuccessiveElimination(epsilon=4.0, beta=1.0),
    "DPConSE": DPConSE(epsilon=4.0, alpha=0.9),
    "DPConSE, exact counts": DPConSE(epsilon=1.0, contrast_share=1),
    "LinPriv": LinPriv(epsilon=1.0, dimension=3),
    "LinPriv, normal": LinPriv(epsilon=1.0, delta=1e-3, noise="gaussian", noise_width="ridge"),
    "LinPriv, published": LinPriv(epsilon=1.0, calibration="published", dimension=2),
    "DPBAI": DPBAI(epsilon=1.0, features=FEATURES),
    "DPBAIGauss": DPBAIGauss(epsilon=1.0, delta=1e-3, features=FEATURES, max_det=False),
    "DPOD": DPOD(epsilon=1.0, features=FEATURES),
    "LDPBandit": LDPBandit(epsilon=4.0),
}
DESIGNS |= {f"Mixture of {name}": Mixture(design, exploration=0.3) for name, design in DESIGNS.items()}
by_design = pytest.mark.parametrize("name", DESIGNS)


def shown(trial: AuditTrial, design: Design) -> Transcripts:
    return trial.sample(design, RUNS, np.random.SeedSequence(3))


def literal(trial: AuditTrial, design: Design) -> Any:
    """Decisions written a second time; None of designs that have none."""
    run = design if trial.design is None else trial.design
    program = run.program(trial.environment, trial.horizon, recording=True)
    override = program.n_statuses - 1 if program.share.size else -1
    inner = run.design if isinstance(run, Mixture) else run
    tables = program.tables
    contexts = fixed_contexts(trial.environment, trial.horizon)
    if isinstance(inner, PrivateUCB):
        return UCBReplay(tables, override)
    if isinstance(inner, PrivateSuccessiveElimination):
        return EliminationReplay(tables.n_arms, tables.lengths, tables.thresholds, override)
    if isinstance(inner, LinPriv):
        vectors = contexts.reshape(trial.horizon, tables.n_arms, tables.dimension)
        return LinearReplay(tables, vectors, override)
    if isinstance(inner, DPConSE):
        return SumsReplay(tables, contexts[:, 0].astype(np.int64), override)
    return LiteralBins(tables) if isinstance(inner, LDPBandit) else None


@by_design
def test_decisions_follow_from_what_is_released_and_a_second_writing_agrees(name: str) -> None:
    design, looked = DESIGNS[name], 0
    for trial in audit_trials(design):
        seen = shown(trial, design)
        parts = [part for one in replays(trial, design) for part in one(seen)]
        again = literal(trial, design) if parts else None
        for part in [*parts, *(again(seen) if again else ())]:
            np.testing.assert_array_equal(part.seen, part.recomputed)
        looked += bool(parts)
    assert looked >= 1


@by_design
def test_other_releases_are_noticed(name: str) -> None:
    """In their own run alone; a mixture's short trials may override the rounds in which they would tell."""
    design, noticed = DESIGNS[name], set[int]()
    for trial in audit_trials(design):
        seen = shown(trial, design)
        releases = seen.releases.copy()
        moved = np.random.default_rng(1).normal(scale=100.0, size=releases.shape[1])
        releases[5, :, 3] += np.where(releases[5, :, 4] > 0.0, moved, 0.0)
        for one in replays(trial, design):
            for part in one(dataclasses.replace(seen, releases=releases)):
                apart = np.asarray(part.seen, float) != np.asarray(part.recomputed, float)
                apart &= ~(np.isnan(part.seen) & np.isnan(part.recomputed))
                noticed |= set(np.nonzero(apart)[0].tolist())
    assert noticed <= {5}
    assert noticed or isinstance(design, Mixture)


@pytest.mark.parametrize("name", [name for name in DESIGNS if "LDP" not in name and "Mixture" not in name])
def test_another_arm_and_a_late_release_are_noticed(name: str) -> None:
    design, looked = DESIGNS[name], 0
    for trial in audit_trials(design):
        again = public_replay(design, trial.environment, trial.horizon)
        if again is None:
            continue
        seen = shown(trial, design)
        coins = np.flatnonzero([status.randomised for status in design.statuses])
        decided = np.flatnonzero(~np.isin(seen.statuses[2], coins))
        if decided.size:
            actions = seen.actions.copy()
            actions[2, decided[-1]] = (actions[2, decided[-1]] + 1) % trial.environment.n_arms
            arm = again(dataclasses.replace(seen, actions=actions))[2]
            assert [2, int(decided[-1])] in np.argwhere(arm.seen != arm.recomputed).tolist()
            looked += 1
        releases = seen.releases.copy()
        releases[3, 0, 0] += 1.0
        ends = again(dataclasses.replace(seen, releases=releases))[0]
        apart = (ends.seen != ends.recomputed) & ~(np.isnan(ends.seen) & np.isnan(ends.recomputed))
        assert 3 in np.nonzero(apart)[0]
    assert looked or name == "DPConSE, exact counts"


def test_the_kind_of_a_round_is_held_against_what_any_coin_gives() -> None:
    """A participant whose worse arm is dropped is not randomised, whatever the coin."""
    design = DESIGNS["DPConSE"]
    trial = audit_trials(design)[0]
    seen = shown(trial, design)
    again = public_replay(design, trial.environment, trial.horizon)
    assert again is not None
    run, step = np.argwhere(seen.statuses == 1)[0].tolist()
    statuses = seen.statuses.copy()
    statuses[run, step] = 0
    kind = again(dataclasses.replace(seen, statuses=statuses))[1]
    assert np.argwhere(kind.seen != kind.recomputed).tolist() == [[run, step]]


def test_what_is_private_cannot_be_read_without_being_noticed() -> None:
    """A replay hands over no private row, and its source has no noise."""
    assert np.isnan([laplace(Fixed(0.3), 1.0), gaussian(Fixed(0.3), 1.0)]).all()
    assert uniform(Fixed(0.3)) == 0.3
    design = PrivateUCB(epsilon=1.0)
    program = design.program(BernoulliArms([0.5, 0.5]), 8, recording=True)
    rows = []

    def entry(tables: Any, seen: Any, source: Any, public: Any, again: Any) -> None:
        rows.append((public.shape, np.isnan(public.base[program.n_public :]).all()))

    nothing = Transcripts(np.zeros((1, 8), dtype=np.int64), np.zeros((1, 8, 5)), np.zeros((1, 0)))
    replay(dataclasses.replace(program, replay=entry), nothing, 0.0)  # type: ignore[arg-type]
    assert rows == [((program.n_public, program.state_shape[1]), True)]


def test_designs_whose_releases_settle_nothing_are_not_replayed() -> None:
    arms = BernoulliArms([0.5, 0.5])
    assert public_replay(Uniform(), arms, 10) is None
    assert public_replay(PrivateUCB(epsilon=1.0), BernoulliArms([0.5]), 10) is None
