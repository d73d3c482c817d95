"""Faults of designs by epochs, planted under an unchanged promise: each is caught, the right one is not."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from adaptinf.audit import EpsilonLowerBound, epsilon_lower_bound
from adaptinf.audit.privacy.designs.audited_trial import Neighbours, one_reward_apart
from adaptinf.audit.privacy.designs.stopping_audits import stopping_outputs
from adaptinf.designs.arms.elimination import PrivateSuccessiveElimination
from adaptinf.designs.best_arm.linear_best_arm import DPBAI, DPOD, DPBAIGauss
from adaptinf.designs.stopping.stopping_rules import DPNAS
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.privacy.real_mechanisms import gaussian_delta
from adaptinf.simulation.environments import Environment, Tableau
from adaptinf.simulation.replicate import Program
from adaptinf.simulation.transcripts import Transcripts

AXES = np.eye(2)


# --- half the noise --------------------------------------------------------------------------------------


class QuietMeans(DPBAI):
    def _noise(self) -> float:
        return 0.5 * super()._noise()


class QuietNormalMeans(DPBAIGauss):
    def _noise(self) -> float:
        return 0.5 * super()._noise()


class QuietMoments(DPOD):
    def _noise(self) -> float:
        return 0.5 * super()._noise()


class QuietElimination(PrivateSuccessiveElimination):
    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        right = super().program(environment, horizon, recording=recording, by_rounds=by_rounds)
        return dataclasses.replace(right, tables=right.tables._replace(epsilon=2.0 * self.epsilon))


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
@pytest.mark.parametrize(
    ("right", "faulty", "parameters"),
    [
        (DPBAI, QuietMeans, {"features": AXES}),
        (DPBAIGauss, QuietNormalMeans, {"features": AXES, "delta": 0.05}),
        (DPOD, QuietMoments, {"features": AXES}),
        (PrivateSuccessiveElimination, QuietElimination, {"beta": 1.0}),
    ],
)
def test_half_the_noise(right: Any, faulty: Any, parameters: dict[str, Any], epsilon: float) -> None:
    kept = epsilon_lower_bound(right(epsilon=epsilon, **parameters), view="releases", runs=10_000, rng=1)
    broken = epsilon_lower_bound(faulty(epsilon=epsilon, **parameters), view="releases", runs=10_000, rng=1)
    assert kept.promised == broken.promised
    assert kept.epsilon <= epsilon < broken.epsilon
    assert broken.refuted


# --- a budget that is not split --------------------------------------------------------------------------


class Unsplit(DPNAS):
    """All of epsilon for the threshold, for the looks and for the estimate."""

    shares: ClassVar[tuple[int, int, int]] = (1, 1, 1)


@pytest.mark.parametrize(
    ("epsilon", "steps", "runs"),
    [
        (0.5, "exponential", 300_000),
        (1.0, "exponential", 100_000),
        (2.0, "exponential", 300_000),
        (1.0, "every", 20_000),
    ],
)
def test_a_budget_that_is_not_split(epsilon: float, steps: str, runs: int) -> None:
    right = DPNAS(epsilon=epsilon, alpha=0.9, beta=0.5, steps=steps)
    faulty = Unsplit(epsilon=epsilon, alpha=0.9, beta=0.5, steps=steps)
    assert faulty.guarantee().epsilon == 3.0 * epsilon
    for rule, caught in ((right, False), (faulty, True)):
        found = epsilon_lower_bound(stopping_outputs(rule), runs=runs, promised=right.guarantee(), rng=2)
        assert found.refuted == caught


# --- sums that are not reset -----------------------------------------------------------------------------

EPOCHS = 4


class ShortEpochs(PrivateSuccessiveElimination):
    """Epochs of one pass, in which nothing is ever dropped."""

    reset: ClassVar[bool] = True

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        return []

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        right = super().program(environment, 2_000, recording=recording, by_rounds=by_rounds)
        epochs = horizon // environment.n_arms
        shape = (environment.n_arms + 1, epochs)
        tables = right.tables._replace(
            by_epochs=self.reset,
            lengths=np.ones(shape),
            thresholds=np.full(shape, np.inf),
            log_start=1e6,
            released=np.zeros((environment.n_arms * epochs, 5)),
        )
        return dataclasses.replace(right, tables=tables)


class NeverReset(ShortEpochs):
    """Means of all rewards so far, with fresh noise in every epoch."""

    reset: ClassVar[bool] = False


@dataclass(frozen=True)
class FirstArmScore:
    """Log-likelihood ratio of the first arm's releases where its first reward is in each of `epochs` means.

    All other rewards are 0. A mean of r rewards moves by 1 / r, in noise of scale 1 / (epsilon r).
    """

    epochs: int

    def __call__(self, seen: Transcripts) -> np.ndarray:
        means = seen.releases[:, : 2 * self.epochs : 2]
        moved = 1.0 / np.arange(1, self.epochs + 1)
        gain = np.abs(means[:, :, 3]) - np.abs(means[:, :, 3] - moved)
        return np.asarray((gain / means[:, :, 4]).sum(axis=1))


def audit(design: ShortEpochs, epochs: int) -> EpsilonLowerBound:
    first, second = one_reward_apart(np.zeros((2 * EPOCHS, 2)), row=0)
    score = FirstArmScore(epochs)
    pair = Neighbours(Tableau(first), Tableau(second), 2 * EPOCHS, "reward", "round 1", score)
    return epsilon_lower_bound(design, pair, view="releases", runs=20_000, rng=3)


@pytest.mark.parametrize("epsilon", [0.5, 1.0])
def test_sums_that_are_not_reset_between_epochs(epsilon: float) -> None:
    """The reward is used again in each of four epochs: it costs up to four times epsilon."""
    right, faulty = ShortEpochs(epsilon=epsilon, beta=1.0), NeverReset(epsilon=epsilon, beta=1.0)
    kept, broken = audit(right, 1), audit(faulty, EPOCHS)
    assert kept.promised == broken.promised == PrivacyGuarantee(epsilon)
    assert 0.6 * epsilon < kept.epsilon <= epsilon
    assert 1.4 * epsilon < broken.epsilon <= EPOCHS * epsilon
    # where a reward is in one mean only, looking at four of them finds no more
    assert audit(right, EPOCHS).epsilon <= epsilon


# --- the classical Gaussian beyond epsilon = 1 -----------------------------------------------------------


def test_the_classical_standard_deviation_beyond_its_range() -> None:
    """At (6, .5) the published noise gives a delta of .734, and at that delta of .5 an epsilon of 8.8."""
    epsilon, delta = 6.0, 0.5
    promised = PrivacyGuarantee(epsilon, delta)
    published = DPBAIGauss(epsilon=epsilon, delta=delta, features=AXES, calibration="published")
    assert gaussian_delta(epsilon, published._noise()) == pytest.approx(0.7337, abs=1e-4)
    assert gaussian_delta(8.837, published._noise()) == pytest.approx(delta, abs=1e-4)
    broken = epsilon_lower_bound(
        published, view="releases", promised=promised, delta=delta, runs=80_000, rng=4
    )
    assert broken.epsilon > epsilon
    assert broken.refuted
    corrected = DPBAIGauss(epsilon=epsilon, delta=delta, features=AXES)
    kept = epsilon_lower_bound(corrected, view="releases", promised=promised, delta=delta, runs=80_000, rng=4)
    assert 4.0 < kept.epsilon <= epsilon
