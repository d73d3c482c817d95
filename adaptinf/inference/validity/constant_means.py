"""Facts on which claims about constant arm means depend: trends in rewards, and changing shares."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pandas as pd

from adaptinf.claims import Finding
from adaptinf.claims import stationarity as claims
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.inference.validity.stationarity import SEEN_BESIDE
from adaptinf.texts import several
from adaptinf.typing import FloatArray, IntArray

_SHOWN = 5
_LONG, _LONG_SHARE = 20, 0.05
"""Rounds without an arm from which it is missing for long: their number, and their share of all rounds."""
_LOG_CHANCE = math.log(1e-5)
"""Log of the probability of such a stretch below which it is told."""
_FEW_ARMS = 2**15
"""Number of arms below which numbers of 16 bits, which are sorted faster, identify them."""


def shares_moved(profile: LogProfile, codes: Iterable[int]) -> str:
    """Evidence that shares of arms change, if rewards also drift or cannot be tested; otherwise empty.

    Two tests are used: a test of the effect of changing shares on plain means, and a test of a trend that is
    common to the arms. Shares rarely change if nothing adapts, so the level need not be as small as for a
    trend alone.
    """
    if not profile.shares_move:
        return ""
    found = [profile.pooling_pvalue, profile.trends.common_pvalue(codes)]
    tested = [p for p in found if math.isfinite(p)]
    if not tested:
        return claims.SHARES_MOVED()
    p = min(1.0, len(tested) * min(tested))
    return claims.BOTH_MOVED(p=p) if p < SEEN_BESIDE else ""


def absences(profile: LogProfile, codes: Iterable[int]) -> tuple[str, ...]:
    """A caution if one of several arms is missing in a long stretch of the rounds of all of them; codes (k,).

    Only the rounds before an arm's first one count if the design may adapt, because it may abandon an arm. If
    propensities are known, an arm is missing only where it had propensity 0.
    """
    arms = tuple(int(code) for code in codes)
    return profile.once(("absences", *arms), lambda: _absences(profile, arms)) if len(arms) > 1 else ()


def _absences(profile: LogProfile, codes: tuple[int, ...]) -> tuple[str, ...]:
    if _always_there(profile, codes):
        return ()
    piece, arm, number = _chosen(profile, codes)
    if not len(piece):
        return ()
    sizes: FloatArray = np.bincount(piece, number, profile.n_pieces).astype(np.float64)
    upto = np.cumsum(sizes)
    before, total = upto - sizes, float(upto[-1])
    told = []
    for own in _entries(arm, len(codes), first=profile.adaptive):
        gaps = np.append(before[piece[own]], total) - np.append(0.0, upto[piece[own]])
        gaps = gaps[:1] if profile.adaptive else gaps
        place = int(np.argmax(gaps))
        size, rest = float(gaps[place]), total - float(gaps[place])
        if size < max(_LONG, _LONG_SHARE * total):
            continue
        start = int(piece[own[place - 1]]) + 1 if place else 0
        stop = int(piece[own[place]]) if place < len(own) else profile.n_pieces
        if profile.adaptive:
            chance = _adaptive_chance(before[piece], arm, number, size)
        else:
            chance = math.log(len(gaps)) + size * _log_other(float(number[own].sum()) / rest)
        stretch, code = slice(start, stop), codes[int(arm[own[0]])]
        if chance < _LOG_CHANCE and not _possible(profile, code, stretch):
            told.append((code, stretch))
    return (_absent(profile, told),) if told else ()


def _always_there(profile: LogProfile, codes: tuple[int, ...]) -> bool:
    """Whether no arm can be missing for long, as far as this shows without further copies of the log."""
    if profile.sums is not None or profile.repeated_units:
        return False
    if profile.propensities is not None:
        return not profile.impossible[list(codes)].any()
    if not profile.adaptive:
        return False
    action, total = profile.log.arrays.action, float(profile.pulls[list(codes)].sum())
    latest = max(int(np.argmax(action == code)) for code in codes)
    return latest < max(_LONG, _LONG_SHARE * total)


def _entries(arm: IntArray, k: int, *, first: bool) -> list[IntArray]:
    """The entries of each arm that has some, in order, or only the first one; arm (N,), below k."""
    if first:
        found = np.full(k, -1)
        found[arm[::-1]] = np.arange(len(arm))[::-1]
        return list(found[found >= 0, None])
    order = np.argsort(arm.astype(np.int16) if k < _FEW_ARMS else arm, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(arm[order])) + 1)


def _log_other(share: float) -> float:
    """Log of the probability that a round chooses other arms."""
    return math.log1p(-share) if share < 1.0 else -math.inf


def _adaptive_chance(before: FloatArray, arm: IntArray, number: FloatArray, size: float) -> float:
    """Log of the probability that a design that adapts omits an arm from so many first rounds.

    Its propensity is taken as the smallest share of any arm in any of the following stretches of this length,
    or, if it is larger, as the smallest share in the first stretch of two or more other arms. `before`, `arm`
    and `number` are the earlier rounds, the arm and the rounds of each entry; shape (N,).
    """
    arms, first = int(arm.max()) + 1, before < size
    there = np.bincount(arm[first], number[first], arms)
    peers = there[there > 0.0]
    beside = float(peers.min()) / size if len(peers) > 1 else 0.0
    window = ((before[~first] - size) / size).astype(np.int64)
    cells = np.bincount(window * arms + arm[~first], number[~first], (int(window.max()) + 1) * arms)
    counts = cells.reshape(-1, arms)
    known, counts = counts.sum(axis=0) > 0.0, counts[counts.any(axis=1)]
    full = counts[:-1] if len(counts) > 1 else counts
    after = float((full[:, known] / full.sum(axis=1, keepdims=True)).min())
    return size * _log_other(max(after, beside))


def _chosen(profile: LogProfile, codes: tuple[int, ...]) -> tuple[IntArray, IntArray, FloatArray]:
    """The pieces of each arm in order, the arm's place among the codes, and its rounds there.

    Of a unit with several rounds, the first counts.
    """
    if profile.sums is not None:
        pulls = profile.batch_pulls(np.array(codes))
        assert pulls is not None
        piece, arm = np.nonzero(pulls)
        return piece, arm, pulls[piece, arm]
    place = np.full(profile.log.n_arms, -1)
    place[list(codes)] = np.arange(len(codes))
    arm = place[profile.log.arrays.action]
    rounds = np.arange(len(arm))
    if profile.repeated_units:
        rounds = np.flatnonzero(~pd.Series(profile.units).duplicated().to_numpy())
    rounds = rounds[arm[rounds] >= 0]
    return rounds, arm[rounds], np.ones(len(rounds))


def _possible(profile: LogProfile, code: int, stretch: slice) -> bool:
    """Whether the propensities show that an arm could be chosen in a stretch of pieces."""
    if not profile.knows_propensities:
        return False
    return bool(profile.possible(np.array([code]), jointly=False)[stretch].any())


def _absent(profile: LogProfile, told: list[tuple[int, slice]]) -> str:
    """The arms that are missing, and where."""
    begun = np.append(0, np.cumsum(profile.piece_sizes))
    parts = []
    for code, stretch in told:
        arm = profile.log.arms[code]
        first, stop, rounds = (int(begun[at]) for at in (stretch.start, stretch.stop, -1))
        if first == 0:
            parts.append(claims.ABSENT_FIRST(arm=arm, n=stop, rounds=rounds))
        elif stop == rounds:
            parts.append(claims.ABSENT_LAST(arm=arm, n=rounds - first, rounds=rounds))
        else:
            parts.append(claims.ABSENT_BETWEEN(arm=arm, first=first + 1, last=stop, rounds=rounds))
    remedy = claims.ONLY_COMMON_ROUNDS if profile.sums is None else claims.ONLY_COMMON_BATCHES
    it = "it" if len(parts) == 1 else "them"
    return claims.ABSENT(absent=several(parts, _SHOWN, "; "), it=it, remedy=remedy())


def with_absences(found: Finding | None, absent: tuple[str, ...]) -> Finding | None:
    """What was found about drift, with the stretches in which an arm's drift could not be seen."""
    if not absent:
        return found
    if found is None or not found.contradicted:
        return Finding(absent, untested=True)
    return replace(found, cautions=(*found.cautions, *absent))


