"""What is said of any fit of arms: how it was chosen, what it lacks, how much variance it could save."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

CHOSEN = Claim("choice_reason", "This method is the first row of recommend({data}): {reason}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "Arm {arm} was never chosen and has no estimate.", "note")
UNWEIGHTED = Claim(
    "unweighted",
    "Arm {arm} has no estimate, because all weights are 0 (round 1 always has weight 0).",
    "note",
)
CHOSEN_ONCE = Claim(
    "chosen_once", "Arm {arm} was chosen only once, so its standard error cannot be estimated.", "note"
)
WEIGHTED_ONCE = Claim(
    "weighted_once",
    "Only one reward of arm {arm} has nonzero weight, so its standard error is unknown.",
    "note",
)
EXACT_TEST = Claim(
    "exact_test",
    "With two arms and 0/1 rewards, {test} gives an exact test of equal success rates, and {interval} "
    "gives exact intervals for the difference and the ratio{given}.",
    "advice",
)
WITH_DESIGN = Claim(
    "inference.arms.facts.fits.exact_calls", "; both need the design that collected the log", "advice"
)
FIT = (CHOSEN, NEVER_CHOSEN, UNWEIGHTED, CHOSEN_ONCE, WEIGHTED_ONCE, EXACT_TEST)
"""Under the table of a fit, after what its method says."""

EFFICIENCY = Claim(
    "inference.arms.fit.fit_efficiency",
    "Efficiency: {variances} times the efficiency bound, computed at {where} and ignoring contexts.",
    "note",
)
AT_SHARES = Claim("inference.arms.fit.fit_efficiency", "the observed assignment proportions", "note")
TINY = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "arm {arm} has a smallest propensity of {least:.2g} ({n:.0f} rewards, effective sample size {ess:.1f})",
    "caution",
)
TINY_WARNING = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{subject}: {found}; estimates depend on a few rewards, so normal intervals may undercover substantially",
    "caution",
)

INCOMPLETE = Claim(
    "profile.incomplete",
    "rewards are missing, and dropping these rounds biases comparisons if missingness differs between "
    "arms (estimator='aipw' weights by the probability that a reward is observed)",
    "needs",
)
"""Of a method that does not know what to do where rewards are missing."""
BASELINE = Claim(
    "inference.arms.choice.valid_alternatives", "{name} as a naive baseline (invalid {where})", "advice"
)
WITH_UNITS = Claim("inference.arms.choice.valid_alternatives", "for units with several rounds", "advice")
CLUSTERED = Claim(
    "inference.arms.choice.valid_alternatives",
    "AdaptiveOLS on arm indicators with covariance='cluster'",
    "advice",
)
AIPW_BY_UNIT = Claim(
    "inference.arms.choice.valid_alternatives",
    "aipw with standard errors clustered by unit (requires propensities)",
    "advice",
)
"""What is offered in the place of what was refused."""
