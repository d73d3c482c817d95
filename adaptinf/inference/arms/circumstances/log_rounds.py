"""The rounds of a log for weights that arms share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from adaptinf.inference.arms.circumstances import rounds
from adaptinf.inference.arms.circumstances.deviations import seen_rounds
from adaptinf.inference.inputs.rounds import times_of
from adaptinf.inference.scores.joint_levels import LogRounds, round_pieces, rounds_of, whole_pieces

if TYPE_CHECKING:
    from adaptinf.inference.arms.question import Question
    from adaptinf.inference.scores.outcome_predictions import Outcome


def joint_rounds(question: Question, model: Outcome | None) -> LogRounds:
    """The rounds of a log for weights that arms share, and what tables show of the arms."""
    profile, codes, log = question.profile, question.codes, question.profile.log
    own, every = profile.propensity, profile.propensities
    fixed = None if profile.fixed_in_time else rounds.joint_propensities(question)
    assert own is not None
    assert every is not None
    smallest, batch = profile.smallest_propensity[codes], log.arrays.batch
    if model is not None and model.seen is not None:
        scored = seen_rounds(question, model, {"outcome": model.values, "start": model.start})
        used = scored.weights > 0.0
        gain = used * scored.chosen / (own * model.seen.probability)[:, None]
        fixed = every[:, codes] if fixed is None else fixed
        found = rounds_of(scored.scores, gain, fixed, used, times_of(log.n_rounds, batch))
        total = np.where(model.seen.observed, log.arrays.recorded, 0.0) @ scored.chosen
        tabled = (scored.chosen.sum(axis=0), total, smallest)
        return LogRounds(whole_pieces(found), log.n_rounds, tabled, scored.origin)
    action, reward = log.arrays.action, log.arrays.reward
    successes = np.bincount(action, reward, log.n_arms).astype(np.float64)
    outcome, start = (None, None) if model is None else (model.values, model.start)
    return round_pieces(
        *(action, reward, own, every, codes),
        tabled=(profile.pulls[codes], successes[codes], smallest),
        batch=batch,
        fixed=fixed,
        outcome=outcome,
        start=start,
    )
