"""Every analysis of two arms with rewards in [0, 1] in a few passes over the arrays of a log.

What `inference.py` measures, twenty times as fast as by one class a method; `check` compares the two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from adaptinf.compilation import compiled
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.arms.alee import alee_means
from adaptinf.inference.distributions.tails import normal_quantile, student_quantile
from adaptinf.inference.results.base import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.scores.means import sample_means, welch
from adaptinf.inference.scores.score_stream import streamed_means
from adaptinf.inference.sequences.confidence_sequence import ConfidenceSequence
from adaptinf.inference.sequences.sides import CAP, mixture_scale
from adaptinf.log import AdaptiveLog
from adaptinf.simulation.environments import Environment

ALPHA = 0.05
T_OPT, START = 1_000.0, 100
CODES = np.array([0, 1])
QUANTITIES = ("contrast", "arm 0", "arm 1")
WEALTH = "betting wealth"
OWN = ("normal mixture", "empirical Bernstein", "asymptotic sequence")
SCORED = ("empirical Bernstein, ipw", "asymptotic sequence, aipw")
_TAIL = math.log(ALPHA) - math.log(2.0)
_NORMAL = normal_quantile(_TAIL)
_UNIT = mixture_scale(1.0, ALPHA)
_BET = 2.0 * math.log(2.0 / ALPHA)


@compiled
def own_sequences(action, reward, arm, truth, unit, bet_scale, thresholds, found):  # type: ignore[no-untyped-def]
    """Sequences of an arm's own rewards, and the wealth of bets against its true mean.

    `thresholds`, shape (2, 3): of the log wealth, for the arm and for a contrast, by `OWN`. `found`, shape
    (2, 3, 2), starts at 0: largest rejected means below, and above one minus those. Returns the last wealth
    below, and the largest log wealth below and above.
    """
    n, total, squares, moved = 0.0, 0.0, 0.0, 0.0
    centre, spread, deviations = 0.5, 0.25, 0.25
    gain_low, gain_high, stake, scale = 0.0, 0.0, 0.0, 0.0
    wealth_low, wealth_high, peak_low, peak_high = 0.0, 0.0, 0.0, 0.0
    first = 0.0
    for t in range(action.shape[0]):
        if action[t] != arm:
            continue
        y = reward[t]
        if n == 0.0:
            first = y
        n += 1.0
        total += y
        moved += y - first
        squares += (y - first) ** 2
        plain = math.sqrt(bet_scale / (spread * n * math.log1p(n)))
        bet = min(CAP, plain)
        penalty = -math.log1p(-bet) - bet
        gain_low += bet * y - penalty * (y - centre) ** 2
        gain_high += bet * (1.0 - y) - penalty * (y - centre) ** 2
        stake += bet
        wealth_low += math.log1p(min(plain, CAP / truth) * (y - truth))
        wealth_high += math.log1p(min(plain, CAP / (1.0 - truth)) * (truth - y))
        peak_low, peak_high = max(peak_low, wealth_low), max(peak_high, wealth_high)
        mean = min(max((0.5 + total) / (n + 1.0), 0.0), 1.0)
        deviations += (y - mean) ** 2
        centre, spread = mean, deviations / (n + 1.0)
        variance = max(squares / n - (moved / n) ** 2, 0.0) if n >= START else 0.0
        if scale == 0.0 and variance > 0.0:
            scale = variance * T_OPT * unit
        whole = 0.25 * n + 0.25 * T_OPT * unit
        edge = math.log(whole / (0.25 * T_OPT * unit))
        wide = n * variance + scale
        rim = math.log(wide / scale) if variance > 0.0 else 0.0
        for kind in range(2):
            width = math.sqrt(whole * (edge + 2.0 * thresholds[kind, 0])) / n
            found[kind, 0, 0] = max(found[kind, 0, 0], total / n - width)
            found[kind, 0, 1] = max(found[kind, 0, 1], 1.0 - total / n - width)
            found[kind, 1, 0] = max(found[kind, 1, 0], (gain_low - thresholds[kind, 1]) / stake)
            found[kind, 1, 1] = max(found[kind, 1, 1], (gain_high - thresholds[kind, 1]) / stake)
            if variance > 0.0:
                width = math.sqrt(wide * (rim + 2.0 * thresholds[kind, 2])) / n
                found[kind, 2, 0] = max(found[kind, 2, 0], total / n - width)
                found[kind, 2, 1] = max(found[kind, 2, 1], 1.0 - total / n - width)
    return math.exp(wealth_low), peak_low, peak_high


@compiled
def scored_sequences(action, reward, propensity, unit, bet_scale, thresholds, found):  # type: ignore[no-untyped-def]
    """Sequences of the contrast on scores, on the scale [0, 1]; `found`, shape (2, 2), by `SCORED` and side.

    Returns the last running means: that of the inverse-propensity scores, and of the augmented ones.
    """
    count0, count1, sum0, sum1 = 0.0, 0.0, 0.0, 0.0
    total, moved, squares, first, scale = 0.0, 0.0, 0.0, 0.0, 0.0
    below, above, middle = 0.0, 0.0, 0.0
    gain0, gain1, stake0, stake1 = 0.0, 0.0, 0.0, 0.0
    centre0, centre1, spread0, spread1, dev0, dev1 = 0.5, 0.5, 0.25, 0.25, 0.25, 0.25
    for t in range(action.shape[0]):
        n = t + 1.0
        y, sign = reward[t], 2.0 * action[t] - 1.0
        size = 0.5 / propensity[t]
        success = y if sign > 0.0 else 1.0 - y
        low, high = size * success, size * (1.0 - success)
        middle += 0.5 * (low + 1.0 - high)
        bet = min(CAP, math.sqrt(bet_scale / (spread0 * n * math.log1p(n))))
        gain0 += bet * low - (-math.log1p(-bet) - bet) * (low - centre0) ** 2
        stake0 += bet
        bet = min(CAP, math.sqrt(bet_scale / (spread1 * n * math.log1p(n))))
        gain1 += bet * high - (-math.log1p(-bet) - bet) * (high - centre1) ** 2
        stake1 += bet
        found[0, 0] = max(found[0, 0], (gain0 - thresholds[0]) / stake0)
        found[0, 1] = max(found[0, 1], (gain1 - thresholds[0]) / stake1)
        below += low
        above += high
        centre0 = min(max((0.5 + below) / (n + 1.0), 0.0), 1.0)
        centre1 = min(max((0.5 + above) / (n + 1.0), 0.0), 1.0)
        dev0 += (low - centre0) ** 2
        dev1 += (high - centre1) ** 2
        spread0, spread1 = dev0 / (n + 1.0), dev1 / (n + 1.0)
        mean0 = sum0 / max(count0, 1.0)
        mean1 = sum1 / max(count1, 1.0)
        own = mean1 if sign > 0.0 else mean0
        score = 0.5 * (mean1 - mean0 + sign * (y - own) / propensity[t] + 1.0)
        if sign > 0.0:
            count1 += 1.0
            sum1 += y
        else:
            count0 += 1.0
            sum0 += y
        if t == 0:
            first = score
        total += score
        moved += score - first
        squares += (score - first) ** 2
        if min(count0, count1) >= START:
            variance = max(squares / n - (moved / n) ** 2, 0.0)
            if scale == 0.0:
                scale = variance * T_OPT * unit
            if variance > 0.0:
                whole = n * variance + scale
                width = math.sqrt(whole * (math.log(whole / scale) + 2.0 * thresholds[1])) / n
                found[1, 0] = max(found[1, 0], total / n - width)
                found[1, 1] = max(found[1, 1], 1.0 - total / n - width)
    return middle / action.shape[0], total / action.shape[0]


@dataclass(frozen=True)
class Limits:
    """Limits at one level, as they were computed."""

    limits: np.ndarray
    name: str = "as computed"
    exact: bool = False

    def interval(self, log_alpha: float) -> np.ndarray:
        assert math.isclose(log_alpha, math.log(ALPHA))
        return self.limits

    def log_pvalues(self, null: float) -> np.ndarray:
        excluded = (self.limits[:, 0] > null) | (self.limits[:, 1] < null)
        return np.where(excluded, math.log(ALPHA), 0.0)


@dataclass(frozen=True)
class Battery:
    """All analyses of one log as terms "method | quantity" of one result.

    Attributes
    ----------
    truth : tuple of float
        Means of the two arms, for the wealth of bets.
    scores : tuple of str
        Weights of AIPW.
    decay : float
        For two-point weights.
    own : bool
        Whether ALEE and the sequences of the arms' own rewards are valid.
    """

    truth: tuple[float, float]
    scores: tuple[str, ...] = ()
    decay: float = 0.0
    own: bool = True

    @property
    def methods(self) -> tuple[str, ...]:
        """Methods that have all three quantities."""
        return ("sample mean", *self.scores, *(("alee", *OWN) if self.own else ()))

    @property
    def terms(self) -> tuple[str, ...]:
        three = [f"{method} | {quantity}" for method in self.methods for quantity in QUANTITIES]
        wealth = [f"{what} | arm {arm}" for what in ("betting", WEALTH) for arm in (0, 1)] if self.own else []
        scored = [f"{method} | contrast" for method in SCORED] if self.scores else []
        return (*three, *wealth, *scored)

    def target(self, env: Environment, result: Results) -> np.ndarray:
        """True values of the terms; that of a wealth is the 1 which it must not exceed on average."""
        mean0, mean1 = env.arm_means()
        values = {"contrast": mean1 - mean0, "arm 0": mean0, "arm 1": mean1}
        split = [term.split(" | ") for term in result.terms]
        return np.array([1.0 if method == WEALTH else values[quantity] for method, quantity in split])

    def __call__(self, log: AdaptiveLog) -> Results:
        rows = [self._sample(log), *(self._weighted(log, weights) for weights in self.scores)]
        if self.own:
            rows += [self._alee(log), *self._own(log)]
        if self.scores:
            rows.append(self._scored(log))
        table = np.vstack(rows)
        return Results(
            model="Battery",
            estimands=(Estimand("contrast", treatment=1, control=0),) * len(table),
            terms=self.terms,
            estimate=table[:, 0],
            std_error=table[:, 1],
            reference=Limits(table[:, 2:]),
            estimator="battery",
            facts=LogFacts.of(log),
        )

    def _sample(self, log: AdaptiveLog) -> np.ndarray:
        sample = sample_means(log.arrays.action, log.arrays.reward, 2)
        difference, error, df = welch(sample, 1, 0)
        estimate = np.array([difference, *sample.mean])
        size = np.array([error, *sample.std_error])
        return _rows(estimate, size, student_quantile(_TAIL, np.array([df, *(sample.count - 1.0)])))

    def _weighted(self, log: AdaptiveLog, weights: str) -> np.ndarray:
        arrays = log.arrays
        assert arrays.propensities is not None
        if arrays.propensities.min() <= 0.0:
            return np.full((3, 4), np.nan)
        rounds = (arrays.action, arrays.reward, arrays.propensity, arrays.propensities, CODES)
        means = streamed_means(*rounds, weights=weights, decay=self.decay if weights == "two-point" else None)
        law = student_quantile(_TAIL, np.append(means.freedom.min(), means.freedom))
        return _with_contrast(means.estimate, means.covariance + _never(means.pulls), law)

    def _alee(self, log: AdaptiveLog) -> np.ndarray:
        means = alee_means(log.arrays.action, log.arrays.reward, CODES)
        return _with_contrast(means.estimate, np.diag(means.std_error() ** 2), _NORMAL)

    def _own(self, log: AdaptiveLog) -> list[np.ndarray]:
        action, reward = log.arrays.action, log.arrays.reward
        shares = np.log([1.0, 2.0, 1.0])
        thresholds = -math.log(ALPHA) + np.vstack((shares, shares + math.log(2.0)))
        found = np.zeros((2, 2, 3, 2))
        bets = [
            own_sequences(action, reward, arm, self.truth[arm], _UNIT, _BET, thresholds, found[arm])
            for arm in (0, 1)
        ]
        found[..., 1] = 1.0 - found[..., 1]
        mean = sample_means(action, reward, 2).mean
        estimate = np.array([mean[1] - mean[0], *mean])
        rows = []
        for method in range(len(OWN)):
            arms, pair = found[:, 0, method], found[:, 1, method]
            limits = np.vstack(([pair[1, 0] - pair[0, 1], pair[1, 1] - pair[0, 0]], arms))
            rows.append(np.column_stack((estimate, np.full(3, np.nan), limits)))
        # Only the value of a bet at the truth is taken: an interval that holds it, or does not.
        held = [max(low, high) < math.log(2.0 / ALPHA) for _, low, high in bets]
        for arm in (0, 1):
            place = self.truth[arm] + (0.0 if held[arm] else 1.0)
            rows.append(np.array([[mean[arm], np.nan, place, place]]))
        for wealth, _, _ in bets:
            limits = (0.0, 1.0 / ALPHA) if wealth < 1.0 / ALPHA else (wealth, wealth)
            rows.append(np.array([[wealth, np.nan, *limits]]))
        return rows

    def _scored(self, log: AdaptiveLog) -> np.ndarray:
        arrays = log.arrays
        assert arrays.propensities is not None
        if arrays.propensities.min() <= 0.0:
            return np.full((2, 4), np.nan)
        found = np.zeros((2, 2))
        thresholds = np.array([math.log(2.0), 0.0]) - math.log(ALPHA)
        means = scored_sequences(
            arrays.action, arrays.reward, arrays.propensity, _UNIT, _BET, thresholds, found
        )
        found[:, 1] = 1.0 - found[:, 1]
        return np.column_stack((2.0 * np.array(means) - 1.0, np.full(2, np.nan), 2.0 * found - 1.0))


def _rows(estimate: np.ndarray, size: np.ndarray, quantile: np.ndarray | float) -> np.ndarray:
    return np.column_stack((estimate, size, estimate - quantile * size, estimate + quantile * size))


def _never(pulls: np.ndarray) -> np.ndarray:
    missing = np.where(pulls > 0, 0.0, np.nan)
    return np.asarray(missing[:, None] + missing[None, :])


def _with_contrast(estimate: np.ndarray, covariance: np.ndarray, quantile: np.ndarray | float) -> np.ndarray:
    variance = covariance[0, 0] + covariance[1, 1] - 2.0 * covariance[0, 1]
    size = np.sqrt(np.array([variance, covariance[0, 0], covariance[1, 1]]))
    return _rows(np.array([estimate[1] - estimate[0], *estimate]), size, quantile)


def check(battery: Battery, log: AdaptiveLog) -> None:
    """Compare every number with that of the classes, to 1e-9."""
    result = battery(log)
    fast = dict(zip(result.terms, np.column_stack((result.estimate, result.reference.limits)), strict=True))
    possible = log.arrays.propensities is None or log.arrays.propensities.min() > 0.0

    def same(name: str, quantity: str, other: Results, row: int) -> None:
        slow = [other.estimate[row], *other.reference.interval(math.log(ALPHA))[row]]
        if not np.isnan(slow[1:]).any():
            np.testing.assert_allclose(fast[f"{name} | {quantity}"], slow, rtol=1e-9, atol=1e-9)

    calls = {name: ("aipw", name, _decay(battery, name)) for name in battery.scores if possible}
    if battery.own:
        calls |= {"sample mean": ("sample-mean", None, None), "alee": ("alee", None, None)}
    for name, asked in calls.items():
        test = "auto" if name == "alee" else "t"
        same(name, "contrast", Contrast(log, treatment=1, control=0).fit(*asked, test=test), 0)
        means = ArmMeans(log).fit(*asked, test=test)
        for arm in (0, 1):
            same(name, f"arm {arm}", means, arm)
    pair = ConfidenceSequence(log, "contrast", treatment=1, control=0)
    if battery.own:
        arms = ConfidenceSequence(log)
        methods = ("normal-mixture", "empirical-bernstein", "asymptotic")
        for name, method in zip(OWN, methods, strict=True):
            same(name, "contrast", pair.fit(method), 0)
            for arm in (0, 1):
                same(name, f"arm {arm}", arms.fit(method), arm)
        for arm in (0, 1):
            track = arms.fit("betting").reference.tracks[arm]
            held = track.log_pvalue(battery.truth[arm]) > math.log(ALPHA)
            assert held == (fast[f"betting | arm {arm}"][1] == battery.truth[arm])
    if battery.scores and possible:
        same(SCORED[0], "contrast", pair.fit("empirical-bernstein", estimator="ipw"), 0)
        same(SCORED[1], "contrast", pair.fit("asymptotic", estimator="aipw"), 0)


def _decay(battery: Battery, weights: str) -> float | None:
    """Decay of two-point weights; None for others."""
    return battery.decay if weights == "two-point" else None
