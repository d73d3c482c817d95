"""Two-arm designs as functions of the counts: the rules that the exact recursion supports."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from scipy import special

from adaptinf.audit.binary import count_recursion as codes
from adaptinf.audit.binary.count_recursion import CUSTOM, RuleTables, Work, advance_batch, advance_round
from adaptinf.audit.binary.count_states import values_of
from adaptinf.designs.arms.biased_coin import DBCD, ERADE, coin_probability
from adaptinf.designs.arms.play_the_winner import PlayTheWinner
from adaptinf.designs.arms.posterior import Thompson
from adaptinf.designs.arms.ucb import UCB
from adaptinf.designs.arms.uniform import EpsilonGreedy, Uniform
from adaptinf.designs.base import Design
from adaptinf.designs.mixture import Mixture
from adaptinf.errors import ParameterError
from adaptinf.parameters import Callee, refuse
from adaptinf.typing import FloatArray, IntArray

FOLLOWED = (
    "Thompson, EpsilonGreedy, UCB, Uniform, a Mixture of one of them, PlayTheWinner, DBCD, ERADE, or a "
    "function"
)
# With a smaller prior, the quadrature misses probability so close to 0 or 1 that doubles cannot represent it.
_SMALLEST_PRIOR = 0.05


# A user's function ``probability(n1, s1, n0, s0, t)`` is called once for all states of a round, so its counts
# are int arrays of one shape; it returns the probability of arm 1 in round t.
Probability: TypeAlias = Callable[[Any, Any, Any, Any, int], Any]
Rule: TypeAlias = Design | Probability
PROBABILITY_ARGUMENTS = ("n1", "s1", "n0", "s0", "t")


@dataclass(frozen=True, eq=False)
class Allocation:
    """A rule in the form used by the recursion."""

    name: str
    tables: RuleTables
    edges: tuple[int, ...]
    function: Probability | None = None


def allocation(rule: Any, horizon: int) -> Allocation:
    """Read a rule."""
    share = np.zeros(horizon)
    if isinstance(rule, Mixture):
        inner = allocation(rule.design, horizon)
        share = rule._share(horizon)
        whole = 1.0 - (1.0 - share) * (1.0 - inner.tables.share)
        tables = inner.tables._replace(share=whole)
        return dataclasses.replace(
            inner, name=f"Mixture of {inner.name}", tables=tables, edges=_refreshed(inner.edges, whole)
        )
    every = tuple(range(horizon + 1))
    if isinstance(rule, Thompson):
        return _thompson(rule, horizon)
    if isinstance(rule, UCB):
        return Allocation("UCB", _tables(horizon, codes.UCB, first=rule.width), every)
    if isinstance(rule, Uniform):
        return Allocation("Uniform", _tables(horizon, codes.UNIFORM), every)
    if isinstance(rule, EpsilonGreedy):
        rounds = np.arange(1.0, horizon + 1.0)
        share = np.minimum(1.0, rule.exploration * rounds**-rule.decay)
        edges = _edges(horizon, 0, rule.batch_size)
        return Allocation("EpsilonGreedy", _tables(horizon, codes.GREEDY, share=share), edges)
    if isinstance(rule, PlayTheWinner):
        tables = _tables(horizon, codes.URN, first=rule.initial, second=rule.added)
        return Allocation("PlayTheWinner", tables, every)
    if isinstance(rule, (DBCD, ERADE)):
        erade = isinstance(rule, ERADE)
        strength = rule.alpha if isinstance(rule, ERADE) else rule.gamma
        function = partial(coin_probability, rule.rule, strength, rule.burn_in, erade)
        return Allocation(type(rule).__name__, _tables(horizon, codes.CUSTOM), every, function)
    if isinstance(rule, Design):
        name = type(rule).__name__
        reason = f"the choices of {name} do not depend only on the counts of two arms"
        raise ParameterError("exact", [f"{reason}: use {FOLLOWED}; randomization_test re-runs any design"])
    if isinstance(rule, type):
        name = rule.__name__
        problem = f"design must be an instance, got the class {name}: pass an instance, {name}()"
        raise ParameterError("exact", [problem])
    if callable(rule):
        name = getattr(rule, "__name__", type(rule).__name__)
        refuse("exact", Callee(*PROBABILITY_ARGUMENTS)(str(name), rule))
        return Allocation(str(name), _tables(horizon, codes.CUSTOM), every, rule)
    raise ParameterError("exact", [f"design must be {FOLLOWED}, got {rule!r:.60}"])


def _refreshed(edges: tuple[int, ...], share: FloatArray) -> tuple[int, ...]:
    """Boundaries of the batches; if every round is uniform, every round is its own batch."""
    return tuple(range(len(share) + 1)) if np.all(share == 1.0) else edges


def _edges(horizon: int, initial: int, batch_size: int) -> tuple[int, ...]:
    return (*range(min(initial, horizon)), *range(min(initial, horizon), horizon, batch_size), horizon)


def _tables(
    horizon: int, kind: int, first: float = 0.0, second: float = 0.0, share: FloatArray | None = None
) -> RuleTables:
    return RuleTables(
        kind=kind,
        first=float(first),
        second=float(second),
        noise_variance=1.0,
        draws=0,
        forced=0,
        dealt=False,
        floor=np.zeros(horizon),
        share=np.zeros(horizon) if share is None else share,
        log_gamma=np.zeros((6, 1)),
        corner=np.zeros((1, 1)),
        custom=np.zeros(0),
    )


def _thompson(rule: Thompson, horizon: int) -> Allocation:
    beta = rule.prior == "beta"
    first, second = rule.prior_parts()
    if beta and min(first, second) < _SMALLEST_PRIOR:
        problem = f"a Beta prior must have parameters of at least {_SMALLEST_PRIOR:g}, got {(first, second)}"
        raise ParameterError("exact", [problem])
    if not beta and rule.noise_scale is None:
        problem = (
            "noise_scale=None makes decisions depend on reward variances: give a number, or use the "
            "Beta prior"
        )
        raise ParameterError("exact", [problem])
    scale, decay = rule.floor_parts()
    if scale > 0.5:
        raise ParameterError("exact", [f"floor must be at most 1/2 for two arms, got {scale:g}"])
    tables = _tables(horizon, codes.POSTERIOR if beta else codes.NORMAL, first, second)._replace(
        noise_variance=1.0 if rule.noise_scale is None else float(rule.noise_scale) ** 2,
        draws=rule.frequency_draws(),
        forced=2 * int(rule.initial_pulls),
        dealt=rule.initial == "dealt",
        floor=np.minimum(scale * np.arange(1.0, horizon + 1.0) ** -decay, 0.5),
    )
    if beta:
        tables = tables._replace(
            log_gamma=_log_gammas(first, second, horizon), corner=_corners(first, second, horizon)
        )
    return Allocation("Thompson", tables, _edges(horizon, tables.forced, rule.batch_size))


def _log_gammas(first: float, second: float, horizon: int) -> FloatArray:
    starts = np.array([first, second, 2 * first, 2 * second, first + second, 2 * first + 2 * second])
    return np.asarray(special.gammaln(starts[:, None] + np.arange(horizon + 2)))


def _corners(first: float, second: float, horizon: int) -> FloatArray:
    """P(X > Y), X ~ Beta(first, second + n1), Y ~ Beta(first + n0, second), for n1 + n0 <= T."""
    # Quadrature is slow, so it serves only where n1 + n0 = T. Each failure of arm 1 less adds a positive
    # term, so the recursion from there does not cancel.
    n0 = np.arange(horizon + 1)
    corner = np.zeros((horizon + 1, horizon + 1))
    corner[horizon - n0, n0] = _last_corner(first, second, horizon)
    for n1 in range(horizon - 1, -1, -1):
        known = n0[: horizon - n1]
        b, c = second + n1, first + known
        upper = special.betaln(first + c, b + second)
        lower = special.betaln(first, b) + special.betaln(c, second)
        corner[n1, known] = corner[n1 + 1, known] + np.exp(upper - lower) / b
    return corner


def _last_corner(first: float, second: float, horizon: int) -> FloatArray:
    """Integral of the density of Y times P(X > y), by the trapezoidal rule in u; logit y = pi sinh(u)."""
    u = np.linspace(-6.2, 6.2, 1001)
    logit = math.pi * np.sinh(u)
    log_y, log_rest = -np.logaddexp(0.0, -logit), -np.logaddexp(0.0, logit)
    # Integration is over logit y, whose density has the exponents c and d rather than c - 1 and d - 1: it is
    # bounded even where that of y is not.
    slope = (u[1] - u[0]) * math.pi * np.cosh(u)
    found = np.empty(horizon + 1)
    y, rest, low = np.exp(log_y), np.exp(log_rest), logit < 0.0
    for n0 in range(horizon + 1):
        c, b = first + n0, second + horizon - n0
        tail = np.where(low, special.betaincc(first, b, y), special.betainc(b, first, rest))
        found[n0] = np.sum(slope * tail * np.exp(c * log_y + second * log_rest - special.betaln(c, second)))
    return found


def path_probabilities(plan: Allocation, action: IntArray, reward: FloatArray) -> FloatArray:
    """Probability of arm 1 in each round of a trial, given the past; all arrays have shape (T,)."""
    horizon = len(action)
    one = action == 1
    counts = np.zeros((4, horizon + 1), dtype=np.int64)
    for row, event in enumerate((one, one & (reward == 1.0), ~one, ~one & (reward == 1.0))):
        counts[row, 1:] = np.cumsum(event)
    work = work_space(horizon)
    found = np.empty(horizon)
    for step, after in itertools.pairwise(plan.edges):
        n1, s1, n0, s0 = (int(count) for count in counts[:, step])
        if plan.function is None:
            codes.rule_block(plan.tables, n1, n0, work)
            found[step:after] = work.up[s1 * (n0 + 1) + s0]
        else:
            a, b, c, d = (np.array([count]) for count in (n1, s1, n0, s0))
            values = values_of("exact", plan.function, PROBABILITY_ARGUMENTS, a, b, c, d, step + 1)
            found[step:after] = np.ravel(values)[0]
    return found


def work_space(horizon: int) -> Work:
    """Work space for the largest block of a trial."""
    block = (horizon // 2 + 1) * (horizon - horizon // 2 + 1)
    up, down, gained, kept, last = (np.zeros(block) for _ in range(5))
    return Work(up, down, gained, kept, last, np.zeros((2, horizon + 2)))


_MOST_STEPS = 2e13


def final_weights(plan: Allocation, horizon: int) -> FloatArray:
    """Weights of the last layer."""
    *_, (_, found) = layers(plan, horizon)
    return found


def layers(plan: Allocation, horizon: int) -> Iterator[tuple[int, FloatArray]]:
    """Number of rounds and weights after each batch; the caller may set weights to 0 to remove states.

    Shapes: weights (states of the layer,).
    """
    edges = plan.edges
    longest = max(after - before for before, after in itertools.pairwise(edges))
    _refuse_cost(plan, horizon, longest)
    old, new = np.zeros(_states(horizon)), np.zeros(_states(horizon))
    block = (horizon // 2 + 1) * (horizon - horizon // 2 + 1)
    work = work_space(horizon)
    laws = np.empty((block if longest > 1 else 0, longest + 1))
    by_count = np.empty((plan.tables.draws + 1, longest + 1))
    old[0] = 1.0
    for step, after in itertools.pairwise(edges):
        tables = plan.tables
        if tables.kind == CUSTOM:
            tables = tables._replace(custom=_layer(plan, step))
        if after == step + 1:
            advance_round(tables, step, old, new, work)
        else:
            advance_batch(tables, step, after - step, old, new, work, laws, by_count)
        old, new = new, old
        yield after, old[: _states(after)]


def _states(horizon: int) -> int:
    return (horizon + 1) * (horizon + 2) * (horizon + 3) // 6


def _refuse_cost(plan: Allocation, horizon: int, longest: int) -> None:
    """Refuse batches that would take hours to compute."""
    steps = sum(
        _states(before) * float(after - before) ** 3 for before, after in itertools.pairwise(plan.edges)
    )
    if longest > 1 and steps > _MOST_STEPS:
        problem = f"batches of {longest} rounds at a horizon of {horizon} would take too long to compute"
        raise ParameterError("exact", [f"{problem}: use randomization_test, which has no such limit"])


def _layer(plan: Allocation, step: int) -> FloatArray:
    """Probabilities from a user-defined function for the states after `step` rounds, block by block."""
    assert plan.function is not None
    found = np.empty(_states(step))
    start = 0
    for n1 in range(step + 1):
        n0 = step - n1
        size = (n1 + 1) * (n0 + 1)
        s1, s0 = np.divmod(np.arange(size), n0 + 1)
        counts = np.full(size, n1), s1, np.full(size, n0), s0
        array = values_of("exact", plan.function, PROBABILITY_ARGUMENTS, *counts, step + 1)
        if array.shape not in ((), (size,)) or not np.all((array >= 0.0) & (array <= 1.0)):
            problem = f"{plan.name} must return probabilities in [0, 1], one for each of {size} states"
            raise ParameterError("exact", [f"{problem}; at t = {step + 1} and n1 = {n1} it did not"])
        found[start : start + size] = array
        start += size
    return found
