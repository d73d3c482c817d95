"""Expected width of a confidence sequence at the last round, computed only from counts and pooled moments.

The scores are assumed to have the same distribution in every round. Rewards have the pooled mean and variance
(0 or 1 with a certain probability, and otherwise the mean), and are drawn with the average inverse
propensity. The log wealth is replaced by its expectation.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betaln

from adaptinf.inference.sequences.common_rounds import within
from adaptinf.inference.sequences.mixtures import beta_size, gamma_boundary
from adaptinf.inference.sequences.sequence_records import Quantity, ScoreLaw, SequenceMethod
from adaptinf.inference.sequences.sides import CAP, mixture_scale
from adaptinf.inference.validity.lengths import LOG_ALPHA, some_arms, typical
from adaptinf.typing import FloatArray

if TYPE_CHECKING:
    from adaptinf.inference.validity.profile import LogProfile

_ALPHA = math.exp(LOG_ALPHA)
# These are the defaults of `settled`, because the expected width is that of a call without further arguments.
_T_OPT, _START = 1000.0, 100.0
# Widths serve only to order the sequences, so 128 times can represent all rounds, and 24 bisections, which
# give 7 digits, suffice.
_POINTS, _HALVINGS = 128, 24
# With more arms, only this many are used, evenly spaced by their counts, which limits the time.
_MOST_ARMS = 16


def expected_width(
    profile: LogProfile, quantities: tuple[Quantity, ...], method: SequenceMethod, estimator: str
) -> float:
    """Average width for a quantity.

    Until a sequence begins, the width is the range of rewards, or infinite if the range is unknown.
    """
    log = profile.log
    span = log.reward_range
    bounded = span is not None and all(map(math.isfinite, span))
    low, width = (span[0], span[1] - span[0]) if bounded and span is not None else (0.0, 1.0)
    mean, variance = (profile.pooled_mean - low) / width, (profile.pooled_std / width) ** 2
    counts, most = profile.pulls, 1.0 if bounded else math.inf
    if len(quantities) > 1 and quantities[0].codes:
        codes = np.array([quantity.codes[0] for quantity in quantities])
        kept = set(some_arms(counts, codes, _MOST_ARMS).tolist())
        quantities = tuple(quantity for quantity in quantities if quantity.codes[0] in kept)
    found = []
    for quantity in quantities:
        if estimator == "sample-mean":
            share = 1.0 / len(quantity.codes)
            arms = [counts[code] for code in quantity.codes]
            parts = [
                min(
                    _width(method, _laws(method, "sample-mean", [(1.0, 1.0)], 1.0, mean, variance), n, share),
                    most,
                )
                for n in arms
            ]
            found.append(sum(parts) * width)
        else:
            part, quantity = within(profile, quantity)
            ratios, total = _ratios(part, quantity)
            # The ratio is infinite if an arm was never chosen.
            if not all(math.isfinite(ratio) for ratio, _ in ratios):
                found.append(math.inf)
                continue
            uneven = _unevenness(part, quantity)
            laws = _laws(method, estimator, ratios, total, mean, variance)
            fewest = min((float(part.pulls[code]) for code in quantity.codes), default=math.inf)
            begun = method.anytime or fewest >= _START
            own = _width(method, laws, float(part.log.n_rounds), 1.0, uneven) if begun else math.inf
            found.append(min(own, most) * width * total)
    return typical(np.array(found))


def _ratios(profile: LogProfile, quantity: Quantity) -> tuple[list[tuple[float, float]], float]:
    """Weights times average inverse propensities, with their probabilities, and the range of weights."""
    weights = quantity.weights
    total = weights.negative + weights.positive
    if not quantity.codes:
        arrays = profile.log.arrays
        assert arrays.propensity is not None
        taken = weights.ratios(arrays.action, arrays.propensity)
        # The mean of these squares estimates the expected sum of policy^2 / propensity.
        mean = float(np.mean(taken**2))
        return [(mean, min(1.0, 1.0 / mean))] if mean > 0.0 else [(1.0, 1.0)], total
    found, squares = [], profile.inverse_squares
    for code in quantity.codes:
        # The rounds that chose the arm, weighted by 1/e, estimate the mean of 1/e over all rounds.
        inverse = float(squares[code]) / profile.log.n_rounds if profile.pulls[code] else math.inf
        sign = 1.0 if code == quantity.codes[0] else -1.0
        found.append((sign * max(inverse, 1.0), min(1.0, 1.0 / inverse) if inverse > 0.0 else 0.0))
    return found, total


def _unevenness(profile: LogProfile, quantity: Quantity) -> float:
    """Mean square of inverse propensities over their squared mean; the maximum over the arms involved."""
    found, squares, cubes = [1.0], profile.inverse_squares, profile.inverse_cubes
    for code in quantity.codes:
        if profile.pulls[code]:
            found.append(float(cubes[code] / squares[code] ** 2) * profile.log.n_rounds)
    return max(found)


def _laws(
    method: SequenceMethod,
    estimator: str,
    ratios: list[tuple[float, float]],
    total: float,
    mean: float,
    variance: float,
) -> tuple[ScoreLaw, ScoreLaw]:
    """Distributions of the scores that show that a quantity is larger, and that it is smaller."""
    spread = mean * (1.0 - mean)
    mixed = min(1.0, variance / spread) if spread > 0.0 else 0.0
    rewards = [(0.0, mixed * (1.0 - mean)), (mean, 1.0 - mixed), (1.0, mixed * mean)]
    # Such moments are impossible in [0, 1], so rewards have no known bounds.
    if not 0.0 <= mean <= 1.0 or variance > spread * (1.0 + 1e-9):
        size = math.sqrt(variance)
        rewards = [(mean - size, 0.5), (mean + size, 0.5)]
    idle = max(0.0, 1.0 - sum(share for _, share in ratios))
    positive = sum(1.0 for ratio, _ in ratios if ratio > 0.0)
    negative = float(len(ratios)) - positive
    plain = estimator == "ipw" and method.bets
    guess = 0.5 if estimator == "ipw" else mean
    direct = guess * (positive - negative)

    def lower(ratio: float, reward: float) -> float:
        if estimator == "sample-mean":
            return reward
        if plain:
            return abs(ratio) / total * (reward if ratio >= 0.0 else 1.0 - reward)
        return (direct + ratio * (reward - guess) + negative) / total

    def upper(ratio: float, reward: float) -> float:
        return abs(ratio) / total - lower(ratio, reward) if plain else 1.0 - lower(ratio, reward)

    laws = []
    for side in (lower, upper):
        atoms = [(side(r, y), share * p) for r, share in ratios for y, p in rewards]
        atoms.append((side(0.0, guess), idle))
        floor = min(0.0, *(side(r, y) for r, _ in ratios for y in (0.0, 1.0)))
        values, shares = np.array(atoms).T
        laws.append(ScoreLaw(values, shares, 0.0 if plain or estimator == "sample-mean" else floor))
    return laws[0], laws[1]


def _width(
    method: SequenceMethod, laws: tuple[ScoreLaw, ScoreLaw], count: float, share: float, uneven: float = 1.0
) -> float:
    """Width on the scale of the scores after `count` scores, at the given share of alpha."""
    if count < 1.0 or not all(math.isfinite(law.variance) for law in laws):
        return math.inf
    if method.distance is None:
        return 2.0 * _mixture(method, laws, count, share, uneven)
    threshold = math.log((2.0 if method.bets else 1.0) / (_ALPHA * share))
    time = np.unique(np.rint(np.geomspace(1.0, count, _POINTS)))
    weight = np.diff(time, prepend=0.0)
    return min(sum(method.distance(law, threshold, time, weight) for law in laws), 1.0)


def bernstein_distance(law: ScoreLaw, threshold: float, time: FloatArray, weight: FloatArray) -> float:
    """Distance between the bound of an empirical Bernstein side and the mean; time, weight (m,)."""
    scale = 1.0 - law.floor
    share = np.minimum(CAP / scale, _bets(law, time)) * scale
    cost = (-np.log1p(-share) - share) / scale**2 * law.variance
    return float(threshold + weight @ cost) / float(weight @ (share / scale))


def betting_distance(law: ScoreLaw, threshold: float, time: FloatArray, weight: FloatArray) -> float:
    """Distance between the bound of a betting side and the mean; time, weight (m,)."""
    bet = _bets(law, time)
    mean = law.mean
    near, far = 0.0, mean
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        claimed = mean - middle
        stake = np.minimum(bet, CAP / max(claimed - law.floor, 1e-12))
        gain = np.log1p(np.multiply.outer(stake, law.values - claimed)) @ law.shares
        if float(np.max(np.cumsum(weight * gain))) >= threshold:
            far = middle
        else:
            near = middle
    return far


def beta_distance(law: ScoreLaw, threshold: float, time: FloatArray, weight: FloatArray) -> float:
    """Distance between the bound of a beta-binomial side and the mean; time, weight (m,)."""
    count, mean, size = float(time[-1]), law.mean, beta_size(_T_OPT, _ALPHA)
    if mean <= 0.0:
        return 0.0
    wins, losses = count * mean, count * (1.0 - mean)
    near, far = 0.0, mean
    for _ in range(_HALVINGS):
        middle = 0.5 * (near + far)
        claimed = mean - middle
        one, zero = size * claimed, size * (1.0 - claimed)
        wealth = betaln(one + wins, zero + losses) - betaln(one, zero)
        wealth -= wins * math.log(claimed) + losses * math.log1p(-claimed)
        near, far = (near, middle) if wealth >= threshold else (middle, far)
    return far


def gamma_distance(law: ScoreLaw, threshold: float, time: FloatArray, weight: FloatArray) -> float:
    """Distance between the bound of a gamma-exponential side and the mean; time, weight (m,)."""
    count, scale = float(time[-1]), 1.0 - law.floor
    variance = np.array([0.25 + count * law.variance / scale**2])
    boundary = gamma_boundary(variance, threshold, mixture_scale(0.25 * _T_OPT, _ALPHA))
    return float(boundary[0]) * scale / count


def _bets(law: ScoreLaw, time: FloatArray) -> FloatArray:
    """Predictable plug-in bets if the variance so far equals its expectation; time (m,)."""
    variance = (0.25 + time * law.variance) / (time + 1.0)
    return np.asarray(np.sqrt(2.0 * math.log(2.0 / _ALPHA) / (variance * time * np.log1p(time))))


def _mixture(
    method: SequenceMethod, laws: tuple[ScoreLaw, ScoreLaw], count: float, share: float, uneven: float
) -> float:
    """Half-width of an interval of a normal mixture."""
    threshold = -math.log(_ALPHA * share)
    span = 1.0 - laws[0].floor - laws[1].floor
    each = 0.25 * span**2 * uneven if method.anytime else laws[0].variance
    if each <= 0.0 or (not method.anytime and count < _START):
        return math.inf
    scale = mixture_scale(each * _T_OPT, _ALPHA)
    total = count * each + scale
    return math.sqrt(total * (math.log(total / scale) + 2.0 * threshold)) / count
