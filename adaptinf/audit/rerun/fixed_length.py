"""Tests that take the number of rounds as fixed, on logs that say that it was not.

Under the sharp null hypothesis the rewards of all rounds are given, whatever the arms. Re-runs draw the arms
A of n rounds from the design's law. The log's arms are a draw from it given that the trial stopped after n
rounds, and the two laws agree where that event tells nothing of A: where the decision to stop looked at
rewards alone, whatever their arms, or at nothing. Where it looked at the arms, as a comparison of their
means does, only re-runs that stop by the same rule would do, and those that go on for longer have no rows.
Permuted rows must be exchangeable given n as well, which a decision that looked at rewards undoes. An exact
law of counts is one of n rounds, and that of a trial that stops has other outcomes.
"""

from __future__ import annotations

from adaptinf.claims import Claim, said
from adaptinf.claims.logs import stopping as claims
from adaptinf.inference.results.log_facts import StoppingFacts
from adaptinf.log import AdaptiveLog
from adaptinf.log.report import FIXED, Stopping


def length_cautions(log: AdaptiveLog, instead: Claim) -> tuple[str, ...]:
    """What is said of a test at a fixed number of rounds; `instead`: when it holds all the same."""
    if log.stopping == FIXED:
        return ()
    told = StoppingFacts(Stopping.of(log), instead())
    return tuple(said(claims.FIXED_LENGTH, told, "caution"))


def rerun_cautions(log: AdaptiveLog, by_order: bool) -> tuple[str, ...]:
    """The same of a design that is run again, with its rows in another order or in their own."""
    return length_cautions(log, claims.REORDERED if by_order else claims.RERUN)
