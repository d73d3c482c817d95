"""The winner of the earlier rounds, estimated from the last ones, which had no part in choosing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms import ArmMeans, Contrast
from adaptinf.inference.inputs.rounds import round_mask
from adaptinf.inference.results import Results
from adaptinf.inference.winners.contest import Contest
from adaptinf.parameters import COUNT, refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.typing import BoolArray

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

_SUBJECT = "Winner.fit(held_out=)"


def last_rounds(log: AdaptiveLog | Sums, held_out: Any) -> BoolArray:
    """Rounds that are held out, shape (T,): by the number of the last batches, or a mask of last rounds."""
    if isinstance(log, Sums):
        raise InvalidForLog(_SUBJECT, NEEDS_ROWS, ["ArmMeans of Sums of the last batches"])
    if isinstance(held_out, str) or np.ndim(held_out) > 0:
        keep = round_mask(_SUBJECT, log, held_out)
        assert keep is not None
        if keep.all() or not keep[int(np.argmax(keep)) :].all():
            problem = "held_out must mark the last rounds, and not all: what it leaves chooses the winner"
            raise ParameterError(_SUBJECT, [problem])
        return keep
    refuse(_SUBJECT, COUNT("held_out", held_out))
    batch = log.arrays.batch
    if batch is None:
        raise InvalidForLog(_SUBJECT, "the log has no batches to count", ["a mask of the last rounds"])
    batches = int(batch[-1]) + 1
    if held_out >= batches:
        raise ParameterError(
            _SUBJECT, [f"held_out must leave one of the {batches} batches, got {held_out!r}"]
        )
    return np.asarray(batch >= batches - held_out)


def later_results(
    log: AdaptiveLog, contest: Contest, arms: tuple[Any, ...], keep: BoolArray, **options: Any
) -> Results:
    """The winner's ordinary results from the held-out rounds; keep (T,)."""
    if contest.against is None:
        return ArmMeans(log, [arms[contest.won]], rounds=keep).fit(**options)
    return Contrast(log, treatment=arms[contest.won], control=arms[contest.against], rounds=keep).fit(
        **options
    )
