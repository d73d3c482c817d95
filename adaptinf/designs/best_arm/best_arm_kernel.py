"""Best-arm designs: each phase pulls arms according to a plan, estimates the others and keeps the best."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator

from adaptinf.compilation import compiled, kernel
from adaptinf.designs.best_arm.arm_collections_kernel import (
    balance,
    basis_coefficients,
    exchange,
    orthogonal_coordinates,
)
from adaptinf.privacy.noise import Fixed, gaussian, named_laplace, uniform
from adaptinf.simulation.replicate import Program, written_arrays
from adaptinf.simulation.run import (
    ROUND,
    SCALARS,
    Results,
    Step,
    World,
    certain_arm,
    pass_round,
    simulate_block,
    single_step,
)
from adaptinf.simulation.transcripts import Again, Outbox, Outputs, replay_block, send
from adaptinf.typing import FloatArray, IntArray

ACTIVE, OUT, SUM = 1, 2, 3
"""Rows of the state: the remaining arms, by slot; the outbox, with means by arm or moments; the sums of a
phase's rewards, by position in its plan."""
EVERY_ARM, MAX_DET, G_OPTIMAL = range(3)
"""The arms that a phase pulls: all arms, a MAX-DET collection, or the support of a G-optimal design."""
NO_NOISE, LAPLACE_NOISE, GAUSSIAN_NOISE = range(3)
"""Distribution of the noise."""


@kernel
def outbox_of(tables: Any) -> Outbox:
    """Numbers released: one mean per arm, or one moment per coordinate."""
    return Outbox(OUT, tables.features.shape[1] if tables.method == G_OPTIMAL else 1)


@kernel
def send_phase(
    tables: Any, state: FloatArray, phase: int, n: int, rank: int, pulled: int, source: Any
) -> None:
    """Release the results of the phase, with noise if the design is private."""
    if tables.method == G_OPTIMAL:
        rows = tables.features if phase == 0 else tables.coordinates
        scale = tables.noise * _largest_sum(state, rows, n, rank)
        for k in range(rank):
            moment = 0.0
            for place in range(pulled):
                moment += state[SUM, place] * rows[int(state[ACTIVE, tables.pulled[place]]), k]
            _send(tables, state, k, 0, moment, 1.0, scale, k, phase, source)
    else:
        for place in range(pulled):
            arm, count = int(state[ACTIVE, tables.pulled[place]]), float(tables.counts[place])
            _send(tables, state, 0, arm, state[SUM, place], count, tables.noise, arm, phase, source)


@kernel
def _send(
    tables: Any,
    state: FloatArray,
    name: int,
    group: int,
    total: float,
    count: float,
    scale: float,
    stream: int,
    phase: int,
    source: Any,
) -> None:
    """Release a sum with its noise, divided by a count."""
    outbox = outbox_of(tables)
    if tables.law == NO_NOISE:
        state[OUT, group * outbox.names + name] = total / count
    else:
        shown = (total + _noise(tables, scale, source, stream, phase)) / count
        send(tables, state, outbox, name, group, shown, scale / count)


@kernel
def _noise(tables: Any, scale: float, source: Any, stream: int, phase: int) -> float:
    if tables.law == GAUSSIAN_NOISE:
        return gaussian(source, scale)
    return named_laplace(source, scale, stream, phase + 1)


@kernel
def estimate(tables: Any, public: FloatArray, phase: int, n: int, rank: int, pulled: int) -> None:
    """Write the estimates for the n remaining arms, by slot, from the released numbers."""
    if tables.method == G_OPTIMAL:
        _least_squares(tables, public, phase, n, rank, pulled)
        return
    for place in range(pulled):
        slot = tables.pulled[place]
        tables.estimates[slot] = public[OUT, int(public[ACTIVE, slot])]
    if tables.method == MAX_DET and pulled < n:
        for k in range(rank):
            tables.image[k] = tables.estimates[tables.basis[k]]
        for slot in range(n):
            value = 0.0
            for k in range(rank):
                if phase == 0:
                    value += tables.first_coefficients[slot, k] * tables.image[k]
                else:
                    value += tables.coefficients[slot, k] * tables.image[k]
            tables.estimates[slot] = value


