"""Claims of the reports for a data monitoring committee."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_PLACE = "plans.planning.committee.CommitteeReport.statements"
OPEN = Claim(
    _PLACE,
    "Open report: all arms are pooled. It shows no results by arm, no statistics of looks, and no numbers of "
    "participants by arm, because an adaptive design assigns the better arm more often.",
    "note",
)
CLOSED = Claim(
    _PLACE,
    "Closed report: it shows results by arm, and is for the members of the data monitoring committee only. "
    "Later changes of the trial must not be decided by anyone who has seen it.",
    "caution",
)
NAIVE = Claim(
    _PLACE,
    "Means by arm are sample means of adaptively collected data, and are not adjusted for it or for the "
    "looks.",
    "caution",
)
UNCOVERED = Claim(
    _PLACE, "The trial's privacy guarantee does not cover the numbers in this report.", "caution"
)
RESULT = Claim(_PLACE, "The plan has ended the trial ({decision}). {sentence}", "note")
POWER = Claim(
    _PLACE,
    "Conditional power at the current estimate: {estimate:.3f}; at no difference: {null:.3f}. Predictive "
    "power: {predictive:.3f}.",
    "note",
)
NO_POWER = Claim(_PLACE, "Conditional power is not available: {reason}.", "missing")
