"""What `diagnose` asks and says: what it found, what to do about it, and why a check does not apply."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

COULD_BE_MISSED = "drift that could be missed"
QUESTIONS = {
    "propensity calibration": "Were arms chosen as often as their propensities say, at every level of them?",
    "sample ratio": "Do the arms' counts match the propensities, or the declared allocation?",
    "sample ratio, anytime": "The same, exactly and at every round: was there ever evidence against it?",
    "sample mean against AIPW": "Does weighting change the estimates by more than chance?",
    "common drift": "Do the arms' means rise or fall together over the log?",
    "drift over time": "Does an arm's mean rise or fall over time?",
    "drift by batch": "Is each arm's mean the same in all groups of batches?",
    COULD_BE_MISSED: "How large a steady change, in sd, would be detected with 80% power?",
    "decay of propensities": "How small do propensities get, and how do they fall?",
    "effective sample size": "How many equally weighted rewards is an arm's estimate worth?",
    "overlap": "In how many rounds was an arm's propensity very low?",
}
"""By the names of the checks."""
QUESTIONS_OF_SHARES = {
    "shares within batches": "Do the shares that stand in for propensities stay constant within batches?"
}
"""What is asked too where sums of shares were made of rows at times."""

# Choices against propensities

CERTAIN = Claim(
    "inference.diagnostics.choices.no_calibration",
    "every known propensity is 0 or 1: there is no random choice to check",
    "needs",
)
CIRCULAR = Claim(
    "inference.diagnostics.choices.no_calibration",
    "the propensities were estimated from the choices, so they agree by construction",
    "needs",
)
FEW_CHOICES = Claim(
    "inference.diagnostics.propensities.merged_bins",
    "too few random choices: the variance of the count is below {least:g}",
    "needs",
)
NEEDS_EVERY = Claim(
    "inference.diagnostics.choices.no_ratio",
    "it needs the propensities of all arms in all rounds, or expected= for a fixed allocation",
    "needs",
)
ONE_ARM = Claim("inference.diagnostics.choices.no_ratio", "there is only one arm", "needs")
VARY_IN_BATCHES = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "propensities vary within batches, and sums lack the products of two arms' propensities: diagnose "
    "the rows (an AdaptiveLog)",
    "needs",
)

NOT_TRUSTED = Claim(
    "inference.diagnostics.propensities.chi_square",
    "estimates weighted by these propensities cannot be trusted",
    "caution",
)
HOW_LOGGED = Claim(
    "inference.diagnostics.propensities.chi_square",
    "check for late logging of propensities, lost or filtered rounds, or overrides of the design",
    "advice",
)
EVERY_ARM_POSSIBLE = Claim(
    "inference.diagnostics.choices.inverse_checks",
    "every arm could be chosen in every round (only the chosen arms' propensities are known)",
    "assumes",
)
COUNTS_OFF = Claim(
    "inference.diagnostics.propensities.count_test",
    "the counts do not match {expected}",
    "caution",
)
LOST_ROUNDS = Claim(
    "inference.diagnostics.propensities.count_test",
    "check for lost or filtered rounds",
    "advice",
)
SEE_ANYTIME = Claim(
    "inference.diagnostics.choices.ratio_checks",
    "an arm has few random choices: use the anytime row, which is exact",
    "advice",
)
SHARES_MOVE = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "the arms' shares, used as propensities, move within batches",
    "caution",
)
GIVE_PROPENSITIES = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "give propensities, or shorter batches (every='hour')",
    "advice",
)
ROWS_TOGETHER = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "several rows of one person that arrive together also move shares",
    "note",
)

# Estimates that should agree

NEVER_POSSIBLE = Claim(
    "inference.diagnostics.arms.usable",
    "an arm has propensity 0 in some rounds, where its scores are undefined",
    "needs",
)
FEW_REWARDS = Claim("inference.diagnostics.arms.usable", "fewer than {fewest} rewards of an arm", "needs")
ONE_REWARD = Claim("inference.diagnostics.arms.usable", "an arm's rewards are all the same", "needs")
SETTLED = Claim(
    "inference.diagnostics.arms._mean_checks",
    "propensities are constant: the two estimates agree up to terms of order 1 / rounds, and their "
    "difference is not normal",
    "needs",
)
UNVARYING = Claim("inference.diagnostics.agreement.drifts", "the compared values do not vary", "needs")
NO_BATCHES = Claim("inference.diagnostics.arms._batch_checks", "the log has fewer than two batches", "needs")
FEW_IN_STRETCH = Claim(
    "inference.diagnostics.arms._batch_checks",
    "too few rewards of an arm in a group of batches (below {fewest})",
    "needs",
)

ESTIMATES_CHANGE = Claim(
    "inference.diagnostics.agreement.mean_differences", "weighting changes the estimates", "caution"
)
USE_VALID_ONES = Claim(
    "inference.diagnostics.agreement.mean_differences",
    "use a valid estimator (ArmMeans), and see audit.simulate_bias for how far adaptivity alone moves "
    "the sample mean",
    "advice",
)
DRIFT_TOO = Claim(
    "inference.diagnostics.agreement.mean_differences", "drift and contexts can have the same effect", "note"
)
DIFFERENT_MEANS = Claim(
    "profile.decides_by_context",
    "the design uses contexts, so the two estimate different means",
    "note",
)
MEAN_CHANGED = Claim(
    "inference.diagnostics.agreement.drifts", "an arm's mean changed while it was sampled", "caution"
)
AVERAGES = Claim(
    "inference.diagnostics.agreement.drifts",
    "estimates are averages over the rounds, with their weights, and methods that assume constant "
    "means do not apply",
    "caution",
)
COMPARE_WITHIN = Claim(
    "inference.diagnostics.agreement.drifts",
    "compare arms within batches (Contrast(...).batch_test) or by period",
    "advice",
)
CONTEXTS_CHANGE = Claim("profile.has_contexts", "a change in the contexts that arrive looks the same", "note")

# Propensities that are small, and what is left after weighting

SMALL_PROPENSITY = Claim(
    "inference.diagnostics.diagnosis.decay_checks",
    "at the smallest propensity a reward has more than 1,000 times the weight of one that was certain",
    "caution",
)
SEE_SIZES = Claim("inference.diagnostics.diagnosis.decay_checks", "see the effective sample sizes", "advice")
FEW_ROUNDS = Claim("inference.diagnostics.diagnosis.decay_checks", "fewer than {fewest} rounds", "needs")
EXPONENT_TO_LOOK_AT = Claim(
    "inference.diagnostics.diagnosis.decay_checks",
    "the exponent is descriptive: two-point weights need one fixed before the data, never fitted",
    "note",
)
FEW_CARRY = Claim(
    "inference.diagnostics.arms.size_checks",
    "an arm's weighted estimate rests on few rewards",
    "caution",
)
STABILISE = Claim(
    "inference.diagnostics.arms.size_checks",
    "use stabilising weights (sqrt, two-point), and do not trust normal intervals at this sample size",
    "advice",
)
HARDLY_CHOSEN = Claim(
    "inference.diagnostics.arms.overlap_checks",
    "an arm is very unlikely to be chosen in some rounds: its weighted estimate assumes that they are "
    "like the others",
    "caution",
)
BELOW = Claim("inference.diagnostics.arms.overlap_checks", "rounds below {limit:g}", "note")
BELOW_WHERE_CHOSEN = Claim(
    "inference.diagnostics.arms.overlap_checks", "rounds below {limit:g} where chosen", "note"
)
BATCHES_BELOW = Claim(
    "inference.diagnostics.arms.overlap_checks", "rounds of batches with some below {limit:g}", "note"
)

# Under the table

ERROR_IGNORED = Claim(
    "profile.estimated",
    "The propensities are estimates; the tests of means and drift ignore their error.",
    "note",
)
HOLM = Claim(
    "tests",
    "Holm: p-values account for all tests in the table ({tests}), so that all verdicts together have "
    "level {alpha:g}. A test that does not reject proves nothing.",
    "note",
)
MISSED = Claim(
    "missed",
    "A {drift} of {least:.2g} sd of the rewards over the whole log would have been detected with "
    "probability 80%; smaller ones may have been missed.",
    "note",
)
MISSED_ALONE = Claim(
    "missed_alone",
    "In one arm alone, the smallest drift detected that often is {least:.2g} sd.",
    "note",
)
NOTES = (ERROR_IGNORED, HOLM, MISSED, MISSED_ALONE)
