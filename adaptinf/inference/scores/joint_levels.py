"""Levels of arms with shared weights: pairwise contrasts, projected on arms and shifted to a mean.

With h_t = (1 / e_i + 1 / e_j)^(-1/2), 0 if one of the two arms could not be chosen, the contrast of arms i
and j is

    delta_ij = sum h_t (score_ti - score_tj) / sum h_t,

in which effects common to both arms cancel. The levels d solve the normal equations of the least-squares fit
of d_i - d_j to delta_ij with weights (sum h_t)^2, which are close to the contrasts' precisions, so
differences of levels are averages of contrasts. Levels are shifted by c = mean over t of sum_k v_tk (score_tk
- d_k), in which all rounds have equal weight: v_t divides one unit among the arms that could be chosen in
round t, in proportion to w_k = 1 / sum_t(1 / e_tk). If arms drift in parallel, d + c are the arms' means over
the period, including those of arms that were added or removed. Arms that are not connected by a chain of
common rounds are shifted separately. Given the weights, all levels are linear in the scores, so the
contribution of a round to their errors is known, and with it the covariance.

References
----------
Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
experiments" (weights that even out variances). Satterthwaite (1946), "An approximate distribution of
estimates of variance components".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np

from adaptinf.inference.inputs.rounds import middles, moves
from adaptinf.inference.scores.inverse import (
    aipw_scores,
    first_weighted,
    indicators,
    ipw_scores,
    origin_of,
    predictions_after,
)
from adaptinf.inference.scores.means import (
    ScoreMeans,
    movement,
    negligible,
    standardised,
    unevenness,
)
from adaptinf.typing import BoolArray, FloatArray, IntArray

JOINT = "joint"
"""The name of the weights that the arms of a table share."""
_MOST = 1_000_000_000
"""Largest number of rounds (or batches) times the squared number of arms for comparing all pairs."""
_SMALL = 500_000
"""Largest number of pairs times rounds for which NumPy is faster than loading Numba."""
_FEWEST_ALIKE = 0.125
"""Stretches with equal weights are processed in one step if their number is at most this share of rounds."""
# With up to this many columns, a matrix product column by column is faster than BLAS.
_NARROW = 6
# A block of rounds has this many numbers, half a megabyte, and stays in the processor's cache.
_CELLS = 1 << 16


class Rounds(NamedTuple):
    """Consecutive rounds; time has shape (n,), and all other arrays have shape (n, k).

    `gain` is the coefficient of a score's own reward, which is 1 / e in an arm's own rounds. `inverse` is 1 /
    e for the propensities that fix the weights, and infinite if an arm could not be chosen; `possible`
    indicates whether it could. `time` runs from -1/2 to 1/2.
    """

    scores: FloatArray
    gain: FloatArray
    inverse: FloatArray
    possible: BoolArray
    time: FloatArray


Pieces = Callable[[bool], Iterator[Rounds]]
"""A function that generates the rounds of a log piece by piece, with or without scores."""
Tabled = tuple[FloatArray, FloatArray, FloatArray]
"""For each arm, the number of rewards, their sum, and the smallest propensity; shapes (k,)."""


class LogRounds(NamedTuple):
    """The rounds of a log and their number, columns of tables about arms, and the origin of scores."""

    pieces: Pieces
    number: int
    tabled: Tabled
    origin: float = 0.0

    def of_arms(self, places: IntArray) -> LogRounds:
        """The rounds with only the arms at these positions; places has shape (m,)."""

        def some(scored: bool) -> Iterator[Rounds]:
            for piece in self.pieces(scored):
                parts = [part[:, places] for part in (piece.scores, piece.gain, piece.inverse)]
                yield Rounds(parts[0], parts[1], parts[2], piece.possible[:, places], piece.time)

        pulls, successes, smallest = (part[places] for part in self.tabled)
        return self._replace(pieces=some, tabled=(pulls, successes, smallest))


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of arms that are compared; first, second (P,), out of `size` arms.

    `order` contains the pairs sorted by arm (first arms, then second arms), their signs, and the position at
    which each arm's pairs begin. `compiled` indicates whether sums over pairs justify loading Numba.
    """

    first: IntArray
    second: IntArray
    size: int
    order: tuple[IntArray, FloatArray, IntArray]
    compiled: bool = False

    def add_sums(self, piece: Rounds, sums: FloatArray) -> None:
        """Add the sums of h, of h (score_i - score_j) and of h times time; sums (3, P)."""
        if self.compiled:
            if (stretches := _stretches(piece.inverse)) is not None:
                for rows in stretches:
                    h = self.weights(piece.inverse[rows.start : rows.start + 1])[0]
                    scores = piece.scores[rows].sum(axis=0)
                    gap = scores[self.first] - scores[self.second]
                    sums += [h * (rows.stop - rows.start), h * gap, h * piece.time[rows].sum()]
                return
            from adaptinf.inference.scores.score_kernels import add_pair_sums

            add_pair_sums(piece.scores, piece.inverse, piece.time, self.first, self.second, sums)
            return
        h = self.weights(piece.inverse)
        sums += [h.sum(axis=0), np.einsum("np,np->p", h, self.gaps(piece.scores)), piece.time @ h]

    def gather(self, piece: Rounds, projection: Projection) -> FloatArray:
        """By arm, contributions to errors of contrasts, coefficients of rewards and slopes; (3, n, k)."""
        if self.compiled:
            found = np.zeros((3, *piece.scores.shape))
            if (stretches := _stretches(piece.inverse)) is not None:
                for rows in stretches:
                    self._gather_alike(piece, rows, projection, found)
                return found
            from adaptinf.inference.scores.score_kernels import gather_pairs

            laws = (projection.factor, projection.contrast, projection.centre)
            gather_pairs(*piece[:3], piece.time, self.first, self.second, *laws, found)
            return found
        pull = self.weights(piece.inverse) * projection.factor
        errors = pull * (self.gaps(piece.scores) - projection.contrast)
        slopes = errors * (piece.time[:, None] - projection.centre)
        return np.array([self.gathered(part) for part in (errors, pull * self.gaps(piece.gain), slopes)])

    def _gather_alike(self, piece: Rounds, rows: slice, projection: Projection, found: FloatArray) -> None:
        """Fill in rounds whose weights are all the same, by products with matrices; found (3, n, k)."""
        pull = self.weights(piece.inverse[rows.start : rows.start + 1])[0] * projection.factor
        late = pull * projection.centre
        both = np.array([pull, late])
        even, odd = self._matrix(both, 1.0), self._matrix(both * projection.contrast, -1.0)
        scores, gain = piece.scores[rows], piece.gain[rows]
        errors, moved = (
            scores * matrix.sum(axis=1) - scores @ matrix - known.sum(axis=1)
            for matrix, known in zip(even, odd, strict=True)
        )
        found[0, rows] = errors
        found[1, rows] = gain * even[0].sum(axis=1) - gain @ even[0]
        found[2, rows] = piece.time[rows, None] * errors - moved

    def _matrix(self, values: FloatArray, sign: float) -> FloatArray:
        """Matrices (m, k, k) of pairs' values (m, P), with reversed pairs multiplied by `sign`."""
        found = np.zeros((len(values), self.size, self.size))
        found[:, self.first, self.second] = values
        found[:, self.second, self.first] = sign * values
        return found

    def weights(self, inverse: FloatArray) -> FloatArray:
        """The weights h of the pairs; inverse (n, k), returns (n, P)."""
        found = inverse[:, self.first]
        found += inverse[:, self.second]
        np.sqrt(found, out=found)
        return np.divide(1.0, found, out=found)

    def gaps(self, values: FloatArray) -> FloatArray:
        """The first arm's value minus the second's; values (n, k), returns (n, P)."""
        return np.asarray(values[:, self.first] - values[:, self.second])

    def gathered(self, values: FloatArray) -> FloatArray:
        """Sums by arm (n, k) of pairs' values (n, P), which are subtracted for second arms."""
        if self.size == 1:
            return np.zeros((len(values), 1))
        place, sign, starts = self.order
        return np.asarray(np.add.reduceat(values[:, place] * sign, starts, axis=1))


