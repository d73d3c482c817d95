"""What the record of a log's design tells of the collection: parameters that no design was declared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

PLANNED = "planned_rounds"
"""Rounds that were declared, where the log holds fewer."""
WINDOW = "outcome_window"
"""After how many further participants an outcome entered, whenever it came."""
LATE = "late_counts_as"
"""What an outcome counted as that was not in by then."""
IN_TIME = "in_time_epsilon"
"""Privacy parameter of the released in-time successes and failures."""
IN_TIME_NAMES = ("in_time_successes", "in_time_failures")
"""Names of these releases, one row per arm each."""
AMENDED = "amended_outcomes"
"""How many of the log's outcomes the design was told otherwise."""
REMOVED = "removed_arms"
"""Arms that were taken out, each with the rounds that there were then."""
LEFT_OUT = "left_out_rounds"
"""Rounds of erased participants that are not in the log."""
BLANKED = "blanked_contexts"
"""Names of the contexts that are not in the log, as those of some participants were erased."""
STOP_REASON = "stop_reason"
"""Why somebody ended the trial before its rounds were used up, in their words."""
UNPROMISED = "no_guarantee"
"""Why the log has no guarantee although its design has one, a list of texts."""
DECLARED = (PLANNED, WINDOW, LATE, IN_TIME)
"""Those of them that were fixed before the first round."""
_SEEN = (AMENDED, REMOVED, LEFT_OUT, BLANKED, STOP_REASON, UNPROMISED)
COLLECTED = (*DECLARED, *_SEEN)


def declared(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that were fixed before the first round."""
    return {name: value for name, value in parameters.items() if name not in _SEEN}
