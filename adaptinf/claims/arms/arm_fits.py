"""What is said of any fit of arms: how it was chosen, what it lacks, how much variance it could save."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CHOSEN = Claim("choice_reason", "Chosen as the first row of recommend({data}): {reason}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "{arm}: never chosen, so it is not estimated.", "note")
UNWEIGHTED = Claim(
    "unweighted",
    "{arm}: every round has weight 0 (the first one always does), so it cannot be estimated.",
    "note",
)
CHOSEN_ONCE = Claim("chosen_once", "{arm}: no standard error, as it was chosen only once.", "note")
WEIGHTED_ONCE = Claim(
    "weighted_once", "{arm}: only one reward has nonzero weight, which gives no standard error.", "note"
)
EXACT_TEST = Claim(
    "exact_test",
    "With two arms and 0/1 rewards, {test}{given} is an exact test of equal arms, and {interval} gives "
    "exact intervals for their difference and ratio.",
    "advice",
)
WITH_DESIGN = Claim(
    "inference.arms.facts.fits.exact_calls", " (given the design that collected the log)", "advice"
)
FIT = (CHOSEN, NEVER_CHOSEN, UNWEIGHTED, CHOSEN_ONCE, WEIGHTED_ONCE, EXACT_TEST)
"""Under the table of a fit, after what its method says."""

EFFICIENCY = Claim(
    "inference.arms.fit.fit_efficiency",
    "Efficiency: {variances} times the smallest possible at {where}, without using contexts.",
    "note",
)
AT_SHARES = Claim("inference.arms.fit.fit_efficiency", "the observed shares of the arms", "note")
TINY = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{arm}: smallest propensity {least:.2g}, effective sample size {ess:.1f} from {n:.0f} rewards",
    "caution",
)
TINY_WARNING = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{subject}: {found}; few rewards determine the estimate, so normal intervals can be much too short",
    "caution",
)

INCOMPLETE = Claim(
    "profile.incomplete",
    "rewards are missing, and leaving out their rounds causes bias if arms differ in the share missing; "
    "aipw weights by the share observed",
    "needs",
)
"""Of a method that does not know what to do where rewards are missing."""
BASELINE = Claim(
    "inference.arms.choice.valid_alternatives", "{name} as a naive baseline (invalid {where})", "advice"
)
WITH_UNITS = Claim("inference.arms.choice.valid_alternatives", "for units with several rounds", "advice")
CLUSTERED = Claim(
    "inference.arms.choice.valid_alternatives",
    "AdaptiveOLS on the arms with covariance='cluster'",
    "advice",
)
AIPW_BY_UNIT = Claim(
    "inference.arms.choice.valid_alternatives",
    "aipw with standard errors by unit (requires propensities)",
    "advice",
)
"""What is offered in the place of what was refused."""
