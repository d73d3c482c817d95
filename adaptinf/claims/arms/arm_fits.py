"""Claims about any fit of arms: the choice of method, missing numbers, and efficiency."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

CHOSEN = Claim("choice_reason", "This method ranks first in recommend({data}): {reason}.", "note")
NEVER_CHOSEN = Claim("never_chosen", "Arm {arm} was never chosen and therefore has no estimate.", "missing")
UNWEIGHTED = Claim(
    "unweighted",
    "Arm {arm} has no estimate, because all its rounds have weight 0 (round 1 always has weight 0).",
    "missing",
)
CHOSEN_ONCE = Claim(
    "chosen_once", "Arm {arm} was chosen only once, so its standard error cannot be estimated.", "missing"
)
WEIGHTED_ONCE = Claim(
    "weighted_once",
    "Arm {arm} has no standard error, because only one of its rewards has nonzero weight.",
    "missing",
)
EXACT_TEST = Claim(
    "exact_test",
    "For two arms with 0/1 rewards, {test} gives an exact test of equal success rates, and {interval} "
    "gives exact confidence intervals for their difference and ratio{given}.",
    "advice",
)
WITH_DESIGN = Claim(
    "inference.arms.facts.arm_facts.exact_calls",
    "; both calls require the design that was used to collect the data",
    "phrase",
)
WITHOUT_NUMBERS = (NEVER_CHOSEN, UNWEIGHTED, CHOSEN_ONCE, WEIGHTED_ONCE)
"""Claims about arms without an estimate or a standard error."""
FIT = (CHOSEN, Part("without_numbers", "note"), EXACT_TEST)
"""Claims shown below the table of a fit, after those of its method."""

EFFICIENCY = Claim(
    "inference.arms.fit.fit_efficiency",
    "Efficiency: {variances} times the efficiency bound, which is evaluated at {where} and ignores contexts.",
    "note",
)
AT_SHARES = Claim("inference.arms.fit.fit_efficiency", "the observed assignment proportions", "phrase")
TINY = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "the smallest propensity of arm {arm} is {least:.2g} (number of rewards {n:.0f}, effective sample "
    "size {ess:.1f})",
    "caution",
)
TINY_WARNING = Claim(
    "inference.arms.fit.warn_of_tiny_propensities",
    "{subject}: {found}; a few rewards largely determine the estimates, so intervals based on the "
    "normal approximation may undercover substantially",
    "caution",
)

INCOMPLETE = Claim(
    "profile.incomplete",
    "some rewards are missing, and comparisons that omit the affected rounds may be biased if "
    "missingness differs between arms (estimator='aipw' weights rounds by the inverse probability of "
    "observation)",
    "needs",
)
"""Claims for a method that cannot handle missing rewards."""
BASELINE = Claim(
    "inference.arms.choice.valid_alternatives", "{name} as a naive baseline (invalid {where})", "advice"
)
WITH_UNITS = Claim(
    "inference.arms.choice.valid_alternatives", "when units appear in several rounds", "phrase"
)
CLUSTERED = Claim(
    "inference.arms.choice.valid_alternatives",
    "AdaptiveOLS on arm indicators with covariance='cluster'",
    "advice",
)
AIPW_BY_UNIT = Claim(
    "inference.arms.choice.valid_alternatives",
    "an AIPW analysis with standard errors clustered by unit (requires propensities)",
    "advice",
)
"""Alternatives to the refused method."""
