"""What a log says about itself that decides which methods are valid for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "by_context_way",
    "constant_propensities",
    "decides_by_context",
    "design_names",
    "floor_decay",
    "impossible",
    "is_adaptive",
    "is_binary",
    "moves",
    "usable_decay",
    "varying_propensities",
]

_BY_FINITE_CONTEXT = frozenset({"ConSE", "DPConSE"})
_BY_CONTEXT_VECTOR = frozenset({"LinPriv", "LinUCB"})
_BY_POSITION = frozenset({"ABSE", "LDPBandit"})
_BY_SCALAR = frozenset({"LDPLinear"})
_SAME = 1e-9


def floor_decay(log: AdaptiveLog) -> float | None:
    """Decay of the design's propensity floor scale * t^-decay."""
    if log.design is None:
        return None
    if log.design.name == "EpsilonGreedy":
        return float(log.design.parameters.get("decay", 0.0)) or None
    floor = log.design.parameters.get("floor")
    if not isinstance(floor, (tuple, list, np.ndarray)) or len(floor) != 2:
        return None
    return float(floor[1])


def usable_decay(log: AdaptiveLog) -> float | None:
    """The stated decay, where two-point weights can use it: in [0, 1)."""
    decay = floor_decay(log)
    return decay if decay is not None and 0.0 <= decay < 1.0 else None


def is_adaptive(log: AdaptiveLog) -> bool:
    """Whether rewards may have changed later actions: unless the log says that none could."""
    # A name that the log's own propensities contradict is not believed.
    uniform = log.design is not None and log.design.name == "Uniform" and not varying_propensities(log)
    return not uniform and log.adaptive_rounds != 0


def constant_propensities(log: AdaptiveLog) -> bool:
    """Whether every arm's propensity is known to be the same in all rounds; estimates are not known."""
    if log.arrays.propensities is None or log.propensity_status == "estimated":
        return False
    return not varying_propensities(log)


def varying_propensities(log: AdaptiveLog) -> bool:
    """Whether the log has propensities, not estimated ones, with which some arm's probability moves."""
    arrays = log.arrays
    if log.propensity_status == "estimated" or arrays.propensity is None:
        return False
    if arrays.propensities is not None:
        first = arrays.propensities[:1]
        return any(
            bool(np.any(np.abs(column - first[0, k]) > _SAME))
            for k, column in enumerate(arrays.propensities.T)
        )
    chosen = [arrays.propensity[arrays.action == code] for code in range(log.n_arms)]
    return any(values.size > 0 and bool(np.ptp(values) > _SAME) for values in chosen)


def is_binary(reward: FloatArray) -> bool:
    """Whether all rewards are 0 or 1; reward (T,)."""
    return bool(np.all((reward == 0.0) | (reward == 1.0)))


def design_names(log: AdaptiveLog) -> tuple[str, ...]:
    """Name of the log's design, and of the one that a mixture wraps."""
    if log.design is None:
        return ()
    inner = log.design.parameters.get("design")
    return (log.design.name,) if inner is None else (log.design.name, str(inner))


def decides_by_context(log: AdaptiveLog) -> bool:
    """Whether arms are known to have been assigned by context: the log says so, or names such a design."""
    if log.context_free is False:
        return True
    known = _BY_FINITE_CONTEXT | _BY_CONTEXT_VECTOR | _BY_POSITION | _BY_SCALAR
    return not known.isdisjoint(design_names(log))


def by_context_way(log: AdaptiveLog) -> str:
    """What takes the place of arm means where the design assigns arms by context."""
    names = design_names(log)
    if not _BY_CONTEXT_VECTOR.isdisjoint(names):
        return "AdaptiveOLS(log, arm=...), a regression of an arm's rewards on its own context vectors"
    if not _BY_POSITION.isdisjoint(names):
        if "LDPBandit" in names:
            return "BinMeans, from the released sums of bins"
        return "a comparison of arms among the rounds of one bin"
    if not _BY_SCALAR.isdisjoint(names):
        return "AdaptiveOLS(log, arm=...), a regression of an arm's rewards on contexts"
    return f"CATE by {', '.join(log.context) or 'the context'}"


def impossible(log: AdaptiveLog, codes: IntArray) -> IntArray:
    """Number of rounds in which each arm could not be chosen, as far as the log tells; shape (k,)."""
    arrays = log.arrays
    if arrays.propensities is not None:
        return _rounds_without(arrays.propensities, codes)
    if arrays.propensity is None:
        return np.zeros(len(codes), dtype=np.int64)
    sure = np.bincount(arrays.action[arrays.propensity >= 1.0], minlength=log.n_arms)
    return np.asarray(sure.sum() - sure[codes], dtype=np.int64)


def _rounds_without(propensities: FloatArray, codes: IntArray) -> IntArray:
    """Number of rounds in which each arm has propensity 0, without an array of the size of `propensities`."""
    if propensities.size == 0 or propensities.min() > 0.0:
        return np.zeros(len(codes), dtype=np.int64)
    return np.array([np.count_nonzero(propensities[:, code] <= 0.0) for code in codes], dtype=np.int64)


def moves(log: AdaptiveLog) -> bool:
    """Whether propensities may move with the data: an adaptive log, unless they are known never to change."""
    return is_adaptive(log) and not constant_propensities(log)