@kernel
def _least_squares(tables: Any, public: FloatArray, phase: int, n: int, rank: int, pulled: int) -> None:
    """Predictions for all arms from the moments of the pulled arms."""
    rows = tables.features if phase == 0 else tables.coordinates
    for k in range(rank):
        tables.moment[k] = public[OUT, k]
        for j in range(rank):
            tables.matrix[k, j] = 0.0
    for place in range(pulled):
        arm = int(public[ACTIVE, tables.pulled[place]])
        for k in range(rank):
            for j in range(rank):
                tables.matrix[k, j] += tables.counts[place] * rows[arm, k] * rows[arm, j]
    solve_positive(tables.matrix, tables.moment, rank)
    for slot in range(n):
        value = 0.0
        for k in range(rank):
            value += rows[int(public[ACTIVE, slot]), k] * tables.moment[k]
        tables.estimates[slot] = value


@kernel
def _largest_sum(public: FloatArray, rows: FloatArray, n: int, rank: int) -> float:
    """Largest sum of absolute coordinates of a remaining arm: how far one reward moves the moments."""
    largest = 0.0
    for slot in range(n):
        total = 0.0
        for k in range(rank):
            total += abs(rows[int(public[ACTIVE, slot]), k])
        largest = max(largest, total)
    return largest


@kernel
def solve_positive(matrix: FloatArray, vector: FloatArray, size: int) -> None:
    """Replace a vector with the solution of a positive definite system, and the matrix with its factor."""
    for k in range(size):
        for j in range(k):
            matrix[k, k] -= matrix[k, j] * matrix[k, j]
        matrix[k, k] = math.sqrt(matrix[k, k])
        for i in range(k + 1, size):
            for j in range(k):
                matrix[i, k] -= matrix[i, j] * matrix[k, j]
            matrix[i, k] /= matrix[k, k]
    for k in range(size):
        for j in range(k):
            vector[k] -= matrix[k, j] * vector[j]
        vector[k] /= matrix[k, k]
    for k in range(size - 1, -1, -1):
        for j in range(k + 1, size):
            vector[k] -= matrix[j, k] * vector[j]
        vector[k] /= matrix[k, k]


_PHASE, _DIMENSION, _NEXT, _LEFT, _PULLED, _BEGUN, _DECIDED = range(2, 9)
_SCALAR_COLUMNS = 9
_PUBLIC, _ROWS = SUM, 4
"""If estimates are private, choices use the rows before this one: the remaining arms depend only on the
releases, which are the only link to the sums of rewards."""
# Every exchange multiplies the determinant by more than this factor, so rounding errors cannot make the
# exchanges go on for ever.
_LIMIT = 1.0 + 1e-6
_DESIGN_GAP, _DESIGN_STEPS = 1e-6, 10_000
_EXPLORING, _LEFTOVER = range(2)


class BestArmTables(NamedTuple):
    """Inputs to the kernels, and their working memory, for n arms with d coordinates.

    Shapes: sizes (phases + 1,), features, first_coefficients (n, d), first_basis (d,), first_weights (n,),
    ranks, order, pulled, counts (n,), estimates, weights, leverage (n,), basis (d,),
    coordinates (n, d), residual, reduced, coefficients (slots, d), directions, matrix (d, d), image, moment
    (d,).
    """

    method: int
    law: int
    noise: float
    shuffled: bool
    rounding_up: bool
    budget: int
    share: float
    sizes: IntArray
    features: FloatArray
    first_coefficients: FloatArray
    first_basis: IntArray
    first_weights: FloatArray
    ranks: IntArray
    order: IntArray
    pulled: IntArray
    counts: IntArray
    estimates: FloatArray
    weights: FloatArray
    leverage: FloatArray
    basis: IntArray
    coordinates: FloatArray
    residual: FloatArray
    reduced: FloatArray
    coefficients: FloatArray
    directions: FloatArray
    matrix: FloatArray
    image: FloatArray
    moment: FloatArray
    status: IntArray
    propensity: FloatArray
    released: FloatArray


