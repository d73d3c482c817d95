"""DP-ConSE: ConSE whose actions and estimates are differentially private."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.designs.contextual.conse import CONSE_STATUSES, ESTIMATION_RANDOMISED, LEARNING_RANDOMISED
from adaptinf.designs.contextual.private_conse_kernel import corrected_program, window_ends
from adaptinf.designs.contextual.published_conse import PUBLISHED_RELEASES, REASONS, published_program
from adaptinf.designs.run_results import ReleaseName, Status
from adaptinf.guarantee import PrivacyGuarantee, parallel
from adaptinf.log import DesignTraits, Outputs
from adaptinf.parameters import Calibration, Positive, Share, Unit, Whole
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.replicate import Program, Run
from adaptinf.simulation.run import BERNOULLI

_CORRECTED_RELEASES = (ReleaseName("contrast_sum", "laplace"), ReleaseName("arrivals", "laplace"))
_EXACT_RELEASES = (ReleaseName("contrast_sum", "laplace"), ReleaseName("arrivals", "public"))


@dataclass(frozen=True, kw_only=True)
class DPConSE(Design):
    """Differentially private ConSE: two arms, finitely many contexts, effects by context.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for a participant's record.
    alpha : float
        Trade-off in [0, 1]: 0 devotes everything to estimation, 1 to regret.
    calibration : {"corrected", "published"}
        ``"corrected"`` satisfies pure differential privacy. ``"published"`` follows the paper's pseudo-code,
        with the sign in the normaliser of its batch lengths corrected; it has no finite epsilon.
    contrast_share : float
        Share of epsilon for the sums of rewards; the rest is for the counts of arrivals (corrected). If the
        share is 1, all participants must have the same context, so that their number is public and needs no
        noise.
    first_window : int or None
        Rounds of the first window, by default ceil(n / 64), but at least 64 and at most ceil(256 M log n),
        where M is the number of contexts (corrected).

    Raises
    ------
    ParameterError
        If a parameter is out of range (the message lists every problem); when run, if the environment's
        rewards may lie outside [0, 1], or `contrast_share` is 1 and there are several contexts.

    Notes
    -----
    Corrected, first half: windows of doubling length at fixed times. In a window, each undecided context is
    assigned by a fair coin; at its end, D_j = sum (2a - 1)(r - 1/2) over the randomised arrivals of each
    undecided context is released with Laplace(1/epsilon_D) noise, and the number N_j of arrivals of each
    context with Laplace(2/epsilon_N) noise. The worse arm is dropped if ``abs(D_j)`` is larger than noise can
    explain. Second half: each arrival enters the randomised trial with a public probability rho_j and
    otherwise receives the better arm, so the propensities are constant. At the end, D_j and N_j over the
    trial are released.

    Rewards are clipped to [0, 1] before they enter a sum; the raw reward is logged. The guarantee is for a
    record and is anticipating: it covers everything but the participant's own action. For a single reward,
    the guarantee is standard, with parameter epsilon_D. In a session with a window, the rounds that begin
    before the outcomes of the first half have entered are assigned as in the first half and enter no sum; an
    outcome that has not arrived when its window ends counts as 0, so effects are effects on success within
    the window. With `contrast_share` 1, a record consists of the potential rewards of one participant, so
    both guarantees coincide and are standard, with parameter epsilon; T_min is then at least 4 log(n) /
    epsilon.

    Published: T_min uses log n, the noise of a mean has scale 2 / (epsilon R_e), lengths are drawn around 2
    R_e, as the proof requires, epochs start at 1, and a context has no estimate unless both of its arms were
    pulled.

    References
    ----------
    Li, J., Shi, K. and Simchi-Levi, D. (2024). Privacy preserving adaptive experiment design. ICML.

    Examples
    --------
    >>> import adaptinf as ai
    >>> environment = ai.environments.FiniteContext([0.5, 0.5], [[0.4, 0.7], [0.6, 0.3]])
    >>> design = ai.designs.DPConSE(epsilon=1.0, alpha=0.2)
    >>> log = design.run(environment, horizon=20_000, rng=0)
    >>> print(log.guarantee.epsilon, log.guarantee.unit, log.guarantee.notion, log.reward_guarantee.epsilon)
    1.0 record anticipating 0.6
    """

    epsilon: Positive
    alpha: Unit = 0.0
    calibration: Calibration = "corrected"
    contrast_share: Share = 0.6
    first_window: Whole | None = None

    statuses: ClassVar[tuple[Status, ...]] = CONSE_STATUSES
    needs: ClassVar[Needs] = Needs(
        min_arms=2, max_arms=2, min_horizon=2, vectors="refused", unit_rewards=True
    )
    lost: ClassVar[float | None] = 0.0
    lost_unsaid: ClassVar[float | None] = 0.5
    inexact: ClassVar[str] = "the published version has no guarantee that exact noise could satisfy"

    @property
    def pending(self) -> str:  # type: ignore[override]
        """Outcomes may be pending within a public window, except in the published form."""
        return "window" if self.calibration == "corrected" else "last"

    def longest_window(self, horizon: int) -> float:
        """A window is shorter than the second half, whose trial begins once first-half outcomes are known."""
        return horizon - horizon // 2 - 1

    @property
    def nodes(self) -> tuple[str, str] | None:  # type: ignore[override]
        """Names that identify a node; its sum is 2 j for contrasts of context j, and 2 j + 1 for arrivals."""
        return ("sum", "window") if self.calibration == "corrected" else None

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """The larger of the noise scales for contrasts and arrivals."""
        contrasts = 1.0 / (self.contrast_share * self.epsilon)
        if self._exact_counts:
            return contrasts
        return max(contrasts, 2.0 / ((1.0 - self.contrast_share) * self.epsilon))

    @property
    def release_names(self) -> tuple[ReleaseName, ...]:  # type: ignore[override]
        """Meaning of the calibration's release codes."""
        if self.calibration == "published":
            return PUBLISHED_RELEASES
        return _EXACT_RELEASES if self._exact_counts else _CORRECTED_RELEASES

    @property
    def _exact_counts(self) -> bool:
        """Whether there is only one context, so that the number of participants is public."""
        return self.calibration == "corrected" and self.contrast_share == 1.0

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on the group, if there are several groups."""
        if self._exact_counts:
            return DesignTraits(uses_context="no", outputs=Outputs(propensities="outputs", phase="calendar"))
        outputs = Outputs(propensities="by-context", phase="calendar")
        return DesignTraits(uses_context="groups", arm_means="by-group", outputs=outputs)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for the actions and releases, by parallel composition over windows and halves.

        Corrected: the window whose sums and counts a record enters is determined by fixed times, before the
        record is read.
        """
        self._refuse_sizes(horizon, n_arms)
        if self.calibration == "published":
            return PrivacyGuarantee(math.inf, unit="record", notion="anticipating", reasons=REASONS)
        if self._exact_counts:
            # With exact counts a record consists of its rewards only, so counts do not change.
            return PrivacyGuarantee(self.epsilon, unit="record")
        contrasts = PrivacyGuarantee(self.contrast_share * self.epsilon, unit="record", notion="anticipating")
        arrivals = PrivacyGuarantee(
            (1.0 - self.contrast_share) * self.epsilon, unit="record", notion="anticipating"
        )
        window = contrasts.compose(arrivals)
        return parallel(window, window, over="epochs")

    def reward_guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee | None:
        """With contexts and coins fixed, a reward affects one sum of rewards and no count."""
        self._refuse_sizes(horizon, n_arms)
        if self.calibration == "published":
            return None
        return PrivacyGuarantee(epsilon=self.contrast_share * self.epsilon)

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if self._exact_counts and env.n_features > 1:
            problems.append(
                "contrast_share=1 leaves no budget for the counts of arrivals, so there must be a single "
                f"context, but {type(env).__name__} has {env.n_features}"
            )
        return problems

    def outcome_names(self, n_features: int) -> tuple[str, ...]:
        """Names of the values reported at the end of a run."""
        if self.calibration == "published":
            names = ["estimate", "length", "better_arm"]
        else:
            names = ["contrast_sum", "arrivals", "inclusion", "better_arm"]
        return ("t_min", *[name for name in names for _ in range(n_features)])

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        """The randomised rounds of the first half: no other reward enters a sum before the last release."""
        return int((run.record.status == LEARNING_RANDOMISED).sum())

    def _released_rounds(self, run: Run, horizon: int) -> int | None:
        """The randomised rounds of both halves: no other reward enters a sum."""
        return int(np.isin(run.record.status, (LEARNING_RANDOMISED, ESTIMATION_RANDOMISED)).sum())

    def _has_shortcut(self, environment: Environment) -> bool:
        return self.calibration == "corrected" and environment.law == BERNOULLI

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        if self.calibration == "published":
            return published_program(horizon, environment.n_features, self.alpha, self.epsilon, recording)
        return corrected_program(
            horizon,
            environment.n_features,
            self.alpha,
            self.contrast_share * self.epsilon,
            (1.0 - self.contrast_share) * self.epsilon,
            window_ends(horizon, self.first_window, environment.n_features),
            recording,
            by_rounds,
        )