def _stretches(inverse: FloatArray) -> list[slice] | None:
    """Stretches of rounds with the same inverses, or None if there are too many; inverse (n, k)."""
    starts = [0, *moves(inverse, None).tolist(), len(inverse)]
    if len(starts) - 1 > _FEWEST_ALIKE * len(inverse):
        return None
    return [slice(start, stop) for start, stop in pairwise(starts)]


def pairs_of(pulls: FloatArray, rounds: int) -> Pairs:
    """All pairs of arms or, if these are too many, those with the most-pulled arm; pulls (k,)."""
    size = len(pulls)
    if too_many(size, rounds):
        most = int(np.argmax(pulls))
        others = np.delete(np.arange(size), most)
        first, second = others, np.full(size - 1, most)
    else:
        first, second = np.triu_indices(size, 1)
    arm, half = np.concatenate([first, second]), len(first)
    order = np.argsort(arm, kind="stable")
    # Every arm is in some pair, so each has an entry here.
    starts = np.flatnonzero(np.diff(arm[order], prepend=-1))
    by_arm = order % max(half, 1), np.where(order < half, 1.0, -1.0), starts
    return Pairs(first, second, size, by_arm, compiled=half * rounds > _SMALL)


def too_many(size: int, rounds: int) -> bool:
    """Whether all pairs are too many, so that arms are compared only with the most-pulled arm."""
    return size * size * rounds > _MOST


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Sums over all rounds.

    Shapes: weight, gap, moment (P,), sums of h, h (score_i - score_j) and h times time, share (C, k), level
    (C,), sums of v and of v times scores, rounds (C,), in which an arm of the component was possible.
    """

    weight: FloatArray
    gap: FloatArray
    moment: FloatArray
    share: FloatArray
    level: FloatArray
    rounds: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The levels, and the linear map from scores to levels.

    Shapes: levels (k,), contrast, factor, centre (P,), the pairs' estimates, the weights of their equations
    and their mean times, member (k, C), the component of each arm, rounds (C,), carry (k, k + C). `carry`
    maps a round's r and u to errors of the levels (see `parts_of`).
    """

    pairs: Pairs
    levels: FloatArray
    contrast: FloatArray
    factor: FloatArray
    centre: FloatArray
    member: FloatArray
    weight: FloatArray
    rounds: FloatArray
    carry: FloatArray