@kernel
def _begin(tables: BestArmTables, public: FloatArray, source: Any) -> None:
    """Put all arms in the first phase, with a random order for breaking ties if required."""
    n = tables.ranks.shape[0]
    for arm in range(n):
        public[ACTIVE, arm] = arm
        tables.ranks[arm] = arm
    if tables.shuffled:
        for last in range(n - 1, 0, -1):
            other = min(int(uniform(source) * (last + 1)), last)
            tables.ranks[last], tables.ranks[other] = tables.ranks[other], tables.ranks[last]
    public[SCALARS, _BEGUN] = 1.0


@kernel
def _all_pulled(tables: BestArmTables, n: int, rank: int) -> bool:
    """Whether a phase pulls all n remaining arms, whose span has this dimension."""
    return bool(tables.method == EVERY_ARM or (tables.method == MAX_DET and rank * rank >= n))


@kernel
def _reduce(tables: BestArmTables, public: FloatArray, phase: int, n: int) -> int:
    """Express the remaining arms in terms of a few of them; return the dimension of their span."""
    # New orthonormal coordinates are computed only if the dimension falls, which saves time; if all arms are
    # pulled, only the dimension matters.
    if phase == 0:
        for k in range(tables.features.shape[1]):
            tables.basis[k] = tables.first_basis[k]
        public[SCALARS, _DIMENSION] = tables.features.shape[1]
        return int(tables.features.shape[1])
    dimension = int(public[SCALARS, _DIMENSION])
    source = tables.features if phase == 1 else tables.coordinates
    rank = orthogonal_coordinates(
        source,
        public[ACTIVE],
        n,
        dimension,
        tables.residual,
        tables.directions,
        tables.reduced,
        tables.basis,
    )
    for slot in range(n):
        arm = int(public[ACTIVE, slot])
        for k in range(rank):
            tables.coordinates[arm, k] = tables.reduced[slot, k] if rank < dimension else source[arm, k]
    public[SCALARS, _DIMENSION] = rank
    if not _all_pulled(tables, n, rank):
        basis_coefficients(tables.reduced, tables.basis, n, rank, tables.coefficients)
        exchange(tables.coefficients, n, rank, _LIMIT, tables.basis)
    return rank


@kernel
def _plan(tables: BestArmTables, public: FloatArray) -> None:
    """Write which slots the phase pulls, and how often, once at the first choice of the phase."""
    phase = int(public[SCALARS, _PHASE])
    n = int(tables.sizes[phase])
    rank = n
    if tables.method != EVERY_ARM:
        rank = _reduce(tables, public, phase, n)
    if tables.method == G_OPTIMAL:
        pulled = _optimal_plan(tables, phase, n, rank)
    else:
        everything = _all_pulled(tables, n, rank)
        pulled = n if everything else rank
        parts = (tables.sizes.shape[0] - 1) * pulled
        count = (tables.budget + (parts - 1 if tables.rounding_up else 0)) // parts
        for place in range(pulled):
            tables.pulled[place] = place if everything else tables.basis[place]
            tables.counts[place] = count
    public[SCALARS, _PULLED] = pulled
    public[SCALARS, _NEXT] = 0.0
    public[SCALARS, _LEFT] = tables.counts[0]


@kernel
def _optimal_plan(tables: BestArmTables, phase: int, n: int, rank: int) -> int:
    if phase > 0:
        balance(
            tables.coefficients,
            n,
            rank,
            tables.basis,
            _DESIGN_GAP,
            _DESIGN_STEPS,
            tables.weights,
            tables.leverage,
            tables.matrix,
            tables.image,
        )
    pulled = 0
    for slot in range(n):
        weight = tables.weights[slot] if phase > 0 else tables.first_weights[slot]
        if weight > 0.0:
            tables.pulled[pulled] = slot
            # Rounding errors can make a weight slightly too large; that must not cost a pull.
            tables.counts[pulled] = max(1, math.ceil(weight * tables.share - 1e-9))
            pulled += 1
    return pulled


@kernel
def _before(tables: BestArmTables, active: FloatArray, slot: int, other: int) -> bool:
    """Whether a slot is better than another."""
    if tables.estimates[slot] != tables.estimates[other]:
        return bool(tables.estimates[slot] > tables.estimates[other])
    return bool(tables.ranks[int(active[slot])] < tables.ranks[int(active[other])])


