"""What is said of any fit of arms: how it was chosen, what it lacks, how much variance it could save."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CHOSEN = Claim("choice_reason", "Chosen as the first of recommend({data}): {reason}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "{arm}: never chosen, so nothing is estimated.", "note")
UNWEIGHTED = Claim(
    "unweighted",
    "{arm}: no round has a weight (the first one has none), so nothing is estimated.",
    "note",
)
CHOSEN_ONCE = Claim("chosen_once", "{arm}: chosen once, so it has no standard error.", "note")
WEIGHTED_ONCE = Claim(
    "weighted_once", "{arm}: only one of its rewards has a weight, so it has no standard error.", "note"
)
EXACT_TEST = Claim(
    "exact_test",
    "Two arms, rewards 0 and 1: {test}{given} tests exactly whether the arms are equal, and {interval} gives "
    "exact intervals for their difference and ratio.",
    "advice",
)
WITH_DESIGN = Claim(
    "inference.arms.facts.fits.exact_calls", ", with the design that gathered the log,", "advice"
)
FIT = (CHOSEN, NEVER_CHOSEN, UNWEIGHTED, CHOSEN_ONCE, WEIGHTED_ONCE, EXACT_TEST)
"""Under the table of a fit, after what its method says."""

EFFICIENCY = Claim(
    "inference.arms.fit.fit_efficiency",
    "Efficiency: {variances} times the least possible at {where}, without use of contexts.",
    "note",
)
AT_SHARES = Claim("inference.arms.fit.fit_efficiency", "the arms' shares of the rounds", "note")
TINY = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{arm}: smallest propensity {least:.2g}, effective sample size {size:.1f} of {n:.0f} rewards",
    "caution",
)
TINY_WARNING = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{subject}: {found}; a few rewards carry the estimate, and its normal interval may be far too short.",
    "caution",
)

INCOMPLETE = Claim(
    "profile.incomplete",
    "rewards are missing, and leaving their rounds out is biased where arms differ in how many are; aipw "
    "weighs them by the share observed",
    "needs",
)
"""Of a method that does not know what to do where rewards are missing."""
BASELINE = Claim(
    "inference.arms.choice.valid_alternatives", "{name} as a naive baseline, not valid {where}", "advice"
)
WITH_UNITS = Claim("inference.arms.choice.valid_alternatives", "for units with several rounds", "advice")
CLUSTERED = Claim(
    "inference.arms.choice.valid_alternatives",
    "AdaptiveOLS with covariance='cluster', on the arms",
    "advice",
)
AIPW_BY_UNIT = Claim(
    "inference.arms.choice.valid_alternatives",
    "aipw, with errors by unit, for a log with propensities",
    "advice",
)
"""What is offered in the place of what was refused."""
