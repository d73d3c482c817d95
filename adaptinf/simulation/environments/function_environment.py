"""A user-defined environment in plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.errors import ParameterError
from adaptinf.parameters import COUNT, Callee, OrNone, number_array, refuse
from adaptinf.simulation.environment import (
    Environment,
    Renewed,
    environment_tables,
    numbers,
    reward_range_problems,
)
from adaptinf.simulation.run import GIVEN, IN_ORDER, TABLEAU, EnvironmentTables
from adaptinf.texts import absent
from adaptinf.typing import FloatArray, IntArray

_TRIED = 8
"""Number of rounds that are drawn on construction to inspect the output of the function."""
_SUBJECT = "FunctionEnvironment"


class _Drawn(NamedTuple):
    """The output of a function for one run."""

    rewards: FloatArray
    contexts: Any = None
    units: Any = None
    delays: Any = None
    outcomes: Mapping[str, FloatArray] = MappingProxyType({})


class FunctionEnvironment(Environment):
    """A user-defined environment: a function that draws the potential rewards of a run.

    Parameters
    ----------
    draw : callable
        ``draw(rng, horizon)`` returns the reward of every arm in every round, of shape (horizon, arms); or a
        tuple of these rewards and the contexts: labels from `features`, of shape (horizon,), or context
        vectors, of shape (horizon, dimension), which all arms share, or (horizon, arms, dimension). The
        function may also return a dict of "rewards", "contexts", "units", the labels of the persons to whom
        rounds belong, "delays", the number of further rounds after which an outcome is known, of shape
        (horizon,) or (horizon, arms), and "outcomes", a dict of additional outcomes by name, of shape
        (horizon, arms) each, which the design does not see. Logs store units, delays and outcomes; among the
        designs, only `FunctionDesign` supports delays. The function is called once per run.
    means : array_like, optional
        True mean reward of every arm, of shape (arms,), or (features, arms) with `features`, from which
        coverage and regret are computed. If omitted, both are unknown: audits of coverage need `truth=`, and
        regret is NaN.
    outcome_means : mapping of str to array_like, optional
        True mean of every additional outcome by name, such as the denominators of ratio metrics.
    arms : sequence, optional
        Labels of the arms, by default 0, 1, 2, ...
    features : sequence, optional
        Labels of the possible contexts, if there are finitely many.
    probabilities : array_like, optional
        Frequencies of the `features`, by default equal, with which `means` are averaged over contexts.
    reward_range : (float, float), optional
        Smallest and largest possible reward. A run with a reward outside this range is refused.
    horizon : int, optional
        Largest number of rounds that `draw` can supply, if there is a limit.

    Raises
    ------
    ParameterError
        If the arguments or the output of `draw` are invalid (the message lists all problems): checked on
        construction for a run of 8 rounds (or `horizon`, if smaller), and later for each run.

    Notes
    -----
    Rewards within a run may depend on each other in any way: drift, seasons, repeated units, shocks common to
    all arms. All designs can run in such an environment, compiled or not, and ``draw`` is called with the
    random stream of the run's block, so results do not depend on `n_jobs`. Arrays that ``draw`` returns are
    copied.

    With context vectors, regret is relative to the best reward in each round, as for `Tableau`.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> def weekends(rng, horizon):
    ...     level = np.where(np.arange(horizon) // 100 % 7 >= 5, 0.3, 0.0)
    ...     return level[:, None] + [0.5, 0.6] + rng.standard_t(df=3, size=(horizon, 2))
    >>> env = ai.environments.FunctionEnvironment(weekends)
    >>> log = ai.designs.Thompson(prior="normal").run(env, horizon=700, rng=0)
    >>> log.n_rounds, log.arms
    (700, (0, 1))
    """

    renewed = True

    def __init__(
        self,
        draw: Callable[[np.random.Generator, int], Any],
        means: ArrayLike | None = None,
        *,
        outcome_means: Mapping[str, ArrayLike] | None = None,
        arms: Sequence[Any] | None = None,
        features: Sequence[Any] | None = None,
        probabilities: ArrayLike | None = None,
        reward_range: tuple[float, float] = (-np.inf, np.inf),
        horizon: int | None = None,
    ) -> None:
        problems = Callee("rng", "horizon")("draw", draw) + OrNone(COUNT)("horizon", horizon)
        problems += reward_range_problems(reward_range)
        self.features = () if features is None else tuple(features)
        if features is not None and len(set(self.features)) < max(1, len(self.features)):
            problems.append(f"features must be one or more distinct labels, got {list(self.features)!r:.80}")
        refuse(_SUBJECT, problems)
        self.draw, self.longest = draw, horizon
        self.reward_range = (float(reward_range[0]), float(reward_range[1]))
        self.context_name = "feature" if self.features else None
        tried = _TRIED if horizon is None else min(_TRIED, int(horizon))
        drawn = self._called(np.random.default_rng(0), tried)
        rewards, contexts = drawn.rewards, drawn.contexts
        n_arms = rewards.shape[1] if rewards.ndim == 2 else 0
        self.arms = tuple(range(n_arms) if arms is None else arms)
        self.means = np.full((self.n_features, len(self.arms)), np.nan)
        self._shape = None if contexts is None or self.features else contexts.shape[1:]
        self._place_vectors()
        self.delayed = drawn.delays is not None
        refuse(_SUBJECT, _arm_problems(self.arms) or self._drawn_problems(drawn, tried))
        self._outcomes = tuple(drawn.outcomes)
        self._set_truth(means, outcome_means or {}, probabilities)
        self._blank = self._tables_of(np.zeros((0, n_arms)), np.zeros(0, np.int64), self._no_vectors(), None)

    def _set_truth(
        self, means: ArrayLike | None, outcome_means: Mapping[str, ArrayLike], probabilities: ArrayLike | None
    ) -> None:
        problems: list[str] = []
        n_features = self.n_features
        shares = np.full(n_features, 1.0 / n_features)
        if probabilities is not None:
            shares = numbers("probabilities", probabilities, problems)
            if shares.shape != (n_features,) or not (shares >= 0.0).all() or abs(shares.sum() - 1.0) > 1e-8:
                problems.append(
                    f"probabilities must be {n_features} numbers that sum to 1, one per context of features"
                )
        if means is not None:
            self.means = self._true_means("means", means, problems)
        problems += [
            absent("outcome", name, self._outcomes, "draw returns")
            for name in outcome_means
            if name not in self._outcomes
        ]
        self.outcome_means = {
            name: self._true_means(f"outcome_means[{name!r}]", given, problems)
            for name, given in outcome_means.items()
        }
        refuse(_SUBJECT, problems)
        self.probabilities = shares[None]

    def _true_means(self, name: str, means: ArrayLike, problems: list[str]) -> FloatArray:
        """Means by context and arm, shape (features, arms); any problems with them are added to the list."""
        given = numbers(name, means, problems)
        wanted = (self.n_features, len(self.arms)) if self.features else (len(self.arms),)
        if given.shape != wanted or not np.isfinite(given).all():
            problems.append(f"{name} must be finite numbers of shape {wanted}, got shape {given.shape}")
            return self.means
        return given.reshape(self.n_features, len(self.arms))

    def _place_vectors(self) -> None:
        """Set the dimension, norm and names of the context vectors, if there are any."""
        if not self._shape:
            return
        self.dimension = int(self._shape[-1])
        coordinates = range(1, self.dimension + 1)
        self.context_norm = np.inf
        if len(self._shape) == 1:
            self.vector_names = tuple(f"x{k}" for k in coordinates)
        else:
            self.vector_names = tuple(f"x{k}_{arm}" for arm in self.arms for k in coordinates)

    def _no_vectors(self) -> FloatArray | None:
        return np.zeros((0, int(np.prod(self._shape)))) if self._shape else None

    @property
    def law(self) -> int:
        """Code of given rewards, which are drawn again for each run."""
        return TABLEAU

    def horizon_problems(self, horizon: int) -> list[str]:
        """Reasons why a horizon is too long for the function."""
        if self.longest is None or horizon <= self.longest:
            return []
        return [
            f"horizon must be at most {self.longest}, as specified for FunctionEnvironment, got {horizon}"
        ]

    def tables(self, horizon: int) -> EnvironmentTables:
        """Unavailable before a run; raises ParameterError."""
        problem = (
            "rewards and contexts are drawn afresh in every run, but this request requires them to be fixed "
            "in advance: pass a Tableau of the values that draw returns"
        )
        raise ParameterError(_SUBJECT, [problem])

    def layout(self, horizon: int) -> EnvironmentTables:
        """Tables without any rounds."""
        refuse(_SUBJECT, self.horizon_problems(horizon))
        return self._blank

    def renew(self, horizon: int, rng: np.random.Generator) -> Renewed:
        """Tables and units for one more run."""
        drawn = self._called(rng, horizon)
        refuse(_SUBJECT, self._drawn_problems(drawn, horizon))
        contexts, delays = drawn.contexts, drawn.delays
        codes = np.zeros(horizon, dtype=np.int64)
        if self.features:
            position = {label: code for code, label in enumerate(self.features)}
            codes = np.array([position[label] for label in contexts.tolist()], dtype=np.int64)
        vectors = contexts.reshape(horizon, -1).astype(np.float64) if self._shape else None
        if delays is not None:
            late = delays if delays.ndim == 2 else np.repeat(delays[:, None], len(self.arms), axis=1)
            delays = np.minimum(late, horizon).astype(np.int64)
        tables = self._tables_of(drawn.rewards, codes, vectors, delays)
        return Renewed(tables, drawn.units, drawn.outcomes)

    def _tables_of(
        self, rewards: FloatArray, codes: IntArray, vectors: FloatArray | None, delays: IntArray | None
    ) -> EnvironmentTables:
        return environment_tables(
            TABLEAU,
            self.means,
            arrivals=np.ones((1, self.n_features)),
            tableau=(np.ascontiguousarray(rewards), codes),
            theta=np.zeros((len(self.arms), self.dimension)) if self.dimension else None,
            vector_law=IN_ORDER,
            shared=self._shape is not None and len(self._shape) == 1,
            vectors=vectors,
            mean_law=GIVEN,
            delay=delays,
        )

    def _called(self, rng: np.random.Generator, horizon: int) -> _Drawn:
        """The output for a run with this many rounds, as arrays of any shape."""
        try:
            found = self.draw(rng, horizon)
        except Exception as error:
            problem = f"draw(rng, {horizon}) failed: {type(error).__name__}: {error}"
            raise ParameterError(_SUBJECT, [problem]) from error
        if isinstance(found, tuple) and len(found) == 2:
            found = {"rewards": found[0], "contexts": found[1]}
        parts = dict(found) if isinstance(found, Mapping) else {"rewards": found}
        unknown = [name for name in parts if name not in _Drawn._fields]
        rewards = number_array(parts.pop("rewards", None))
        if rewards is None or unknown:
            told = f"a dict with {', '.join(map(repr, found))}" if isinstance(found, Mapping) else repr(found)
            problem = f"draw(rng, {horizon}) must return rewards as numbers, got {told:.80}"
            raise ParameterError(_SUBJECT, [f"{problem}; a dict has {', '.join(_Drawn._fields)}"])
        outcomes = parts.pop("outcomes", None) or {}
        if not isinstance(outcomes, Mapping) or not all(isinstance(name, str) for name in outcomes):
            problem = f"draw(rng, {horizon}) must return outcomes as a dict that maps names to arrays"
            raise ParameterError(_SUBJECT, [problem])
        others = {name: None if part is None else np.array(part) for name, part in parts.items()}
        further = {name: _of_outcome(values) for name, values in outcomes.items()}
        return _Drawn(rewards.copy(), **others, outcomes=further)

    def _drawn_problems(self, drawn: _Drawn, horizon: int) -> list[str]:
        """Problems with the output of the function."""
        call, n_arms, rewards = f"draw(rng, {horizon})", len(self.arms), drawn.rewards
        if rewards.shape != (horizon, n_arms) or not n_arms:
            wanted = f"({horizon}, {n_arms or 'arms'})"
            return [f"{call} must return rewards of shape {wanted}, got shape {rewards.shape}"]
        problems = []
        low, high = self.reward_range
        outside = ~np.isfinite(rewards) | (rewards < low) | (rewards > high)
        if outside.any():
            step, arm = np.argwhere(outside)[0]
            problems.append(
                f"{call} must return finite rewards from {low:g} to {high:g}, got {rewards[step, arm]:g} for "
                f"arm {self.arms[arm]!r} in round {step + 1}"
            )
        problems += _unit_problems(drawn.units, call, horizon)
        problems += _outcome_problems(drawn.outcomes, call, rewards.shape, getattr(self, "_outcomes", None))
        problems += _delay_problems(drawn.delays, call, rewards.shape, self.delayed)
        return problems + self._context_problems(drawn.contexts, call, horizon)

    def _context_problems(self, contexts: Any, call: str, horizon: int) -> list[str]:
        if self.features:
            if contexts is None or contexts.shape != (horizon,):
                told = "none" if contexts is None else f"shape {contexts.shape}"
                return [f"{call} must return rewards and {horizon} contexts from features, got {told}"]
            known = set(self.features)
            unknown = [label for label in contexts.tolist() if label not in known]
            return [
                f"{call} returned the context {label!r:.60}, which is not in features"
                for label in unknown[:1]
            ]
        if contexts is None:
            return [] if self._shape is None else [f"{call} returned no contexts, unlike in an earlier call"]
        if contexts.ndim == 1:
            return [f"{call} returned one context per round: set features= to the possible contexts"]
        wanted = (horizon, *(self._shape or ()))
        if contexts.dtype.kind not in "biuf" or contexts.ndim > 3 or contexts.shape != wanted:
            return [f"{call} must return context vectors as numbers of shape {wanted}, got {contexts.shape}"]
        if contexts.ndim == 3 and contexts.shape[1] != len(self.arms):
            return [f"{call} must return context vectors of shape (horizon, arms, dimension)"]
        if not np.isfinite(contexts.astype(np.float64)).all():
            return [f"{call} must return finite context vectors"]
        return []


def _unit_problems(units: Any, call: str, horizon: int) -> list[str]:
    if units is None or (units.shape == (horizon,) and units.dtype.kind in "biuUS"):
        return []
    return [f"{call} must return {horizon} labels of units (integers or strings), or None"]


def _of_outcome(values: Any) -> FloatArray:
    """An additional outcome as numbers; an array without dimensions if it is invalid."""
    found = number_array(values)
    return np.zeros(()) if found is None else found.copy()


def _outcome_problems(
    outcomes: Mapping[str, FloatArray], call: str, shape: tuple[int, ...], known: tuple[str, ...] | None
) -> list[str]:
    """Problems with additional outcomes; known contains the names returned before."""
    if known is not None and set(outcomes) != set(known):
        return [f"{call} must return the same outcomes in every run, {list(known)}, got {list(outcomes)}"]
    return [
        f"{call} must return finite numbers of shape {shape} for the outcome {name!r:.60}"
        for name, values in outcomes.items()
        if values.shape != shape or not np.isfinite(values).all()
    ]


def _delay_problems(delays: Any, call: str, shape: tuple[int, ...], delayed: bool) -> list[str]:
    if (delays is not None) != delayed:
        return [f"{call} must return delays in every run, or in none"]
    if delays is None:
        return []
    fits = delays.shape in (shape, shape[:1]) and delays.dtype.kind in "iu"
    if fits and (delays.size == 0 or int(delays.min()) >= 0):
        return []
    return [
        f"{call} must return delays as whole numbers of rounds, 0 or more, of shape {shape[:1]} or {shape}"
    ]


def _arm_problems(arms: tuple[Any, ...]) -> list[str]:
    if len(set(arms)) == len(arms):
        return []
    return [f"arms must be distinct labels, got {list(arms)!r:.80}"]
