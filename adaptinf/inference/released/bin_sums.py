"""Noisy sums by bin and arm, from the releases of a locally private log."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims.privacy import bin_means as claims
from adaptinf.errors import InvalidForLog
from adaptinf.log import AdaptiveLog, PublicLog
from adaptinf.typing import BoolArray, FloatArray, IntArray

_TOTALS = ("participants", "count", "sum")
_WEIGHTED = ("weighted_count", "weighted_sum", "weighted_squares")
_CLEAR = 3.0


@dataclass(frozen=True, slots=True)
class BinReports:
    """What a server knows of k pairs of a bin and an arm.

    Shapes: bins (k,), low, high (k, d), participants, count, total (k,), ahead (k,), spent (k, stages),
    weighted_count, weighted_total, weighted_squares (k, stages).
    """

    bins: IntArray
    arms: tuple[Any, ...]
    low: FloatArray
    high: FloatArray
    participants: FloatArray
    count: FloatArray
    total: FloatArray
    ahead: FloatArray
    spent: FloatArray
    weighted_count: FloatArray
    weighted_total: FloatArray
    weighted_squares: FloatArray
    scale: float
    words: tuple[int, ...]

    def clear(self) -> BoolArray:
        """Whether a count is expected to be more than three standard deviations of its noise.

        What is expected follows from the other arms of the bin; an arm that is alone answers for itself.
        This describes where a ratio of the sums means something. It licenses no inference: it depends on how
        long this arm and the others were reported on, which their own sums decided, and intervals of pairs
        chosen by it miss more often than they should.
        """
        bins = np.unique(self.bins, return_inverse=True)[1]
        others = np.bincount(bins, self.count)[bins] - self.count
        seen = np.bincount(bins, self.participants)[bins] - self.participants
        alone = seen == 0.0
        rate = np.where(alone, self.count, others) / np.where(alone, self.participants, seen)
        return np.asarray(rate * np.sqrt(self.participants) > _CLEAR * self.scale * np.sqrt(2.0))


def read_reports(log: AdaptiveLog | PublicLog) -> BinReports:
    """Sums by bin and arm, bins in order and within them arms."""
    releases = log.releases
    codes, names = pd.factorize(releases["name"])
    named = {str(name): code for code, name in enumerate(names)}
    if not any(name.startswith("participants_") for name in named):
        raise InvalidForLog("BinMeans", claims.NO_BIN_SUMS(), ["a log of LDPBandit, which releases them"])
    if "spent" not in named:
        raise InvalidForLog("BinMeans", claims.NO_STAGES(), ["bin_sums, which gives the sums that there are"])
    if len({str(arm) for arm in log.arms}) < log.n_arms:
        raise InvalidForLog(
            "BinMeans", claims.SAME_LABELS(), ["a log whose arms have labels that differ when printed"]
        )
    rows = _Rows(
        code=np.asarray(codes, dtype=np.int64),
        group=releases["group"].to_numpy().astype(np.int64),
        round=releases["round"].to_numpy(dtype=float),
        value=releases["value"].to_numpy(dtype=float),
        named=named,
    )
    bins = int(rows.group.max()) + 1
    participants, count, total = (_by_arm(rows, log, part, bins) for part in _TOTALS)
    until = _by_arm(rows, log, "count", bins, of_round=True)
    group, arm = np.nonzero(np.isfinite(count))
    spent, weighted = _stages(rows, log, bins)
    found: BoolArray = np.asarray(np.isfinite(weighted).all(axis=0))
    if not (np.isfinite(total) & np.isfinite(participants) & found[:, :, 0])[group, arm].all():
        raise InvalidForLog(
            "BinMeans", claims.SUMS_MISSING(), ["a log of LDPBandit with all of its releases"]
        )
    present = found[group, arm]
    steps = np.where(present, np.diff(weighted[:, group, arm], axis=-1, prepend=0.0), 0.0)
    seen = participants[group, arm]
    return BinReports(
        bins=group,
        arms=tuple(log.arms[code] for code in arm),
        low=_corners(rows, "low", bins)[group],
        high=_corners(rows, "high", bins)[group],
        participants=seen,
        count=count[group, arm],
        total=total[group, arm],
        ahead=rows.round.max() - (until[group, arm] - seen),
        spent=np.where(present, np.diff(spent[group], axis=-1, prepend=0.0), 0.0),
        weighted_count=steps[0],
        weighted_total=steps[1],
        weighted_squares=steps[2],
        scale=float(releases["scale"].max()),
        words=_digest(rows.value),
    )


def _digest(values: FloatArray) -> tuple[int, ...]:
    digest = hashlib.blake2b(np.ascontiguousarray(values).tobytes(), digest_size=16).digest()
    return tuple(np.frombuffer(digest, dtype="<u4").tolist())


@dataclass(frozen=True, slots=True)
class _Rows:
    """Columns of the releases; `named` gives the code of each name."""

    code: IntArray
    group: IntArray
    round: FloatArray
    value: FloatArray
    named: dict[str, int]

    def of(self, name: str) -> IntArray:
        """Rows with a name."""
        return np.flatnonzero(self.code == self.named.get(name, -1))


def _by_arm(
    rows: _Rows, log: AdaptiveLog | PublicLog, part: str, bins: int, *, of_round: bool = False
) -> FloatArray:
    """Values, or rounds, of one kind by bin and arm, NaN where there is none; shape (bins, arms)."""
    table = np.full((bins, log.n_arms), np.nan)
    for code, arm in enumerate(log.arms):
        own = rows.of(f"{part}_{arm}")
        table[rows.group[own], code] = (rows.round if of_round else rows.value)[own]
    return table


def _corners(rows: _Rows, end: str, bins: int) -> FloatArray:
    """Low or high ends of the bins along each axis, shape (bins, d)."""
    axes = [name[len("low_") :] for name in rows.named if name.startswith("low_")]
    table = np.full((bins, len(axes)), np.nan)
    for column, axis in enumerate(axes):
        own = rows.of(f"{end}_{axis}")
        table[rows.group[own], column] = rows.value[own]
    return table


def _stages(rows: _Rows, log: AdaptiveLog | PublicLog, bins: int) -> tuple[FloatArray, FloatArray]:
    """Sums so far at the end of each stage: spent (bins, stages) and weighted (3, bins, arms, stages)."""
    ends = rows.of("spent")
    ends = ends[np.lexsort((rows.round[ends], rows.group[ends]))]
    group = rows.group[ends]
    stage = np.arange(ends.size) - np.searchsorted(group, group)
    width = rows.round.max() + 1.0
    keys = group * width + rows.round[ends]
    shape = (bins, int(stage.max()) + 1)
    spent = np.full(shape, np.nan)
    spent[group, stage] = rows.value[ends]
    weighted = np.full((3, bins, log.n_arms, shape[1]), np.nan)
    for part, name in enumerate(_WEIGHTED):
        for code, arm in enumerate(log.arms):
            own = rows.of(f"{name}_{arm}")
            at = np.searchsorted(keys, rows.group[own] * width + rows.round[own])
            weighted[part, rows.group[own], code, stage[np.minimum(at, ends.size - 1)]] = rows.value[own]
    return spent, weighted
