"""Confidence intervals for a constant additive effect, by inversion of a randomisation test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from adaptinf.audit.randomization.randomization_results import RandomizationInterval, assumptions
from adaptinf.audit.randomization.randomization_tests import rank, replication_problems
from adaptinf.audit.randomization.rerun_plan import Draws, Plan, Runner, make_plan
from adaptinf.audit.rerun.logged_rows import rerun_cautions
from adaptinf.designs.base import Design
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Each, Is, Number, OneOf
from adaptinf.simulation.replicate import BLOCK
from adaptinf.typing import RandomSource

_ALPHA = Each(Number(0.0, 0.5, open_low=True), Is(lambda alpha: alpha < 0.5, "below 0.5"))
_STATISTICS = ("studentised", "difference")
_PATIENCE = 2
_STEADY, _GROWTH, _MOST_STEPS = 8, 1.6, 40
_FINENESS = 32.0
_ROUNDING = 1e-12
_NULL = "hypotheses: in every round, the treated arm's reward exceeds the control's by the same constant"


@dataclass
class _Search:
    """Effects that were tested with common random numbers, and their p-values."""

    plan: Plan
    replications: int
    alpha: float
    runner: Runner = field(init=False)
    tested: dict[float, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.runner = Runner(self.plan)

    def pvalue(self, effect: float) -> float:
        if effect not in self.tested:
            plan = self.plan.assuming(effect)
            self.tested[effect] = rank(plan, self._draws(plan), self.replications).pvalue
        return self.tested[effect]

    def kept(self, effect: float) -> bool:
        return self.pvalue(effect) > self.alpha

    def _draws(self, plan: Plan) -> Iterator[Draws]:
        for first in range(0, self.replications, BLOCK):
            yield self.runner.block(first, min(BLOCK, self.replications - first), plan)


def randomization_interval(
    log: AdaptiveLog,
    design: Design | None = None,
    statistic: str = "studentised",
    resample: str | None = None,
    replications: int = 199,
    rng: RandomSource | None = 0,
    *,
    alpha: float = 0.05,
    treatment: Any = None,
    control: Any = None,
    alternative: str = "two-sided",
    context: str | Sequence[str] | None = None,
    features: Sequence[Any] | None = None,
) -> RandomizationInterval:
    """Confidence interval for a constant additive effect between two arms, by inversion.

    Parameters
    ----------
    log : AdaptiveLog
        The log of a trial with two arms.
    design : Design, optional
        The design; by default the one named in the log.
    statistic : {"studentised", "difference"}
        As in `randomization_test`, applied to the rewards minus the assumed effect.
    resample, rng, context, features
        As in `randomization_test`.
    replications : int
        Re-runs for each effect that is tested, at least 1 / alpha - 1.
    alpha : float
        One minus the confidence level, in (0, 0.5).
    treatment, control : label, optional
        The effect is treatment minus control: by default, the second arm minus the first.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"`` gives a lower limit only, and ``"less"`` an upper limit only.

    Returns
    -------
    RandomizationInterval
        Confidence limits, the effects that were tested and their p-values.

    Raises
    ------
    ParameterError
        If arguments are inconsistent (the message lists every problem): more than two arms, too few re-runs
        for a p-value of alpha, or a log that another design collected, as its record, its actions or its
        propensities show.
    InvalidForLog
        If 0 is the only possible constant effect, as with 0/1 rewards if both values occur.

    Notes
    -----
    Under the hypothesis that treatment always adds `effect` to the reward, the reward under the other arm in
    each round is known: it is the logged reward, shifted by the effect if the arm differs. The design is
    re-run on these rewards, and the statistic is computed from rewards minus the effect. Every p-value is
    exact for its effect regardless of the number of re-runs, so the effects with a p-value above alpha form a
    confidence set of level 1 - alpha. The interval spans that set. All effects share one set of random
    numbers; the search proceeds outwards from the difference in means in steps of one standard error until
    two consecutive effects are rejected, then halves the last step, and reports the outer, rejected end. More
    distant effects are not examined.

    Effects that would move an imputed reward outside the range of rewards (that of the log, or [0, 1] for a
    design that requires it) are impossible, and are excluded from the interval. With more than two arms, a
    single effect does not determine the rewards of the other arms.

    References
    ----------
    Garthwaite, P. H. (1996). Confidence intervals from randomization tests. Biometrics 52, 1387-1393.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.NormalArms([0.0, 1.0])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.5).run(arms, horizon=120, rng=0)
    >>> interval = ai.audit.randomization_interval(log, replications=99)
    >>> bool(interval.low < 1.0 < interval.high)
    True
    """
    problems = _level_problems(replications, alpha) + OneOf(*_STATISTICS)("statistic", statistic)
    if getattr(log, "n_arms", 2) > 2:
        problems.append(
            f"requires two arms, got {log.n_arms}: one effect does not determine the rewards of the others"
        )
        treatment, control = log.arms[1], log.arms[0]  # Naming both keeps later steps from asking for them.
    plan = make_plan(
        log,
        design,
        statistic if statistic in _STATISTICS else "studentised",
        resample,
        rng,
        treatment=treatment,
        control=control,
        alternative=alternative,
        context=context,
        features=features,
        subject="randomization_interval",
        problems=problems,
    )
    low, high = possible_effects(plan)
    estimate, step = _start(plan, low, high)
    search = _Search(plan, int(replications), float(alpha))
    notes: list[str] = []
    begin = _first_kept(search, estimate, step, low, high)
    limits = _limits(search, begin, step, (low, high), alternative, notes)
    return RandomizationInterval(
        low=limits[0],
        high=limits[1],
        estimate=_difference(plan),
        alpha=float(alpha),
        treatment=log.arms[plan.treatment],
        control=log.arms[plan.control],
        effects=np.array(sorted(search.tested)),
        p_values=np.array([search.tested[effect] for effect in sorted(search.tested)]),
        possible=(low, high),
        precision=step / _FINENESS,
        replications=int(replications),
        resample="order" if plan.by_order else "assignment",
        design=plan.name,
        statistic_name=plan.statistic.name,
        assumptions=(_NULL, *assumptions(plan)[1:]),
        notes=tuple(notes),
        cautions=rerun_cautions(log, plan.by_order),
    )


def _level_problems(replications: Any, alpha: Any) -> list[str]:
    """Problems with the number of replications, with alpha, or with their combination."""
    problems = replication_problems(replications, 1)
    wrong_alpha = _ALPHA("alpha", alpha)
    if not problems and not wrong_alpha and replications < fewest_replications(alpha):
        problems.append(
            f"replications must be at least {fewest_replications(alpha):,} at alpha = {alpha:g}, got "
            f"{replications:,}: no p-value is below 1 / (replications + 1), so no effect could be rejected"
        )
    return problems + wrong_alpha


def fewest_replications(alpha: float) -> int:
    """Smallest number B of re-runs that allows a rejection: 1 / (B + 1) is then at most alpha."""
    # Two-sided tests rank the absolute value of the statistic, so they need no more re-runs than one-sided
    # tests. One fewer is tried first, because rounding error in 1 / alpha may have made its ceiling one too
    # large.
    least = max(1, math.ceil(1.0 / alpha) - 2)
    return least if 1.0 / (least + 1) <= alpha else least + 1


def possible_effects(plan: Plan) -> tuple[float, float]:
    """Effects that leave every imputed reward within the range of rewards."""
    arrays = plan.log.arrays
    inner = getattr(plan.design, "design", plan.design)
    least, most = plan.log.reward_range or ((0.0, 1.0) if inner.needs.unit_rewards else (-math.inf, math.inf))
    treated = arrays.action == plan.treatment
    with_treatment, without = arrays.reward[treated], arrays.reward[~treated]
    low = max(
        float(with_treatment.max(initial=-math.inf)) - most, least - float(without.min(initial=math.inf))
    )
    high = min(
        float(with_treatment.min(initial=math.inf)) - least, most - float(without.max(initial=-math.inf))
    )
    size = float(np.abs(arrays.reward).max())
    if high - low <= _ROUNDING * size:
        raise InvalidForLog(
            "randomization_interval",
            f"some rewards lie at the ends of their range [{least:g}, {most:g}], so any constant effect "
            "other than 0 would impute rewards outside it",
            ["randomization_test", "intervals for arm means and their contrasts"],
        )
    return low, high


def _difference(plan: Plan) -> float:
    """Difference in means; NaN if an arm was not pulled."""
    arrays = plan.log.arrays
    parts = [arrays.reward[arrays.action == arm] for arm in (plan.treatment, plan.control)]
    return float(parts[0].mean() - parts[1].mean()) if all(part.size for part in parts) else math.nan


def _start(plan: Plan, low: float, high: float) -> tuple[float, float]:
    """Starting point of the search, and the length of its first steps: one standard error."""
    arrays = plan.log.arrays
    gap = _difference(plan)
    gap = 0.0 if math.isnan(gap) else gap
    inside = arrays.reward - gap * (arrays.action == plan.treatment)
    counts = np.maximum(np.bincount(arrays.action, minlength=2), 1)
    step = float(inside.std() * math.sqrt((1.0 / counts).sum()))
    if step <= 0.0:
        step = max(abs(gap), float(np.abs(arrays.reward).max()), 1e-6) / 8.0
    return min(max(gap, low), high), min(step, high - low)


def _first_kept(search: _Search, start: float, step: float, low: float, high: float) -> float:
    """An effect near the start that is not rejected; NaN if none was found."""
    near = [start + sign * number * step for number in range(_STEADY + 1) for sign in (1.0, -1.0)]
    far = np.linspace(low, high, 2 * _STEADY).tolist() if math.isfinite(high - low) else []
    for effect in near[1:] + far:
        if low <= effect <= high and search.kept(effect):
            return float(effect)
    return math.nan


def _limits(
    search: _Search, begin: float, step: float, ends: tuple[float, float], alternative: str, notes: list[str]
) -> tuple[float, float]:
    """Both ends of the range of effects that are not rejected; NaN if all are rejected."""
    if math.isnan(begin):
        notes.append("every effect tried was rejected: no constant effect fits")
        return math.nan, math.nan
    lower = ends[0] if alternative == "less" else _limit(search, begin, -step, ends[0], notes)
    upper = ends[1] if alternative == "greater" else _limit(search, begin, step, ends[1], notes)
    return lower, upper


def _limit(search: _Search, start: float, step: float, end: float, notes: list[str]) -> float:
    """The outer end of the range of effects that are not rejected, on one side of the starting value."""
    side = "below" if step < 0.0 else "above"
    last, first_out, rejected = start, math.nan, 0
    effect = start
    for number in range(_MOST_STEPS):
        effect += step * max(1.0, _GROWTH ** (number - _STEADY))
        beyond = effect <= end if step < 0.0 else effect >= end
        effect = end if beyond else effect
        if search.kept(effect):
            last, rejected = effect, 0
        else:
            first_out = effect if rejected == 0 else first_out
            rejected += 1
        if rejected == _PATIENCE or (beyond and rejected):
            return _bisect(search, last, first_out, abs(step) / _FINENESS)
        if beyond:
            notes.append(
                f"no effect {side} the starting value was rejected: the limit is the most extreme "
                "possible effect"
            )
            return end
    notes.append(f"no effect {side} the starting value was rejected; the search went as far as {effect:.6g}")
    return math.copysign(math.inf, step)


def _bisect(search: _Search, inside: float, outside: float, precision: float) -> float:
    """The rejected end of a step no longer than the precision."""
    while abs(outside - inside) > precision:
        middle = 0.5 * (inside + outside)
        if search.kept(middle):
            inside = middle
        else:
            outside = middle
    return outside
