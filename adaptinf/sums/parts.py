"""Sums of parts: of a log's rows, and of two sums of different rounds."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.log import AdaptiveLog
from adaptinf.sums.cells import Cells, cells_of_shares, joined


def sometimes_impossible(cells: Cells) -> bool:
    """Whether an arm could be chosen in some rounds of a batch alone."""
    return bool(np.any((cells.smallest == 0.0) & (cells.expected > 0.0)))


class Part(Protocol):
    """What is merged; batches (B,)."""

    cells: Cells
    batches: NDArray[Any]
    shares: bool


def merged(first: Part, second: Part) -> tuple[NDArray[Any], Cells]:
    """The batches of both in order, and their cells."""
    batches = np.unique(np.concatenate([first.batches, second.batches]))
    places = (np.searchsorted(batches, first.batches), np.searchsorted(batches, second.batches))
    cells = joined(first.cells, second.cells, places, len(batches))
    if sometimes_impossible(cells):
        problem = "an arm has propensity 0 in a batch of one alone: give parts of one batch other names"
        raise ParameterError("Sums", [problem])
    if first.shares:  # of the whole batches, not of their parts
        by_share = cells.pulls / cells.rounds[:, None]
        cells = cells_of_shares(cells.moments[0], cells.rounds, by_share, cells.nonzero, cells.centre)
    return batches, cells


def summable(log: object) -> Any:
    """Arrays of a log that can be summed."""
    if not isinstance(log, AdaptiveLog):
        raise ParameterError("Sums.of_log", [f"log must be an AdaptiveLog, got {type(log).__name__}"])
    arrays, reasons = log.arrays, []
    if log.n_rounds == 0:
        reasons.append("the log has no rounds")
    if arrays.batch is None:
        reasons.append("the log has no batches (give batch=)")
    if arrays.propensity is None:
        reasons.append("the log has no propensities")
    elif arrays.propensities is None and np.any(arrays.propensity >= 1.0):
        reasons.append("the log has the chosen arm's propensity alone, and some are 1")
    if arrays.observed is not None:
        reasons.append("rewards are missing")
    if arrays.received is not None or arrays.known is not None:
        reasons.append("the log has received arms, or late outcomes")
    if log.units is not None and len(set(log.units.tolist())) < log.n_rounds:
        reasons.append("units have several rounds, which sums by batch cannot tell")
    if reasons:
        raise InvalidForLog("Sums", "; ".join(reasons), ["the log itself"])
    return arrays
