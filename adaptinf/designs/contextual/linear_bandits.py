"""Linear contextual bandits: LinUCB, and LinPriv based on noisy sums of contexts times rewards."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.designs.contextual.linear_noise import (
    LARGEST_SCALE,
    NoiseLaw,
    ProductSums,
    noise_bounds,
    noise_law,
)
from adaptinf.designs.contextual.ridge_kernel import (
    NOISELESS,
    PROJECTED,
    PUBLISHED,
    RIDGE,
    LinearTables,
    linear_program,
)
from adaptinf.designs.run_results import release_columns
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import DesignTraits, Outputs
from adaptinf.parameters import DELTA, Calibration, NonNegative, Number, OneOf, Positive, Whole
from adaptinf.privacy.tree_sums import COUNTERS, counter_scales, counter_slots
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.environments.vector_arms import LinearArms
from adaptinf.simulation.replicate import Program, Run, written_arrays
from adaptinf.typing import FloatArray

_NORM_ROUNDING = 1e-12
# By Hoeffding's lemma, a reward in [0, 1] is sub-Gaussian with scale 1/2.
_UNIT_REWARDS = 0.5


Failure: TypeAlias = Annotated[float, Number(1e-200, 1.0)]
"""A probability whose logarithm must be computable."""


@dataclass(frozen=True, kw_only=True)
class LinUCB(Design):
    """OFUL: pull the arm with the highest sum of linear prediction and confidence width.

    Parameters
    ----------
    regularisation : float
        Ridge parameter (lambda in the paper).
    failure : float or None
        Probability that the band of some arm fails to cover in some round; by default 1 / horizon.
    noise_scale : float or None
        Sub-Gaussian scale R of the rewards around their means. The default is that of the environment, if
        known, and otherwise 1/2, which is valid for rewards in [0, 1].
    bound : float
        Upper bound S on the norm of every arm's coefficient vector.

    Notes
    -----
    Each arm has its own ridge regression on the rounds in which it was pulled, with V = X'X + lambda I, and
    the index x'theta_hat + w (R sqrt(2 log(det(V)^(1/2) det(lambda I)^(-1/2) K / failure)) + sqrt(lambda) S),
    where w = sqrt(x'V^-1 x). With probability at least 1 - failure, x'theta lies below the index, and above
    the corresponding lower bound, for every arm, round and context simultaneously. There are no forced pulls:
    the band of an arm without pulls is that of its prior. Ties are broken in favour of the first arm;
    propensities are 0 or 1.

    V^-1 is updated in place by rank-one steps: after 100,000 rounds in 20 dimensions, its error is 1e-13 of
    its largest entry for a regularisation down to 1e-6, and 1e-7 at 1e-12.

    References
    ----------
    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.
    NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> theta = [[0.9, 0.1], [0.1, 0.9]]
    >>> environment = ai.environments.LinearArms(theta, contexts="orthant", rewards="bernoulli")
    >>> log = ai.designs.LinUCB().run(environment, horizon=300, rng=0)
    >>> log.context
    ('x1_0', 'x2_0', 'x1_1', 'x2_1')
    """

    regularisation: Positive = 1.0
    failure: Failure | None = None
    noise_scale: NonNegative | None = None
    bound: NonNegative = 1.0

    pending: ClassVar[str] = "any"
    needs: ClassVar[Needs] = Needs(vectors="needed")

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on each arm's own context vector, without random draws."""
        return DesignTraits(uses_context="vectors", own_coins=False, arm_means="by-vector")

    def _placed(self, env: Environment) -> LinUCB:
        if self.noise_scale is not None or not isinstance(env, LinearArms):
            return self
        return dataclasses.replace(self, noise_scale=env.noise_scale)

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        placed = self._placed(environment)
        tables = placed.tables(environment.n_arms, environment.dimension, horizon, recording=recording)
        return linear_program(tables)

    def tables(self, n_arms: int, dimension: int, horizon: int, *, recording: bool = False) -> LinearTables:
        """Inputs to the kernels: constants of the index, and space for recorded values."""
        failure = 1.0 / horizon if self.failure is None else float(self.failure)
        return LinearTables(
            n_arms=n_arms,
            dimension=dimension,
            regularisation=float(self.regularisation),
            width=NOISELESS,
            root=math.sqrt(self.regularisation) * float(self.bound),
            noise_scale=_UNIT_REWARDS if self.noise_scale is None else float(self.noise_scale),
            log_share=math.log(n_arms / failure),
            clipped=False,
            gaussian=False,
            hybrid=False,
            trunk=0.0,
            node=0.0,
            slots=0,
            bounds=np.zeros((1, 1)),
            **written_arrays(n_arms if recording else 0),
        )


@dataclass(frozen=True, kw_only=True)
class LinPriv(Design):
    """LinUCB based on private running sums of context times reward, with one vector counter per arm.

    Parameters
    ----------
    epsilon : float
        Privacy parameter for the rewards.
    delta : float
        The second privacy parameter; 0 requires Laplace noise.
    calibration : {"corrected", "published"}
        ``"corrected"`` scales the noise to the true sensitivity of the sums. ``"published"`` assumes a
        sensitivity of 1, and uses the paper's index.
    noise : {"smallest", "laplace", "gaussian"}
        Distribution of the noise (corrected). ``"smallest"`` uses the distribution with the smaller variance
        at the worst count if delta is positive, and Laplace noise if it is 0.
    counter : {"hybrid", "binary"}
        Counter for Laplace noise (corrected): the binary counter is less noisy but needs the horizon. Normal
        noise is added in a binary tree.
    noise_width : {"projected", "ridge"}
        Allowance for noise in the index (corrected), where s is a bound on the norm of the noise vector: s
        times the norm of V^-1 x, or s sqrt(x'V^-1 x / lambda), which is never smaller.
    failure : float or None
        Probability that the band of some arm fails to cover in some round, half of it for the noise; by
        default 1 / horizon.
    regularisation : float
        Ridge parameter (lambda in the paper).
    bound : float
        Upper bound S on the norm of every arm's coefficient vector.
    dimension : int or None
        Dimension of the context vectors, if the guarantee depends on it: with the published calibration, and
        with the smaller of two kinds of noise. A run obtains the dimension from its environment.

    Notes
    -----
    Contexts are public and of norm at most 1; longer ones are refused before anything is collected, as are
    bounded rewards whose range exceeds [0, 1]. Rewards are clipped to [0, 1] when they enter a counter (the
    log contains the raw ones): normal rewards remain private, but the bands then refer to clipped rewards,
    which are not linear in x, and may fail to cover.

    A reward enters the counter of only one arm, so the actions and noisy sums together have the guarantee of
    a single counter. Changing a reward moves x y by up to sqrt(d) in L1 and by up to 1 in L2: Laplace noise
    is scaled by sqrt(d), and normal noise (a binary tree; analytic Gaussian mechanism) by the square root of
    the number of levels. The published noise ignores sqrt(d) and guarantees only sqrt(d) epsilon.

    Corrected index: x'theta_hat + w (1/2 sqrt(2 log(det(V)^(1/2) det(lambda I)^(-1/2) K / failure')) +
    sqrt(lambda) S) + s norm(V^-1 x), where w = sqrt(x'V^-1 x) and failure' is half of `failure`. Published
    index: x'theta_hat + w (sqrt(2 d log((1 + t / lambda) / failure)) + sqrt(lambda) S) + s / lambda, where s
    = log(N)^1.5 log(K / failure) / epsilon: the paper gives s up to constants and lower-order logarithms; the
    constant is 1 here.

    Given the past, the propensities depend on the noise and are intractable, so the log contains none. The
    releases are named ``noisy_xy_1`` to ``noisy_xy_d``, and grouped by arm.

    A session with exact noise (``noise="release"``, delta 0) uses contexts truncated towards 0 to multiples
    of 2^-20: one reward changes a sum by at most isqrt(d 2^40) 2^20 units of 2^-40.

    References
    ----------
    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy. ICML.

    Abbasi-Yadkori, Y., Pal, D. and Szepesvari, C. (2011). Improved algorithms for linear stochastic bandits.
    NeurIPS.

    Denisov, S., McMahan, B., Rush, K., Smith, A. and Thakurta, A. (2022). Improved differential privacy for
    SGD via optimal private linear operators on adaptive streams. NeurIPS.

    Examples
    --------
    >>> import adaptinf as ai
    >>> theta = [[0.9, 0.1], [0.1, 0.9]]
    >>> environment = ai.environments.LinearArms(theta, contexts="orthant", rewards="bernoulli")
    >>> log = ai.designs.LinPriv(epsilon=1.0).run(environment, horizon=300, rng=0)
    >>> log.guarantee.epsilon, len(log.releases)
    (1.0, 600)
    >>> published = ai.designs.LinPriv(epsilon=1.0, calibration="published", dimension=4)
    >>> published.guarantee(horizon=300, n_arms=2).epsilon
    2.0
    """

    epsilon: Positive
    delta: Annotated[float, DELTA] = 0.0
    calibration: Calibration = "corrected"
    noise: Annotated[str, OneOf("smallest", "laplace", "gaussian")] = "smallest"
    counter: Annotated[str, OneOf(*COUNTERS)] = "hybrid"
    noise_width: Annotated[str, OneOf("projected", "ridge")] = "projected"
    failure: Failure | None = None
    regularisation: Positive = 1.0
    bound: NonNegative = 1.0
    dimension: Whole | None = None

    pending: ClassVar[str] = "window"
    lost: ClassVar[float | None] = 0.0
    domain: ClassVar[str] = "ball"
    inexact: ClassVar[str] = (
        "delta must be 0, because normal noise on sums of products has no exact integer version"
    )
    needs: ClassVar[Needs] = Needs(vectors="needed", unit_rewards=True)

    @property
    def nodes(self) -> tuple[str, str] | None:  # type: ignore[override]
        """Names that identify a node, in addition to its coordinate."""
        return ("arm", "count") if self.delta == 0.0 else None

    def largest_scale(self, horizon: int, n_arms: int) -> float:
        """Largest scale of the noise of a node; infinite if draws would exceed 64 bits."""
        largest = (
            math.inf if self.dimension is None else self._law(self.dimension, horizon).largest_scale(horizon)
        )
        return largest if largest <= LARGEST_SCALE else math.inf

    def exact_sums(self, horizon: int, n_arms: int) -> ProductSums:
        """Integer-valued noisy sums, for which the `dimension` of the design must be given."""
        assert self.dimension is not None
        counter, unit = self._law(self.dimension, horizon).counter, self.calibration == "published"
        return ProductSums(counter, float(self.epsilon), n_arms, self.dimension, horizon, unit=unit)

    @property
    def traits(self) -> DesignTraits:
        """Traits: the choice depends on each arm's own context vector; only the noise is random."""
        return DesignTraits(
            uses_context="vectors",
            own_coins=False,
            arm_means="by-vector",
            outputs=Outputs(propensities="by-context"),
        )

    def _problems(self) -> list[str]:
        """Incompatible options for the noise."""
        if DELTA("delta", self.delta):
            return []
        if self.calibration == "published":
            kept = (self.delta, self.noise, self.counter, self.noise_width)
            if kept != (0.0, "smallest", "hybrid", "projected"):
                return [
                    "delta, noise, counter and noise_width must be omitted: the published calibration uses "
                    "Laplace noise in hybrid counters, with its own width"
                ]
        elif self.noise == "gaussian" and self.delta == 0.0:
            return ["delta must be above 0 if the noise is normal"]
        elif self.noise == "laplace" and self.delta > 0.0:
            return ["delta must be 0 with Laplace noise, which does not use it"]
        return []

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if self.dimension is not None and env.dimension and self.dimension != env.dimension:
            problems.append(f"dimension is {self.dimension}, but contexts have {env.dimension} coordinates")
        if env.context_norm > 1.0 + _NORM_ROUNDING:
            problems.append(
                f"contexts must have a length of at most 1, but the longest has {env.context_norm:.6g}: "
                f"divide "
                "them by a constant fixed in advance"
            )
        return problems

    def _law(self, dimension: int, horizon: int) -> NoiseLaw:
        if self.calibration == "published":
            return NoiseLaw(False, "hybrid", *counter_scales("hybrid", self.epsilon, horizon))
        return noise_law(self.epsilon, self.delta, self.noise, self.counter, dimension, horizon)

    def guarantee(self, horizon: int, n_arms: int) -> PrivacyGuarantee:
        """Guarantee for the actions and the noisy sums, by parallel composition over the arms' counters.

        The unit is the reward: contexts are public, a counter advances with the pulls of its arm, and arms
        are chosen only from contexts and noisy sums, so the actions determine which counter a reward enters.
        If delta is positive, the argument for adaptive streams of normal noise replaces the pointwise one.

        If `dimension` is not given and the noise is the smaller of two kinds, the result is the guarantee
        that both kinds satisfy. The published calibration requires `dimension`.
        """
        self._refuse_sizes(horizon, n_arms)
        epsilon = float(self.epsilon)
        if self.calibration == "published":
            if self.dimension is None:
                raise ParameterError(
                    "LinPriv", ["dimension must be given: the published noise guarantees sqrt(d) epsilon"]
                )
            reason = (
                f"the noise is scaled to a sensitivity of 1, but one reward changes the sum of x y by up to "
                f"sqrt(d) in the L1 norm (d = {self.dimension}, ||x||_2 at most 1)"
            )
            return PrivacyGuarantee(epsilon=epsilon * math.sqrt(self.dimension), reasons=(reason,))
        if self.dimension is None:
            return PrivacyGuarantee(epsilon=epsilon, delta=float(self.delta))
        normal = self._law(self.dimension, horizon).gaussian
        return PrivacyGuarantee(epsilon=epsilon, delta=float(self.delta) if normal else 0.0)

    def _feedback_rounds(self, run: Run, horizon: int) -> int:
        """All rounds but the last: a reward enters its arm's noisy sums, which later choices use, at once."""
        return horizon - 1

    def _released_rounds(self, run: Run, horizon: int) -> int:
        """All rounds: the last reward enters the last release."""
        return horizon

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """Compiled entry point and tables for an environment and a horizon."""
        tables = self.tables(environment.n_arms, environment.dimension, horizon, recording=recording)
        return linear_program(tables)

    def tables(self, n_arms: int, dimension: int, horizon: int, *, recording: bool = False) -> LinearTables:
        """Inputs to the kernels: constants of the index, and space for recorded values."""
        failure = 1.0 / horizon if self.failure is None else float(self.failure)
        law = self._law(dimension, horizon)
        if self.calibration == "published":
            width, log_share = PUBLISHED, -math.log(failure)
            bounds = np.full((1, 1), math.log(n_arms / failure) / self.epsilon)
        else:
            width = PROJECTED if self.noise_width == "projected" else RIDGE
            log_share = math.log(2.0 * n_arms / failure)
            bounds = noise_bounds(law, dimension, horizon, -log_share)
        return LinearTables(
            n_arms=n_arms,
            dimension=dimension,
            regularisation=float(self.regularisation),
            width=width,
            root=math.sqrt(self.regularisation) * float(self.bound),
            noise_scale=_UNIT_REWARDS,
            log_share=log_share,
            clipped=True,
            gaussian=law.gaussian,
            hybrid=law.counter == "hybrid",
            trunk=law.trunk,
            node=law.node,
            slots=counter_slots(horizon),
            bounds=bounds,
            **written_arrays(0, horizon * dimension if recording else 0),
        )

    def _placed(self, env: Environment) -> LinPriv:
        return dataclasses.replace(self, dimension=env.dimension)

    def _releases(self, released: FloatArray, env: Environment, horizon: int) -> dict[str, Any] | None:
        names = [f"noisy_xy_{k + 1}" for k in range(env.dimension)]
        gaussian = self._law(env.dimension, horizon).gaussian
        return release_columns(released, names, env.arms, ["gaussian counter" if gaussian else "counter"])