def components_of(pairs: Pairs, linked: BoolArray) -> FloatArray:
    """Which arms are connected by common rounds, directly or indirectly; linked (P,), returns (k, C)."""
    root = np.arange(pairs.size)
    for first, second in zip(pairs.first[linked], pairs.second[linked], strict=True):
        if root[first] != root[second]:
            root[root == root[second]] = root[first]
    return np.asarray(root[:, None] == np.unique(root)[None, :], dtype=np.float64)


def level_shares(possible: BoolArray, weight: FloatArray, member: FloatArray) -> FloatArray:
    """Shares v of the arms in a round's level, which sum to 1 in each component with possible arms.

    Shapes: possible (n, k), weight (k,), member (k, C); returns (n, k).
    """
    if len(possible) > 1 and possible.all():
        return np.broadcast_to(level_shares(possible[:1], weight, member), possible.shape)
    own = possible * weight
    total = own @ member
    return np.asarray(own / (np.where(total > 0.0, total, 1.0) @ member.T))


def project(pairs: Pairs, totals: Totals, member: FloatArray, weight: FloatArray) -> Projection:
    """Solve for the levels; member (k, C), weight (k,)."""
    linked = totals.weight > 0.0
    contrast = np.divide(totals.gap, totals.weight, out=np.zeros_like(totals.gap), where=linked)
    # Division by the square of the largest weight keeps the weights of the equations at most 1, however long
    # the log.
    factor = totals.weight / totals.weight.max(initial=1.0) ** 2
    laplacian = np.zeros((pairs.size, pairs.size))
    precision = factor * totals.weight
    np.add.at(laplacian, (pairs.first, pairs.second), -precision)
    np.add.at(laplacian, (pairs.second, pairs.first), -precision)
    degree = -laplacian.sum(axis=1)
    laplacian[np.diag_indices(pairs.size)] = degree
    inverse = np.zeros_like(laplacian)
    # Levels are determined up to a constant in each component, so its best connected arm is set to 0; scaling
    # improves the condition of the matrix.
    for one in member.T:
        arms = np.flatnonzero(one)
        rest = np.delete(arms, int(np.argmax(degree[arms])))
        scale = 1.0 / np.sqrt(degree[rest])
        even = laplacian[np.ix_(rest, rest)] * scale[:, None] * scale
        inverse[np.ix_(rest, rest)] = np.linalg.inv(even) * scale[:, None] * scale
    relative = inverse @ pairs.gathered((factor * totals.gap)[None, :])[0]
    rounds = np.where(totals.rounds > 0.0, totals.rounds, np.nan)  # Without any rounds there is no level.
    share, level = totals.share / rounds[:, None], totals.level / rounds
    shift = level - share @ relative
    turned = np.eye(pairs.size) - member @ share
    return Projection(
        pairs=pairs,
        levels=relative + member @ shift,
        contrast=contrast,
        factor=factor,
        centre=np.divide(totals.moment, totals.weight, out=np.zeros_like(totals.gap), where=linked),
        member=member,
        weight=weight,
        rounds=rounds,
        carry=np.column_stack([turned @ inverse, member]),
    )