class ConstantMeans:
    """Facts on which claims about a method depend that requires constant means of arms; codes (k,)."""

    profile: LogProfile
    codes: Iterable[int]
    stationary = False

    @property
    def drift_found(self) -> Finding | None:
        """A trend in the rewards of the arms, or an arm that is missing; None if no arm can be tested."""
        return with_absences(self.profile.drift_of(self.codes), self.absences)

    @property
    def absences(self) -> tuple[str, ...]:
        """Arms that are missing in long stretches, unless rewards are declared stationary."""
        return () if self.stationary else absences(self.profile, self.codes)

    @property
    def drift_untested(self) -> bool:
        """Whether constant means are not declared, and the rewards do not contradict them."""
        return self.drift_found is None and not self.stationary

    @property
    def no_trend(self) -> dict[str, str]:
        """The arms that were tested, if no arm has a trend."""
        found = self.drift_found
        if found is None or found.cautions:
            return {}
        tested, arms = self.profile.trends.tested, self.profile.log.arms
        return {
            "arms": several([f"arm {arms[code]!r}" for code in sorted(self.codes) if tested[code]], _SHOWN)
        }

    @property
    def mix_may_move(self) -> bool:
        """Whether a trend may be due to contexts."""
        found = self.drift_found
        return found is not None and found.contradicted and not self.profile.context_free
