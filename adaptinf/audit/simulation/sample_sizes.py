"""Sample size: the smallest horizon at which an analysis has a given power."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from adaptinf.audit.binary.exact_law import exact
from adaptinf.audit.simulation.engine import Fit, LogCell, gathered, total_sums, written
from adaptinf.audit.simulation.measures import binomial_error
from adaptinf.audit.simulation.simulated_power import (
    POWER,
    TYPE_I,
    PlanTable,
    design_of_rule,
    null_problems,
    plan_problems,
    power_rows,
)
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import COUNT, SHARE, Is, OneOf, OrNone, refuse
from adaptinf.simulation.environments import BernoulliArms, Environment
from adaptinf.simulation.replicate import child, seed_sequence
from adaptinf.texts import visible_lines
from adaptinf.typing import RandomSource


@dataclass(frozen=True, eq=False)
class SampleSize(PlanTable):
    """The smallest horizon with a given power, and all horizons examined.

    Attributes
    ----------
    horizon : int or None
        Number of rounds; None if the power is not reached at the longest horizon.
    target : float
        The required power.
    horizon_error : float
        Standard error of the horizon due to that of the simulated power, in rounds, based on a power curve
        that is normal in the square root of the horizon; 0 if the power is exact.
    frame : DataFrame
        One row per horizon: `horizon`; `power` with its Monte Carlo standard error `power_se` and exact 95%
        limits `power_low` and `power_high`; and the same for the type I error (`type_i`, etc.). If the values
        are computed exactly, the type I error is the largest size over all success rates, and neither it nor
        the power has simulation error. The type I error is NaN if the null was not simulated.
    law : str
        The source of the power if nothing is simulated.
    alpha, design, replications, notes
        As in every table of a plan; there are no replications if nothing is simulated.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.2, 0.8])
    >>> found = ai.audit.sample_size(ai.designs.Uniform(), arms, "conditional")
    >>> found.horizon
    23
    """

    horizon: int | None = None
    target: float = 0.8
    horizon_error: float = 0.0
    law: str = "the exact law"

    @property
    def _head(self) -> str:
        if self.horizon is None:
            told = f"power {self.target:g} is not reached"
        else:
            told = f"power {self.target:g} from {self.horizon:,} rounds"
            if self.replications:
                told += f", plus or minus {self.horizon_error:.2g} (one Monte Carlo standard error)"
        how = f"{self.replications:,} simulated trials per horizon" if self.replications else f"by {self.law}"
        return visible_lines([self.design, told, f"{how}, alpha {self.alpha:g}"])

    def to_markdown(self, digits: int = 4) -> str:
        """The table as Markdown.

        Parameters
        ----------
        digits : int
            Decimals.

        Returns
        -------
        str
        """
        return self._as_markdown(self._shown, digits)

    @property
    def _shown(self) -> pd.DataFrame:
        """The printed table, without uninformative columns."""
        ends = [name for name in self.frame if str(name).endswith(("_se", "_low", "_high"))]
        shown = self.frame if self.replications else self.frame.drop(columns=ends)
        return shown.dropna(axis="columns", how="all")

    def __str__(self) -> str:
        return self._as_text(self._shown)


# Only these tests have an exact distribution; power under all others is simulated.
TESTS = ("conditional", "unconditional")
# Single runs need random streams of their own; no block and no analysis uses this key.
_STREAM = 1_414_213_562
# Exact power is not monotone in the horizon, so it has to reach the target at this many consecutive horizons.
_STAYS = 5
_LONGEST = {"exact": 300, "simulated": 100_000}


def sample_size(
    design: Design | Callable[..., Any],
    env: Environment,
    fit: Fit | str,
    power: float = 0.8,
    *,
    null_env: Environment | None = None,
    analysis: str | None = None,
    term: str | None = None,
    null: float | None = None,
    alpha: float = 0.05,
    shortest: int = 20,
    longest: int | None = None,
    step: int = 1,
    replications: int = 2_000,
    rng: RandomSource | None = None,
    n_jobs: int = 1,
) -> SampleSize:
    """Smallest number of rounds at which the analysis of a design has a given power.

    Parameters
    ----------
    design : Design or callable
        The design that collects the data; or a rule for two arms in the form required by `exact`,
        ``probability(n1, s1, n0, s0, t)``.
    env : Environment
        The alternative: for instance, the smallest relevant difference.
    fit : callable or {"conditional", "unconditional"}
        The analysis, as in `power`: a result or a test of a log, such as `exact_test`. A name refers to an
        exact test of `ExactLaw`, for two arms with rewards 0 and 1 and a design that `exact` supports:
        nothing is then simulated.
    power : float
        Required probability of rejection, in (0, 1).
    null_env : Environment, optional
        An environment in which the null is true. The horizon must then also control the type I error: its
        exact 95% limits must not lie above alpha.
    analysis, term : str, optional
        The result and the term to use, if there are several.
    null : float, optional
        The null value, as in `power`.
    alpha : float
        Level of the test, between 0 and 0.5.
    shortest, longest : int
        Horizons at which the search begins and ends: by default it ends at 300 rounds for an exact
        distribution, and at 100,000 otherwise.
    step : int
        Horizons are multiples of this number, as for batches.
    replications : int
        Number of simulated trials per horizon.
    rng : int, SeedSequence, Generator or None
        Source of randomness; trial r depends on (rng, r) alone.
    n_jobs : int
        Number of worker processes; it does not affect the results.

    Returns
    -------
    SampleSize

    Raises
    ------
    ParameterError
        If an argument is invalid (the message lists every problem); or if there are several results and none
        is named.
    AnalysisError
        If the analysis fails in a trial, as can happen in very short ones: use a longer `shortest`.

    Notes
    -----
    The horizon is doubled from `shortest` until the power is reached, followed by a binary search, which
    assumes that power increases. Trial r uses the same stream of random numbers at every horizon: for a
    design that does not depend on the horizon, a longer trial begins with the shorter one, so the simulated
    power rarely decreases by chance. The remaining error is due to the number of trials.

    Exact power does not increase monotonically with the horizon, because counts are whole numbers: the power
    is reached at this horizon and at the next four, but not one step earlier.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.sample_size(
    ...     ai.designs.Uniform(),
    ...     ai.environments.NormalArms([0.0, 1.0]),
    ...     lambda log: ai.Contrast(log, treatment=1, control=0).fit(),
    ...     null_env=ai.environments.NormalArms([0.0, 0.0]),
    ...     replications=256,
    ...     rng=0,
    ... )
    >>> 25 < found.horizon < 50, bool(found.frame["type_i"].max() < 0.12)
    (True, True)
    """
    by_law = isinstance(fit, str)
    far = _LONGEST["exact" if by_law else "simulated"] if longest is None else longest
    horizons = {"shortest": shortest, "longest": far, "step": step}
    made = design_of_rule(design)
    problems = _problems(made, env, fit, power, null_env, horizons, replications, rng, alpha, n_jobs, null)
    refuse("sample_size", problems)
    low = step * math.ceil(shortest / step)
    if isinstance(fit, str):
        found: _Powers = _Exact(design, env, fit, float(alpha))
    else:
        cells = (made, fit, alpha, null, seed_sequence(rng), int(replications), n_jobs)
        found = _Simulated(cells, env, null_env, (analysis, term))
    reached = _reached(found, float(power), float(alpha))
    horizon = smallest(reached, low, int(far), int(step))
    notes = found.notes()
    if by_law:
        horizon = settled(reached, horizon, low, int(far), int(step))
    if horizon is None:
        notes.append(f"The power is not reached with up to {far:,} rounds, the longest horizon.")
    elif horizon == low:
        notes.append(f"{low:,} rounds are the shortest horizon examined: fewer may suffice.")
    frame = pd.DataFrame([found.known[size] for size in sorted(found.known)])
    runs = 0 if by_law else int(replications)
    error = horizon_error(found.known.get(horizon or 0), float(alpha), runs)
    return SampleSize(frame, float(alpha), repr(made), runs, tuple(notes), horizon, float(power), error)


def smallest(reached: Callable[[int], bool], low: int, high: int, step: int) -> int | None:
    """First multiple of `step` from `low` to `high` at which an increasing function is true, or None."""
    below, place = low - step, low
    while not reached(place):
        if place + step > high:
            return None
        below, place = place, min(2 * place, high - high % step)
    while place - below > step:
        middle = below + step * ((place - below) // (2 * step))
        below, place = (below, middle) if reached(middle) else (middle, place)
    return place


def settled(reached: Callable[[int], bool], start: int | None, low: int, high: int, step: int) -> int | None:
    """The horizon near `start` from which a non-monotone condition remains true for several steps."""
    if start is None:
        return None

    def stays(place: int) -> bool:
        return all(reached(place + i * step) for i in range(_STAYS))

    while start + (_STAYS - 1) * step <= high and not stays(start):
        start += step
    if start + (_STAYS - 1) * step > high:
        return None
    while start - step >= low and stays(start - step):
        start -= step
    return start


def _reached(found: _Powers, target: float, alpha: float) -> Callable[[int], bool]:
    """Whether a horizon suffices."""

    def reached(horizon: int) -> bool:
        row = found.at(horizon)
        level = row["type_i_low"]
        return bool(row["power"] >= target and not level > alpha * (1.0 + 1e-9))

    return reached


def horizon_error(row: dict[str, Any] | None, alpha: float, runs: int, sides: int = 2) -> float:
    """Standard error of the power divided by the slope of the power curve, phi(z) (z + z_alpha) / (2 T)."""
    if row is None or not runs or not 0.0 < row["power"] < 1.0:
        return 0.0 if not runs else math.nan
    place = float(special.ndtri(row["power"]))
    slope = (
        math.exp(-0.5 * place**2) / math.sqrt(2.0 * math.pi) * (place - float(special.ndtri(alpha / sides)))
    )
    if slope <= 0.0:
        return math.nan
    return float(row["power_se"] / slope * 2.0 * row["horizon"])


class _Powers:
    """Powers at the requested horizons, each computed only once."""

    def __init__(self) -> None:
        self.known: dict[int, dict[str, Any]] = {}

    def at(self, horizon: int) -> dict[str, Any]:
        if horizon not in self.known:
            power, level = self._rows(horizon)
            self.known[horizon] = {
                "horizon": horizon,
                **{f"power{end}": value for end, value in zip(_ENDS, power, strict=True)},
                **{f"type_i{end}": value for end, value in zip(_ENDS, level, strict=True)},
            }
        return self.known[horizon]

    def notes(self) -> list[str]:
        return []

    def _rows(self, horizon: int) -> tuple[Sequence[float], Sequence[float]]:
        """Power and type I error, each with its error and limits."""
        raise NotImplementedError


_ENDS = ("", "_se", "_low", "_high")
_NONE = (math.nan,) * 4


class _Exact(_Powers):
    """Powers from the exact distribution of a two-arm trial."""

    def __init__(self, design: Any, env: Environment, test: str, alpha: float) -> None:
        super().__init__()
        self._arguments = design, test, alpha
        self._means = [float(mean) for mean in np.asarray(env.means).ravel()]

    def notes(self) -> list[str]:
        return [
            "The type I error is the largest over all success rates that the arms may share. The power is "
            f"reached at {_STAYS} consecutive horizons."
        ]

    def _rows(self, horizon: int) -> tuple[Sequence[float], Sequence[float]]:
        design, test, alpha = self._arguments
        law = exact(design, horizon)
        power = float(law.power(test, self._means[1], self._means[0], alpha))
        size = law.max_size(test, alpha)[1]
        return (power, 0.0, power, power), (size, 0.0, size, size)


class _OwnStreams(LogCell):
    """Logs that each use a separate random stream, which does not depend on the horizon."""

    def logs(self, start: int, stop: int) -> Iterator[AdaptiveLog]:
        for run in range(start, stop):
            yield self.design.run(self.env, self.horizon, self._seed(run))

    def again(self, run: int) -> str:
        return f"design.run(env, {self.horizon}, {written(self._seed(run))})"

    def _seed(self, run: int) -> np.random.SeedSequence:
        return child(self.root, _STREAM, run)


class _Simulated(_Powers):
    """By trials."""

    def __init__(
        self, cells: tuple[Any, ...], env: Environment, null_env: Any, chosen: tuple[Any, Any]
    ) -> None:
        super().__init__()
        self._cells, self._chosen = cells, chosen
        self._places = [(env, POWER)] if null_env is None else [(env, POWER), (null_env, TYPE_I)]
        self._read: list[dict[str, Any]] = []

    def notes(self) -> list[str]:
        which = f"{self._read[0]['analysis']}, {self._read[0]['term']}"
        gaps = any(row["missing"] for row in self._read)
        return [f"Of {which}.", *(["Trials without an interval count as not rejecting."] if gaps else [])]

    def _rows(self, horizon: int) -> tuple[Sequence[float], Sequence[float]]:
        design, fit, alpha, null, root, replications, n_jobs = self._cells
        cells = [
            _OwnStreams((repr(design), kind), design, env, horizon, {"": fit}, alpha, root, null=null)
            for env, kind in self._places
        ]
        found = []
        for (_, kind), chunks in zip(self._places, gathered(cells, replications, n_jobs), strict=True):
            rows = list(power_rows({}, total_sums(chunks), replications))
            row = _chosen(rows, kind, *self._chosen)
            self._read.append(row)
            share = row["rejection"]
            error = binomial_error(share, replications)
            found.append((share, error, row["rejection_low"], row["rejection_high"]))
        return found[0], found[1] if len(found) > 1 else _NONE


def _chosen(rows: Sequence[dict[str, Any]], kind: str, analysis: Any, term: Any) -> dict[str, Any]:
    """The row of the relevant test."""
    named = [row for row in rows if analysis in (None, row["analysis"]) and term in (None, str(row["term"]))]
    tested = [row for row in named if row["kind"] == kind]
    if len(tested) == 1:
        return tested[0]
    there = "; ".join(f"analysis {row['analysis']!r}, term {str(row['term'])!r}" for row in rows)
    where = "env, in which the null is false" if kind == POWER else "null_env, in which the null is true"
    told = f"{len(tested)} tests match among the results in {where}: {there}"
    raise ParameterError("sample_size", [f"{told}: choose one with analysis= and term="])


def _problems(
    design: Any,
    env: Any,
    fit: Any,
    power: Any,
    null_env: Any,
    horizons: dict[str, Any],
    replications: Any,
    rng: Any,
    alpha: Any,
    n_jobs: Any,
    null: Any,
) -> list[str]:
    """Problems with the arguments of `sample_size`."""
    problems = [text for name, value in horizons.items() for text in COUNT(name, value)]
    problems += Is(Environment, "an environment, such as BernoulliArms([0.3, 0.5])")("env", env)
    problems += OrNone(Is(Environment, "an environment in which the null is true"))("null_env", null_env)
    problems += SHARE("power", power)
    if isinstance(fit, str):
        problems += OneOf(*TESTS)("fit, if it is not a function,", fit)
        binary = isinstance(env, BernoulliArms) and np.size(env.means) == 2
        if isinstance(env, Environment) and not binary:
            problems.append(f"an exact test requires BernoulliArms with two arms, got {env!r:.60}")
        if null_env is not None or null is not None:
            problems.append(
                "an exact test is a test of equal arms at every success rate: omit null and null_env"
            )
    else:
        problems += Is(callable, "a function of a log, or the name of an exact test")("fit", fit)
    if (
        not problems
        and horizons["step"] * math.ceil(horizons["shortest"] / horizons["step"]) > horizons["longest"]
    ):
        problems.append("there must be a multiple of step from shortest to longest")
    if not problems:
        places = {"env": env} if null_env is None else {"env": env, "null_env": null_env}
        first = int(horizons["shortest"])
        problems += plan_problems(design, places, first, replications, rng, alpha, n_jobs)[2]
    return problems + null_problems(null)
