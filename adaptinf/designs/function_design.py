"""A user-defined design in plain Python."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeAlias

import numpy as np

from adaptinf.designs.base import Design, Needs
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.log import AdaptiveLog, DesignRecord, DesignTraits
from adaptinf.log.traits import traits_problems
from adaptinf.parameters import Callee, OrNone, refuse
from adaptinf.simulation.environments import Environment
from adaptinf.simulation.functions import Functions, FunctionTables, run_functions
from adaptinf.simulation.replicate import Program, Run, written_arrays

_CHOOSE, _UPDATE = Callee("state", "context", "rng"), Callee("state", "context", "arm", "reward")
_COUNTED = ("n1", "s1", "n0", "s0", "t")
Choose: TypeAlias = Annotated[Callable[[Any, Any, np.random.Generator], Any], _CHOOSE]
Update: TypeAlias = Annotated[Callable[[Any, Any, int, float], Any] | None, OrNone(_UPDATE)]


@dataclass(frozen=True, eq=False, repr=False, init=False)
class FunctionDesign(Design):
    """A user-defined design: two functions, in plain Python.

    Parameters
    ----------
    choose : callable
        ``choose(state, context, rng)`` returns one probability per arm, in the order of the environment's
        arms, from which an arm is drawn; or the number of an arm (0, 1, ...). The function must return the
        same kind of value in every round.
    update : callable, optional
        ``update(state, context, arm, reward)`` returns the state for the next round, and must not modify the
        old state. If omitted, the state never changes, and rewards cannot affect the choice.
    start : object or callable, optional
        The initial state, or a function of the number of arms that returns it. The state can be any object
        that can be pickled.
    traits : DesignTraits, optional
        Properties that determine how logs may be analysed. By default nothing is assumed: the design may
        adapt to rewards and to contexts.

    Raises
    ------
    ParameterError
        On construction, if a function cannot be called with these arguments or the traits are invalid. During
        a run, with the round named: if `choose` returns neither the number of an arm nor probabilities that
        sum to 1, returns arms in some rounds and probabilities in others, or contradicts the traits; if a
        function fails; or if the state was modified in place.

    Notes
    -----
    ``context`` is the label of the round's context; the vector shared by all arms, of shape (dimension,); or
    an array of shape (arms, dimension), which is read-only; it is None if there are no contexts, or if the
    traits say that none are used.

    All randomness must come from ``rng``, a NumPy Generator; the results then do not depend on `n_jobs`.

    Probabilities are logged as exact propensities. If `choose` returns arms, the log has no propensities, and
    estimators that divide by propensities refuse it. Return probability 1 for an arm that is certain.

    In environments without contexts, the logs state that contexts did not affect the choice.

    Every logged run, and the first of every 64 replicates, is checked for states that were modified in place:
    in the first 256 rounds, and in every 16th round after them.
    The design has no privacy guarantee. A loop in Python runs about a hundred thousand rounds per second; a
    compiled design is about a hundred times as fast (see "Your own design, environment, estimator").

    Examples
    --------
    >>> import adaptinf as ai
    >>> def choose(state, context, rng):
    ...     pulls, sums = state
    ...     best = max(range(len(pulls)), key=lambda arm: (sums[arm] + 1) / (pulls[arm] + 2))
    ...     return [0.8 * (arm == best) + 0.2 / len(pulls) for arm in range(len(pulls))]
    >>> def update(state, context, arm, reward):
    ...     pulls, sums = (list(part) for part in state)
    ...     pulls[arm] += 1
    ...     sums[arm] += reward
    ...     return pulls, sums
    >>> design = ai.designs.FunctionDesign(choose, update, start=lambda arms: ([0] * arms, [0.0] * arms))
    >>> log = design.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=500, rng=1)
    >>> log.frame["propensity"].round(2).unique().tolist()
    [0.9, 0.1]
    >>> ai.ArmMeans(log).fit().params.round(2).tolist()
    [0.24, 0.59]
    """

    choose: Choose
    update: Update
    start: Any
    stated: DesignTraits

    def __init__(
        self,
        choose: Callable[[Any, Any, np.random.Generator], Any],
        update: Callable[[Any, Any, int, float], Any] | None = None,
        start: Any = None,
        traits: DesignTraits | None = None,
    ) -> None:
        given = DesignTraits() if traits is None else traits
        for name, value in {"choose": choose, "update": update, "start": start, "stated": given}.items():
            object.__setattr__(self, name, value)
        self.__post_init__()

    def _problems(self) -> list[str]:
        return traits_problems(self.stated)

    @property
    def traits(self) -> DesignTraits:
        """The given traits; without `update`, the design does not adapt."""
        return replace(self.stated, adapts=False) if self.update is None else self.stated

    @classmethod
    def of_counts(cls, probability: Callable[..., Any]) -> FunctionDesign:
        """A rule for two arms based on counts and sums, in the form required by `audit.exact`.

        Parameters
        ----------
        probability : callable
            A function ``probability(n1, s1, n0, s0, t)`` that returns the probability of arm 1 in round t
            (counted from 1), if arm k has been pulled n_k times with total reward s_k.

        Returns
        -------
        FunctionDesign
            A design that calls the function with arrays of shape (1,), and stores its results.

        Raises
        ------
        ParameterError
            If the function cannot be called in this way.

        Examples
        --------
        >>> import adaptinf as ai
        >>> from scipy.stats import beta
        >>> def rule(n1, s1, n0, s0, t):
        ...     upper = beta(1 + s1, 1 + n1 - s1).mean() > beta(1 + s0, 1 + n0 - s0).mean()
        ...     return 0.3 + 0.4 * upper
        >>> design = ai.designs.FunctionDesign.of_counts(rule)
        >>> design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0).n_rounds
        100
        """
        refuse("FunctionDesign.of_counts", Callee(*_COUNTED)(_name(probability), probability))
        traits = DesignTraits(uses_context="no")
        return cls(_CountRule(probability), _count, (0, 0.0, 0, 0.0), traits)

    @property
    def needs(self) -> Needs:  # type: ignore[override]
        """The traits determine how context vectors are used; outcomes may arrive late."""
        uses = self.traits.uses_context
        kinds = {"no": "ignored", "groups": "refused", "vectors": "needed", "position": "needed"}
        return Needs(vectors=kinds.get(uses, "any"), takes_delays=True)

    pending = "any"

    def program(
        self, environment: Environment, horizon: int, *, recording: bool, by_rounds: bool = True
    ) -> Program:
        """The loop that calls the functions, for one environment and horizon."""
        sees = self.traits.uses_context != "no"
        floor = self.traits.floor
        scale = 0.0 if floor is None else floor.scale / (environment.n_arms if floor.shared else 1)
        functions = Functions(
            choose=self.choose,
            update=self.update,
            start=self.start,
            n_arms=environment.n_arms,
            labels=tuple(environment.features) if sees else (),
            dimension=environment.dimension if sees else 0,
            own_coins=self.traits.own_coins,
            floor=(scale, 0.0 if floor is None else floor.decay),
        )
        tables = FunctionTables(**written_arrays(environment.n_arms if recording else 0))
        return Program(functools.partial(run_functions, functions), tables, (1, 2), step=functions)

    def _placed(self, env: Environment) -> FunctionDesign:
        if env.features or env.dimension or self.traits.uses_context != "unknown":
            return self
        return FunctionDesign(self.choose, self.update, self.start, replace(self.stated, uses_context="no"))

    def _environment_problems(self, env: Environment, horizon: int) -> list[str]:
        problems = super()._environment_problems(env, horizon)
        if self.traits.uses_context == "groups" and not env.features:
            problems.append(f"requires contexts from a finite list; {type(env).__name__} has none")
        if isinstance(self.choose, _CountRule) and env.n_arms != 2:
            problems.append(f"the rule uses the counts of two arms, but the environment has {env.n_arms}")
        return problems

    def _feedback_rounds(self, run: Run, horizon: int) -> int | None:
        return horizon - 1 if self.traits.adapts else 0

    def _log(
        self, run: Run, env: Environment, horizon: int, *promised: PrivacyGuarantee | None
    ) -> AdaptiveLog:
        record = run.record
        # The function returned an arm without its probability in some rounds, so the log contains no
        # propensities.
        if np.isnan(record.propensity).any():
            none = record._replace(propensity=np.empty(0), propensities=np.empty((record.action.size, 0)))
            run = replace(run, record=none)
        return super()._log(run, env, horizon, *promised)

    def record(self) -> DesignRecord:
        """Names of the functions, and the traits, as a log stores them."""
        return DesignRecord("FunctionDesign", self._named(), self.traits)

    def _named(self) -> dict[str, Any]:
        update = None if self.update is None else _name(self.update)
        start = _name(self.start) if callable(self.start) else f"{self.start!r:.200}"
        return {"choose": _name(self.choose), "update": update, "start": start}

    def __repr__(self) -> str:
        if isinstance(self.choose, _CountRule):
            return f"FunctionDesign.of_counts({_name(self.choose)})"
        return f"FunctionDesign({', '.join(f'{name}={told}' for name, told in self._named().items())})"


def _name(function: Any) -> str:
    """The name of a function, for messages."""
    if isinstance(function, functools.partial):
        return _name(function.func)
    if isinstance(function, _CountRule):
        return _name(function.probability)
    kind = function if hasattr(function, "__qualname__") else type(function)
    return f"{kind.__module__}.{kind.__qualname__}".removeprefix("__main__.")


@dataclass(eq=False)
class _CountRule:
    """Probabilities of two arms from a rule based on counts, cached after the first call."""

    probability: Callable[..., Any]

    def __post_init__(self) -> None:
        self._known: dict[Any, list[float]] = {}

    def __call__(self, state: Any, context: Any, rng: np.random.Generator) -> list[float]:
        found = self._known.get(state)
        if found is None:
            n1, s1, n0, s0 = state
            counts = [np.array([number]) for number in (n1, _whole(s1), n0, _whole(s0))]
            answer = np.asarray(self.probability(*counts, n1 + n0 + 1), dtype=np.float64).reshape(-1)
            if answer.shape != (1,):
                raise ParameterError("of_counts", [f"one probability was expected, got {answer.size}"])
            found = [1.0 - float(answer[0]), float(answer[0])]
            if len(self._known) < 1_000_000:
                self._known[state] = found
        return found

    def __getstate__(self) -> dict[str, Any]:
        return {"probability": self.probability, "_known": {}}


def _whole(total: float) -> int | float:
    """A sum of 0/1 rewards as an integer."""
    return int(total) if float(total).is_integer() else total


def _count(state: Any, context: Any, arm: int, reward: float) -> Any:
    """Counts and sums (n1, s1, n0, s0) after another reward."""
    n1, s1, n0, s0 = state
    return (n1 + 1, s1 + reward, n0, s0) if arm == 1 else (n1, s1, n0 + 1, s0 + reward)