class Parts(NamedTuple):
    """Contributions to errors of levels, coefficients of rewards, and slopes; all shapes (n, k)."""

    influence: FloatArray
    coefficient: FloatArray
    slope: FloatArray


def parts_of(projection: Projection, piece: Rounds) -> Parts:
    """Contributions of rounds to the errors of levels.

    Let r be the sum over pairs of factor h (score_i - score_j - delta), added for i and subtracted for j, and
    let u be the round's contribution to the shift. `carry` combines both into errors of levels.
    """
    r, given, slope = projection.pairs.gather(piece, projection)
    v = level_shares(piece.possible, projection.weight, projection.member)
    found = []
    for pulled, values in ((r, piece.scores - projection.levels), (given, piece.gain)):
        u = _times(v * values, projection.member) / projection.rounds
        found.append(_times(np.column_stack([pulled, u]), projection.carry.T))
    return Parts(found[0], found[1], slope)


def _times(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Product of many short rows (n, a) and a small matrix (a, b), for which BLAS is slow; returns (n, b)."""
    if max(matrix.shape) > _NARROW:
        return np.asarray(rows @ matrix)
    found = np.zeros((len(rows), matrix.shape[1]))
    for place, line in enumerate(matrix):
        for column in np.flatnonzero(line):
            found[:, column] += rows[:, place] * line[column]
    return found


def projected(rounds: LogRounds) -> Projection:
    """Compute the levels of arms that all have rewards."""
    pairs = pairs_of(rounds.tabled[0], rounds.number)
    cost, linked = np.zeros(pairs.size), np.zeros(len(pairs.first), dtype=bool)
    for piece in rounds.pieces(False):
        cost += np.where(piece.possible, piece.inverse, 0.0).sum(axis=0)
        if not linked.all():
            linked |= (piece.possible[:, pairs.first] & piece.possible[:, pairs.second]).any(axis=0)
    weight = np.divide(1.0, cost, out=np.zeros_like(cost), where=cost > 0.0)
    member = components_of(pairs, linked)
    count, sums = member.shape[1], np.zeros((3, len(pairs.first)))
    share, level, there = np.zeros((count, pairs.size)), np.zeros(count), np.zeros(count)
    for piece in rounds.pieces(True):
        pairs.add_sums(piece, sums)
        v = level_shares(piece.possible, weight, member)
        share += member.T * v.sum(axis=0)
        level += np.einsum("nk,nk->k", v, piece.scores) @ member
        there += np.count_nonzero(piece.possible @ member, axis=0)
    return project(pairs, Totals(sums[0], sums[1], sums[2], share, level, there), member, weight)


def joint_means(rounds: LogRounds) -> ScoreMeans:
    """Levels of arms, and the quantities that tests and tables require.

    The levels of arms without a reward are NaN, and these arms do not affect the other levels.
    """
    there = np.flatnonzero(rounds.tabled[0] > 0.0)
    if len(there) < len(rounds.tabled[0]):
        return scattered(joint_means(rounds.of_arms(there)), there, rounds.tabled)
    projection, spread = projected(rounds), Spread.empty(len(there))
    for piece in rounds.pieces(True):
        spread.add(parts_of(projection, piece), piece)
    return described_levels(projection, spread, rounds.tabled, rounds.origin)


def joint_scores(rounds: LogRounds) -> FloatArray:
    """The scores of all rounds, shape (T, k)."""
    return np.concatenate([one.scores for one in rounds.pieces(True)]) + rounds.origin


def joint_rows(rounds: LogRounds, part: Literal["influence", "coefficient"]) -> FloatArray:
    """One of the `Parts` for all rounds, shape (T, k); NaN for arms without rewards."""
    there = np.flatnonzero(rounds.tabled[0] > 0.0)
    some = rounds.of_arms(there)
    projection = projected(some)
    found = np.full((rounds.number, len(rounds.tabled[0])), np.nan)
    found[:, there] = np.concatenate([getattr(parts_of(projection, one), part) for one in some.pieces(True)])
    return found


def expected_spread(
    chosen: FloatArray, fixed: FloatArray, propensities: FloatArray, times: float
) -> tuple[FloatArray, FloatArray]:
    """Variances of levels relative to that of a reward, and degrees of freedom, from a subset of rounds.

    Shapes: chosen, fixed, propensities (n, k); returns (k,), (k,). The log has `times` as many rounds.
    """
    pulls, time = chosen.sum(axis=0), middles(np.ones(len(chosen)))
    gain = np.divide(chosen, propensities, out=np.zeros_like(chosen), where=chosen > 0.0)
    rounds = rounds_of(np.zeros_like(gain), gain, fixed, propensities > 0.0, time)
    found = joint_means(LogRounds(whole_pieces(rounds), len(time), (pulls, pulls, pulls)))
    assert found.squares is not None
    squares = np.where(pulls > 0.0, found.squares / times, np.inf)
    return squares, np.asarray((found.freedom + 1.0) * times - 1.0)


@dataclass(slots=True, eq=False)
class Spread:
    """Sums of contributions to the errors of levels, and of the levels' coefficients of rewards.

    Shapes: covariance (k, k), cubes (k,), powers (3, k), own (2, k), slope (2, k), used (k,). `covariance`
    and `cubes` are sums of products and cubes of contributions. `powers` contains sums of the second, third
    and fourth powers of the coefficients of all rewards, and `own` sums over an arm's own rewards of absolute
    coefficients and of their squares. `slope` contains sums of the slopes in time and of their squares, and
    `used` numbers of rounds with a weight.
    """

    covariance: FloatArray
    cubes: FloatArray
    powers: FloatArray
    own: FloatArray
    slope: FloatArray
    used: FloatArray

    @classmethod
    def empty(cls, size: int) -> Spread:
        """Sums to which nothing has been added yet."""
        powers, own, slope = (np.zeros((rows, size)) for rows in (3, 2, 2))
        return cls(np.zeros((size, size)), np.zeros(size), powers, own, slope, np.zeros(size))

    def add(self, parts: Parts, piece: Rounds) -> None:
        """Add the contributions of a piece of rounds."""
        influence, coefficient, slopes = parts
        self.covariance += influence.T @ influence
        self.cubes += np.einsum("nk,nk,nk->k", influence, influence, influence)
        square = coefficient**2
        self.powers += [square.sum(axis=0), (square * coefficient).sum(axis=0), (square**2).sum(axis=0)]
        mine = piece.gain != 0.0
        self.own += [np.abs(coefficient * mine).sum(axis=0), (square * mine).sum(axis=0)]
        self.slope += [slopes.sum(axis=0), np.einsum("nk,nk->k", slopes, slopes)]
        self.used += np.count_nonzero(piece.possible, axis=0)


def described_levels(projection: Projection, spread: Spread, tabled: Tabled, origin: float) -> ScoreMeans:
    """The levels with their errors, degrees of freedom and other columns of tables."""
    pulls, successes, smallest = tabled
    covariance, levels = spread.covariance, projection.levels
    constant = negligible(np.sqrt(np.diag(covariance)), levels, origin)
    covariance[constant, :] = covariance[:, constant] = 0.0
    squares, cubes, fourths = spread.powers
    even = np.where(fourths > 0.0, fourths, np.inf)
    own = np.where(spread.own[1] > 0.0, spread.own[1], 1.0)
    return ScoreMeans(
        above=levels,
        origin=origin,
        covariance=covariance,
        pulls=pulls,
        successes=successes,
        ess=spread.own[0] ** 2 / own,
        # An arm's single reward gives no information about its variation, whatever other arms' rewards show.
        freedom=np.where(pulls > 1.0, np.maximum(squares**2 / even - 1.0, 0.0), 0.0),
        min_propensity=smallest,
        used=spread.used,
        skewness=standardised(spread.cubes, np.diag(covariance)),
        unevenness=unevenness(squares, cubes),
        movement=movement(*spread.slope),
        squares=squares,
    )


def scattered(found: ScoreMeans, places: IntArray, tabled: Tabled) -> ScoreMeans:
    """The estimates at these positions among those of all arms; places has shape (m,)."""
    pulls, successes, smallest = tabled

    def put(values: FloatArray, fill: float) -> FloatArray:
        whole = np.full(len(pulls), fill)
        whole[places] = values
        return whole

    covariance = np.full((len(pulls), len(pulls)), np.nan)
    covariance[np.ix_(places, places)] = found.covariance
    names = ("ess", "freedom", "used", "skewness", "unevenness", "squares")
    rest: dict[str, Any] = {name: put(getattr(found, name), 0.0) for name in names}
    return replace(
        found,
        above=put(found.above, np.nan),
        covariance=covariance,
        pulls=pulls,
        successes=successes,
        min_propensity=smallest,
        **rest,
    )


def round_pieces(
    action: IntArray,
    reward: FloatArray,
    propensity: FloatArray,
    propensities: FloatArray,
    codes: IntArray,
    *,
    tabled: Tabled,
    time: FloatArray,
    fixed: FloatArray | None = None,
    outcome: FloatArray | str | None = "running-mean",
    start: int | None = None,
) -> LogRounds:
    """The rounds of a log, scored piece by piece.

    Shapes: action, reward, propensity (T,), propensities (T, K), codes (k,), time (T,), fixed (T, k), outcome
    (T, k). `fixed` contains the propensities that fix the weights, by default the rounds' own.
    """
    origin, first = origin_of(reward, outcome), first_weighted(outcome, start)
    n_rounds, size = len(action), len(codes)
    step = _piece(size, n_rounds)
    whole = np.array_equal(codes, np.arange(propensities.shape[1]))

    fast = isinstance(outcome, str) and n_rounds * size > _SMALL

    def pieces(scored: bool) -> Iterator[Rounds]:
        past = None
        if scored and fast:
            from adaptinf.inference.scores.score_stream import STATE, score_rounds, stream_of

            stream, state = stream_of(action, reward, propensity, None, codes), np.zeros((STATE, size))
        for begin in range(0, n_rounds, step):
            part = slice(begin, min(begin + step, n_rounds))
            every, chances, above = propensities[part], propensity[part], reward[part] - origin
            every = every if whole else every[:, codes]
            possible = every > 0.0
            possible[: max(0, first - begin)] = False
            scores = gain = np.broadcast_to(0.0, every.shape)
            if scored and fast:
                scores, gain = np.zeros((2, *every.shape))
                score_rounds(stream, begin, state, scores, gain)
            elif scored:
                chosen = indicators(action[part], codes)
                gain = chosen / chances[:, None]
                if outcome is None:
                    scores = ipw_scores(chosen, above, chances)
                elif isinstance(outcome, str):
                    predicted, past = predictions_after(chosen, above, past)
                    scores = aipw_scores(chosen, above, chances, predicted)
                else:
                    scores = aipw_scores(chosen, above, chances, outcome[part] - origin)
            fixing = every if fixed is None else fixed[part]
            yield rounds_of(scores, gain * possible, fixing, possible, time[part])

    return LogRounds(pieces, n_rounds, tabled, origin)


def rounds_of(
    scores: FloatArray,
    gain: FloatArray,
    fixed: FloatArray,
    possible: BoolArray,
    time: FloatArray,
) -> Rounds:
    """Rounds with the inverses of the propensities that fix their weights; fixed (n, k), time (n,)."""
    with np.errstate(divide="ignore"):
        inverse = np.where(possible, 1.0 / fixed, np.inf)
    return Rounds(scores, gain, inverse, possible, time)


def whole_pieces(rounds: Rounds) -> Pieces:
    """The pieces of rounds that have been scored together."""
    step = _piece(rounds.scores.shape[1], len(rounds.time))

    def pieces(scored: bool) -> Iterator[Rounds]:
        for begin in range(0, len(rounds.time), step):
            part = slice(begin, begin + step)
            scores, gain, inverse = rounds.scores[part], rounds.gain[part], rounds.inverse[part]
            yield Rounds(scores, gain, inverse, rounds.possible[part], rounds.time[part])

    return pieces


def _piece(size: int, n_rounds: int) -> int:
    """Number of rounds that are processed together, given the number of arms."""
    half = size * (size - 1) // 2
    # Compiled sums need no array of all pairs.
    few = too_many(size, n_rounds) or half * n_rounds > _SMALL
    pairs = size if few else half
    return max(1, _CELLS // max(size, pairs))
