"""Audits of private designs under overrides: faults are caught, the right design is not refuted."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from adaptinf.audit import epsilon_lower_bound
from adaptinf.audit.privacy.designs import neighbouring_trials
from adaptinf.audit.privacy.designs.epoch_audits import EpochMeanScore, MomentScore
from adaptinf.designs import DPBAI, DPOD, DPBAIGauss, Mixture, PrivateSuccessiveElimination
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.simulation.transcripts import Transcripts, sample_transcripts

AXES = np.eye(2)
PLANE = [[1.0, 0.0], [0.0, 1.0], [0.7, 0.6]]
SPACE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.5, 0.4], [0.2, 0.9, 0.3]]

EPOCHS: list[tuple[Any, dict[str, Any], float]] = [
    (PrivateSuccessiveElimination, {"beta": 1.0}, 0.0),
    (PrivateSuccessiveElimination, {}, 0.0),
    (DPBAI, {"features": AXES}, 0.0),
    (DPBAI, {"features": PLANE}, 0.0),
    (DPBAI, {"features": SPACE}, 0.0),
    (DPBAI, {"features": PLANE, "max_det": False}, 0.0),
    (DPOD, {"features": AXES}, 0.0),
    (DPOD, {"features": PLANE}, 0.0),
    (DPOD, {"features": SPACE}, 0.0),
    (DPBAIGauss, {"features": PLANE}, 0.05),
]


@pytest.mark.parametrize(
    ("kind", "parameters", "delta", "exploration"),
    [(*one, 0.2) for one in EPOCHS] + [(*EPOCHS[place], 0.5) for place in (3, 7)],
)
def test_faults_are_caught_and_the_right_design_is_not(
    kind: Any, parameters: dict[str, Any], delta: float, exploration: float
) -> None:
    """Twice the epsilon is half the noise; bounds at 6,000 runs fall short of what millions give."""
    if delta:
        parameters = {**parameters, "delta": delta}
    right = Mixture(kind(epsilon=4.0, **parameters), exploration=exploration)
    found = epsilon_lower_bound(right, view="releases", runs=6_000, rng=1)
    assert 2.0 < found.epsilon <= 4.0
    assert not found.refuted
    promised = PrivacyGuarantee(epsilon=1.0, delta=delta)
    for epsilon in (2.0, 20.0):
        faulty = Mixture(kind(epsilon=epsilon, **parameters), exploration=exploration)
        assert epsilon_lower_bound(faulty, view="releases", promised=promised, runs=6_000, rng=2).refuted


@pytest.mark.parametrize("decay", [0.0, 0.5])
@pytest.mark.parametrize(("kind", "parameters", "delta"), EPOCHS)
def test_nearly_every_run_releases_and_the_last_rounds_show_it(
    kind: Any, parameters: dict[str, Any], delta: float, decay: float
) -> None:
    given = {"delta": delta} if delta else {}
    design = Mixture(kind(epsilon=4.0, **given, **parameters), exploration=0.4, decay=decay)
    (pair,) = neighbouring_trials(design)
    assert pair.design is not None
    assert f"plans for {pair.design.budget} rounds" in repr(pair.design)
    for env in (pair.first, pair.second):
        pieces = sample_transcripts(pair.design, env, pair.horizon, 0, 512, np.random.SeedSequence(0))
        seen = next(iter(pieces))
        ends = seen.releases[:, 0, 0]
        assert np.isfinite(ends).all()
        assert ends.max() <= min(set(range(pair.horizon)).difference(pair.hidden))
        assert np.isfinite(pair.score(seen)).all()


def literal(score: Any, seen: Transcripts, run: int) -> float:
    """Rounds one by one: what was summed on each table, and the densities of the release that it is in."""
    made = seen.releases[run][np.isfinite(seen.releases[run, :, 0])]
    if isinstance(score, MomentScore):
        if not len(made):
            return 0.0
        d = score.features.shape[1]
        sums = [np.zeros(d), np.zeros(d)]
        for step in range(int(made[0, 0])):
            if seen.statuses[run, step] != score.override:
                arm = seen.actions[run, step]
                for total, table in zip(sums, (score.first, score.second), strict=True):
                    total += table[step, arm] * score.features[arm]
        gap = [np.abs(made[:d, 3] - total) / made[:d, 4] for total in sums]
        return float((gap[0] - gap[1]).sum())
    if seen.statuses[run, score.row] == score.override:
        return 0.0
    own = seen.actions[run, score.row]
    start, total, other, count = 0, 0.0, 0.0, 0
    for end in sorted(set(made[:, 0].astype(int))):
        if end > score.row:
            for step in range(start, end):
                if seen.actions[run, step] == own and seen.statuses[run, step] != score.override:
                    count += 1
                    total += score.first[step, own]
                    other += score.second[step, own]
            (row,) = made[(made[:, 0] == end) & (made[:, 2] == own)]
            moved = [(row[3] - sum_ / count) / row[4] for sum_ in (total, other)]
            if score.normal:
                return float(0.5 * (moved[0] ** 2 - moved[1] ** 2))
            return float(abs(moved[0]) - abs(moved[1]))
        start = end
    return 0.0


@pytest.mark.parametrize(("kind", "parameters", "delta"), EPOCHS[2:])
def test_scores_leave_overridden_rounds_out(kind: Any, parameters: dict[str, Any], delta: float) -> None:
    given = {"delta": delta} if delta else {}
    (pair,) = neighbouring_trials(Mixture(kind(epsilon=2.0, **given, **parameters), exploration=0.3))
    assert isinstance(pair.score, (EpochMeanScore, MomentScore))
    assert pair.design is not None
    for horizon in (pair.horizon, pair.horizon // 2):  # the shorter one leaves runs without a release
        design = dataclasses.replace(pair.design)
        pieces = sample_transcripts(design, pair.second, horizon, 0, 128, np.random.SeedSequence(1))
        seen = next(iter(pieces))
        expected = [literal(pair.score, seen, run) for run in range(128)]
        np.testing.assert_allclose(pair.score(seen), expected, rtol=0.0, atol=1e-9)


def test_a_release_reveals_as_much_as_without_overrides() -> None:
    """The loss of a run that pulls the arm in the changed round is plus or minus epsilon at most."""
    (pair,) = neighbouring_trials(Mixture(DPOD(epsilon=2.0, features=AXES), exploration=0.3))
    assert pair.design is not None
    assert pair.score is not None
    pieces = sample_transcripts(pair.design, pair.first, pair.horizon, 0, 512, np.random.SeedSequence(2))
    scores = pair.score(next(iter(pieces)))
    assert np.abs(scores).max() == pytest.approx(2.0, abs=1e-9)


@pytest.mark.parametrize("exploration", [1.0, 0.999])
def test_so_many_overrides_that_nothing_shows_are_refused(exploration: float) -> None:
    design = Mixture(DPOD(epsilon=1.0, features=PLANE), exploration=exploration)
    with pytest.raises(ParameterError, match=r"neighbouring_trials: exploration .* audit the design itself"):
        neighbouring_trials(design)
