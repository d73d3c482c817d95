"""Mixture: any design, with a share of rounds assigned uniformly, so that propensities are known."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.designs.run_results import Status
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignRecord, DesignTraits, Floor
from adaptinf.parameters import NonNegative, Share
from adaptinf.sessions.steppers import ExactSums
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run
from adaptinf.typing import FloatArray

_OVERRIDE = Status("override", randomised=False)


def _own(name: str, told: str) -> Any:
    """A property that a mixture takes from its design."""
    return property(lambda mixture: getattr(mixture.design, name), doc=told)


@dataclass(frozen=True)
class Mixture(Design):
    """Follow a design but, with a known probability, ignore it and draw an arm uniformly.

    Parameters
    ----------
    design : Design
        The design that proposes an arm in every round.
    exploration : float
        Probability of overriding the proposal, in (0, 1].
    decay : float
        In round t, the probability of an override is exploration * t^-decay.

    Notes
    -----
    If delta_t is the probability of an override, an arm's propensity is delta_t / K plus (1 - delta_t) times
    the design's propensity if it has one, and otherwise times 1 for the proposal and 0 for the others. The
    propensity is known even if the design's own propensity depends on the noise of private counters, because
    it is conditional on the proposal. IPW, AIPW and confidence sequences therefore apply to any design.

    An index design (UCB, PrivateUCB, Thompson, EpsilonGreedy, LinUCB, LinPriv) learns from the arm that was
    actually pulled. A design that works in epochs (SuccessiveElimination, PrivateSuccessiveElimination, the
    best-arm designs) skips the round and repeats the proposal; a design that needs its whole budget may then
    recommend no arm. LDPBandit and ABSE learn from the pulled arm if that arm remains in the bin. ConSE and
    DPConSE keep their schedule and count the arrival, but the reward enters none of their sums.

    The privacy guarantee is that of the design: overrides are determined by coins that do not depend on the
    data; given these coins, each reward enters the same released sums as before, or none. The proposals count
    as outputs.

    References
    ----------
    Liang, B. and Bojinov, I. (2023). An experimental design for anytime-valid causal inference on
    multi-armed bandits.

    Molitor, D. and Gold, S. (2025). Anytime-valid inference in adaptive experiments: covariate adjustment
    and balanced power.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.Mixture(ai.designs.PrivateUCB(epsilon=1.0), exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.9, 0.5]), horizon=500, rng=0)
    >>> sorted(set(log.arrays.propensity.round(2).tolist()))
    [0.1, 0.9]
    >>> log.guarantee.epsilon
    1.0
    """

    design: Design
    exploration: Share = 0.1
    decay: NonNegative = 0.0

    @property
    def traits(self) -> DesignTraits:
        """Traits: as for the design, with random draws and a floor; whether counts are stable is unknown.

        The proposals are outputs, and overridden rounds may be marked by a phase; the coins are not outputs.
        """
        own = self.design.traits
        outputs = None if own.outputs is None else dataclasses.replace(own.outputs, phase="not covered")
        return dataclasses.replace(
            own,
            own_coins=True,
            floor=Floor(self.exploration, self.decay, shared=True),
            stability=None,
            outputs=outputs,
        )

    def _problems(self) -> list[str]:
        design: Any = self.design
        if isinstance(design, Design) and not isinstance(design, Mixture):
            return []
        return [f"design must be a design, and not itself a Mixture, got {design!r}"]

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The fewest rounds that the design needs; other requirements are checked by the design itself."""
        return Needs(min_horizon=self.design.needs.min_horizon)

    pending = _own("pending", "Outcomes that may be pending when the design proposes an arm.")
    growing = _own("growing", "Whether an arm may join while the design is used.")
    domain = _own("domain", "Where the design's context vectors must lie.")
    lost = _own("lost", "Reward that the design uses for an outcome that never arrives.")
    lost_unsaid = _own("lost_unsaid", "The same for trials whose file does not state it.")
    nodes = _own("nodes", "Identifier of a node of the design's exact noise.")
    inexact = _own("inexact", "Reason why the design has no exact noise.")

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """The design's largest scale, because overrides draw no noise."""
        return self.design.largest_scale(horizon, n_arms)

    def exact_sums(self, horizon: int, n_arms: int) -> ExactSums | None:
        """As for the design."""
        return self.design.exact_sums(horizon, n_arms)

    def longest_window(self, horizon: int) -> float:
        """As for the design."""
        return self.design.longest_window(horizon)

    @property
    def statuses(self) -> tuple[Status, ...]:  # type: ignore[override]
        """The design's statuses, plus one for overridden rounds if the design distinguishes its rounds."""
        own = self.design.statuses
        return (*own, _OVERRIDE) if own else ()

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The design's guarantee, because overrides do not use the data."""
        return self.design.guarantee(horizon, n_arms)

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """The design's guarantee for the rewards of one round."""
        return self.design.reward_guarantee(horizon, n_arms)

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of the values reported at the end of a run."""
        return self.design.outcome_names(n_features)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """The design's compiled entry point, with the probability of an override."""
        program = self.design.program(environment, horizon, recording=recording)
        return dataclasses.replace(program, n_statuses=program.n_statuses + 1, share=self._share(horizon))

    def _share(self, horizon: int) -> FloatArray:
        return np.asarray(self.exploration * np.arange(1.0, horizon + 1.0) ** -self.decay, dtype=np.float64)

    def _placed(self, env: Environment) -> Mixture:
        return dataclasses.replace(self, design=self.design._placed(env))

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        return self.design._releases(released, env, horizon)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        return self.design._environment_problems(env, horizon)

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        return self._not_skipped(run, self.design._feedback_rounds(run, horizon))

    def _released_rounds(self, run: Run, horizon: int) -> int | None:
        return self._not_skipped(run, self.design._released_rounds(run, horizon))

    def _not_skipped(self, run: Run, last: int | None) -> int | None:
        """Number of rounds up to a given one, without overridden rounds if the design skips these."""
        if last is None or not self.design.skips_overrides:
            return last
        overridden = len(self.design.statuses) or 1
        return last - int((run.record.status[:last] == overridden).sum())

    def _batches(self, horizon: int, n_arms: int) -> Any:
        return self.design._batches(horizon, n_arms)

    def record(self) -> DesignRecord:
        """Name and parameters, as a log stores them."""
        inner = self.design.record()
        parameters = {"exploration": self.exploration, "decay": self.decay}
        told = {**parameters, "design": inner.name, "parameters": inner.parameters}
        return DesignRecord("Mixture", told, self.traits)