@kernel
def _sift(tables: BestArmTables, active: FloatArray, start: int, end: int) -> None:
    """Move an entry of the heap `order` down until no parent is worse than its children."""
    root = start
    while 2 * root + 1 < end:
        child = 2 * root + 1
        if child + 1 < end and _before(tables, active, tables.order[child], tables.order[child + 1]):
            child += 1
        if _before(tables, active, tables.order[child], tables.order[root]):
            return
        tables.order[root], tables.order[child] = tables.order[child], tables.order[root]
        root = child


@kernel
def _sort(tables: BestArmTables, active: FloatArray, n: int) -> None:
    """Sort the slots of the n remaining arms into `order`, the best first, by heap sort, in place."""
    for slot in range(n):
        tables.order[slot] = slot
    for start in range(n // 2 - 1, -1, -1):
        _sift(tables, active, start, n)
    for end in range(n - 1, 0, -1):
        tables.order[0], tables.order[end] = tables.order[end], tables.order[0]
        _sift(tables, active, 0, end)


@kernel
def _end_phase(tables: BestArmTables, public: FloatArray) -> None:
    """Keep the best arms; a repeated call on the same state, with more of the noise known, starts again."""
    phase = int(public[SCALARS, _PHASE])
    n = int(tables.sizes[phase])
    rank = int(public[SCALARS, _DIMENSION])
    estimate(tables, public, phase, n, rank, int(public[SCALARS, _PULLED]))
    _sort(tables, public[ACTIVE], n)
    kept = int(tables.sizes[phase + 1])
    for place in range(kept):
        tables.order[place] = int(public[ACTIVE, tables.order[place]])
    for place in range(kept):
        public[ACTIVE, place] = tables.order[place]
    public[SCALARS, _PHASE] += 1.0
    public[SCALARS, _PULLED] = 0.0
    if phase + 2 == tables.sizes.shape[0]:
        public[SCALARS, _DECIDED] = public[SCALARS, ROUND]


@kernel
def _choose(tables: BestArmTables, public: FloatArray, context: FloatArray, source: Any) -> int:
    if public[SCALARS, _BEGUN] == 0.0:
        _begin(tables, public, source)
    if public[SCALARS, _DECIDED] > 0.0:
        tables.status[0] = _LEFTOVER
        arm = int(public[ACTIVE, 0])
    else:
        if public[SCALARS, _PULLED] == 0.0:
            _plan(tables, public)
        tables.status[0] = _EXPLORING
        arm = int(public[ACTIVE, tables.pulled[int(public[SCALARS, _NEXT])]])
    certain_arm(tables, arm)
    return arm


@kernel
def _advance(tables: BestArmTables, public: FloatArray, context: FloatArray, arm: int) -> int:
    """Count a round; return the number of releases due after it, or -1 if its reward is unused."""
    public[SCALARS, ROUND] += 1.0
    if tables.status[0] != _EXPLORING:
        return -1
    place = int(public[SCALARS, _NEXT])
    public[SCALARS, _LEFT] -= 1.0
    if public[SCALARS, _LEFT] > 0.0:
        return 0
    pulled = int(public[SCALARS, _PULLED])
    if place + 1 < pulled:
        public[SCALARS, _NEXT] = place + 1.0
        public[SCALARS, _LEFT] = tables.counts[place + 1]
        return 0
    return int(public[SCALARS, _DIMENSION]) if tables.method == G_OPTIMAL else pulled


@kernel
def _learn(
    tables: BestArmTables, state: FloatArray, place: int, reward: float, due: int, source: Any
) -> None:
    """Add a reward to the sum at its position in the plan; after a phase, release the results."""
    if due < 0:
        return
    state[SUM, place] += reward if tables.law == NO_NOISE else min(max(reward, 0.0), 1.0)
    if due > 0:
        phase = int(state[SCALARS, _PHASE])
        rank, pulled = int(state[SCALARS, _DIMENSION]), int(state[SCALARS, _PULLED])
        send_phase(tables, state, phase, int(tables.sizes[phase]), rank, pulled, source)
        state[SUM, :] = 0.0


@kernel
def _publish(tables: BestArmTables, public: FloatArray, context: FloatArray, arm: int, due: int) -> None:
    if due > 0:
        _end_phase(tables, public)


@kernel
def _update(
    tables: BestArmTables, state: FloatArray, context: FloatArray, arm: int, reward: float, source: Any
) -> None:
    place = int(state[SCALARS, _NEXT])
    due = _advance(tables, state[:_PUBLIC], context, arm)
    _learn(tables, state, place, reward, due, source)
    _publish(tables, state[:_PUBLIC], context, arm, due)


@kernel
def _finish(tables: BestArmTables, public: FloatArray, outcome: FloatArray) -> None:
    decided = public[SCALARS, _DECIDED] > 0.0
    outcome[0] = public[ACTIVE, 0] if decided else math.nan
    outcome[1] = public[SCALARS, _DECIDED] if decided else math.nan


@compiled
def _run_block(
    tables: BestArmTables, world: World, rng: Generator, state: FloatArray, results: Results
) -> None:
    simulate_block(_choose, _update, _finish, tables, world, rng, state, results)


@compiled
def _run_step(tables: BestArmTables, step: Step, rng: Generator, state: FloatArray) -> int:
    return single_step(_choose, pass_round, _update, _finish, tables, step, rng, state)


@compiled
def _run_replay(
    tables: BestArmTables, seen: Outputs, source: Fixed, public: FloatArray, again: Again
) -> None:
    outbox = outbox_of(tables)
    replay_block(_choose, _advance, _publish, _finish, tables, outbox, seen, source, public, again)


def best_arm_tables(
    sizes: IntArray,
    *,
    method: int = EVERY_ARM,
    features: FloatArray | None = None,
    coefficients: FloatArray | None = None,
    basis: IntArray | None = None,
    weights: FloatArray | None = None,
    law: int = NO_NOISE,
    noise: float = 0.0,
    rounding_up: bool = False,
    budget: int = 0,
    share: float = 0.0,
    recording: bool = False,
) -> BestArmTables:
    """Tables and working memory of one design."""
    n = int(sizes[0])
    rows = np.zeros((0, 0)) if features is None else features
    dimension = rows.shape[1]
    slots = int(sizes[1]) if features is not None else 0
    several = method == G_OPTIMAL
    releases = (sizes.size - 1) * dimension if several else int(sizes[:-1].sum())
    return BestArmTables(
        method=method,
        law=law,
        noise=noise,
        shuffled=law == NO_NOISE,
        rounding_up=rounding_up,
        budget=budget,
        share=share,
        sizes=sizes,
        features=rows,
        first_coefficients=np.zeros((0, 0)) if coefficients is None else coefficients,
        first_basis=np.zeros(dimension, dtype=np.int64) if basis is None else basis,
        first_weights=np.zeros(0) if weights is None else weights,
        ranks=np.zeros(n, dtype=np.int64),
        order=np.zeros(n, dtype=np.int64),
        pulled=np.zeros(n, dtype=np.int64),
        counts=np.zeros(n, dtype=np.int64),
        estimates=np.zeros(n),
        weights=np.zeros(slots),
        leverage=np.zeros(slots),
        basis=np.zeros(dimension, dtype=np.int64),
        coordinates=np.zeros(rows.shape),
        residual=np.zeros((slots, dimension)),
        reduced=np.zeros((slots, dimension)),
        coefficients=np.zeros((slots, dimension)),
        directions=np.zeros((dimension, dimension)),
        matrix=np.zeros((dimension, dimension)),
        image=np.zeros(dimension),
        moment=np.zeros(dimension),
        **written_arrays(n if recording else 0, releases if recording and law != NO_NOISE else 0),
    )


def best_arm_program(tables: BestArmTables) -> Program:
    """Entry point with its tables."""
    return Program(
        _run_block,
        tables,
        (_ROWS, max(tables.ranks.size, tables.features.shape[1], _SCALAR_COLUMNS)),
        n_statuses=2,
        n_outcomes=2,
        step=_run_step,
        n_public=None if tables.law == NO_NOISE else _PUBLIC,
        replay=None if tables.law == NO_NOISE else _run_replay,
    )
