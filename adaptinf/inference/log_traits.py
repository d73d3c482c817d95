"""What a log says about itself that decides which methods are valid for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

__all__ = [
    "by_context_way",
    "decides_by_context",
    "design_names",
    "floor_decay",
    "impossible",
    "is_adaptive",
    "is_binary",
    "moves",
    "usable_decay",
]

_BY_FINITE_CONTEXT = frozenset({"ConSE", "DPConSE"})
_BY_CONTEXT_VECTOR = frozenset({"LinPriv", "LinUCB"})
_BY_POSITION = frozenset({"ABSE", "LDPBandit"})


def floor_decay(log: AdaptiveLog) -> float | None:
    """Decay of the design's propensity floor scale * t^-decay.

    Parameters
    ----------
    log : AdaptiveLog
        The log.

    Returns
    -------
    float or None
        None where the log's design does not state a floor.
    """
    floor = None if log.design is None else log.design.parameters.get("floor")
    if not isinstance(floor, (tuple, list, np.ndarray)) or len(floor) != 2:
        return None
    return float(floor[1])


def usable_decay(log: AdaptiveLog) -> float | None:
    """The stated decay, where two-point weights can use it: in [0, 1)."""
    decay = floor_decay(log)
    return decay if decay is not None and 0.0 <= decay < 1.0 else None


def is_adaptive(log: AdaptiveLog) -> bool:
    """Whether rewards may have changed later actions: unless the log says that none could.

    Parameters
    ----------
    log : AdaptiveLog
        The log.
    """
    uniform = log.design is not None and log.design.name == "Uniform"
    return not uniform and log.adaptive_rounds != 0


def is_binary(reward: FloatArray) -> bool:
    """Whether all rewards are 0 or 1.

    Parameters
    ----------
    reward : ndarray, shape (T,)
        Rewards.
    """
    return bool(np.all((reward == 0.0) | (reward == 1.0)))


def design_names(log: AdaptiveLog) -> tuple[str, ...]:
    """Name of the log's design, and of the one that a mixture wraps."""
    if log.design is None:
        return ()
    inner = log.design.parameters.get("design")
    return (log.design.name,) if inner is None else (log.design.name, str(inner))


def decides_by_context(log: AdaptiveLog) -> bool:
    """Whether the log's design is known to assign arms by context."""
    known = _BY_FINITE_CONTEXT | _BY_CONTEXT_VECTOR | _BY_POSITION
    return not known.isdisjoint(design_names(log))


def by_context_way(log: AdaptiveLog) -> str:
    """What takes the place of arm means where the design assigns arms by context."""
    names = design_names(log)
    if not _BY_CONTEXT_VECTOR.isdisjoint(names):
        return "a regression of an arm's rewards on its own context vectors"
    if not _BY_POSITION.isdisjoint(names):
        return "a comparison of arms among the rounds of one bin"
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
    """Whether propensities may move with the data: an adaptive log, unless they never change."""
    if not is_adaptive(log):
        return False
    every = log.arrays.propensities
    return every is None or bool(np.any(every != every[:1]))
