"""What `diagnose` asks and says: what it found, what to do about it, and why a check does not apply."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

QUESTIONS = {
    "propensity calibration": "Were arms chosen as often as their propensities say, at every level of them?",
    "sample ratio": "Do the arms' counts match the propensities, or the declared allocation?",
    "sample ratio, anytime": "The same, exact and at every round: was it ever in doubt?",
    "sample mean against AIPW": "Does weighting change the estimates by more than chance?",
    "common drift": "Do the arms' means rise or fall together from the first round to the last?",
    "drift over time": "Does an arm's mean rise or fall from the first round to the last?",
    "drift by batch": "Is an arm's mean the same in all stretches of batches?",
    "drift that could be missed": "Which steady change, in sd, would have been found 4 times out of 5?",
    "decay of propensities": "How small do propensities get, and how do they fall?",
    "effective sample size": "How many equally weighted rewards is an arm's estimate worth?",
    "overlap": "In how many rounds could an arm hardly be chosen?",
}
"""By the names of the checks."""
QUESTIONS_OF_SHARES = {
    "shares within batches": "Do the arms' shares, which stand in for propensities, stay put within batches?"
}
"""What is asked too where sums of shares were made of rows at times."""

# Choices against propensities

NO_PROPENSITIES = Claim(
    "inference.diagnostics.choices.no_calibration", "the log has no propensities", "needs"
)
CERTAIN = Claim(
    "inference.diagnostics.choices.no_calibration",
    "every known propensity is 0 or 1: the design makes no random choice that could be checked",
    "needs",
)
CIRCULAR = Claim(
    "inference.diagnostics.choices.no_calibration",
    "the propensities are estimated from the choices themselves, and agree with them by construction: a "
    "check would be circular",
    "needs",
)
FEW_CHOICES = Claim(
    "inference.diagnostics.propensities.merged_bins",
    "too few random choices: the variance of the count is below {least:g}",
    "needs",
)
NEEDS_EVERY = Claim(
    "inference.diagnostics.choices.no_ratio",
    "it needs every arm's propensity at every round, or expected= for a fixed allocation",
    "needs",
)
ONE_ARM = Claim("inference.diagnostics.choices.no_ratio", "there is one arm", "needs")
VARY_IN_BATCHES = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "propensities vary within batches, and sums do not hold the products of two arms' propensities; the rows "
    "of the log tell (diagnose of an AdaptiveLog)",
    "needs",
)

NOT_TRUSTED = Claim(
    "inference.diagnostics.propensities.chi_square",
    "estimates that weight by these propensities are not to be trusted",
    "caution",
)
HOW_LOGGED = Claim(
    "inference.diagnostics.propensities.chi_square",
    "look for propensities that were logged after the choice, rounds that were lost or filtered, or "
    "overrides of the design",
    "advice",
)
EVERY_ARM_POSSIBLE = Claim(
    "inference.diagnostics.choices.inverse_checks",
    "from the chosen arms' propensities alone: it also takes arms that could be chosen in every round",
    "assumes",
)
OFF_PROPENSITIES = Claim(
    "inference.diagnostics.propensities.count_test",
    "the counts are not those that the propensities lead to",
    "caution",
)
OFF_DECLARED = Claim(
    "inference.diagnostics.propensities.count_test",
    "the counts are not those of the declared allocation",
    "caution",
)
LOST_ROUNDS = Claim(
    "inference.diagnostics.propensities.count_test",
    "look for rounds that were lost or filtered",
    "advice",
)
SEE_ANYTIME = Claim(
    "inference.diagnostics.choices.ratio_checks",
    "an arm has few random choices: see the anytime row, which is exact",
    "advice",
)
SHARES_MOVE = Claim(
    "inference.diagnostics.from_sums.choice_checks", "shares stand in for propensities", "caution"
)
GIVE_PROPENSITIES = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "give these, or shorter batches (every='hour')",
    "advice",
)
ROWS_TOGETHER = Claim(
    "inference.diagnostics.from_sums.choice_checks",
    "several rows of one person that come together move shares, too",
    "note",
)

# Estimates that should agree

NEVER_POSSIBLE = Claim(
    "inference.diagnostics.arms.usable",
    "an arm has propensity 0 in some rounds, where there is nothing to weight",
    "needs",
)
FEW_REWARDS = Claim("inference.diagnostics.arms.usable", "an arm has fewer than {fewest} rewards", "needs")
ONE_REWARD = Claim("inference.diagnostics.arms.usable", "an arm's rewards are all the same", "needs")
SETTLED = Claim(
    "inference.diagnostics.arms._mean_checks",
    "propensities do not change: both estimates are the same but for terms of order 1 / rounds, and their "
    "difference is not normal",
    "needs",
)
UNVARYING = Claim("inference.diagnostics.agreement.drifts", "what is compared does not vary", "needs")
ONE_TO_FOLLOW = Claim("inference.diagnostics.arms._trend_checks", "there is one arm to follow", "needs")
NO_BATCHES = Claim("inference.diagnostics.arms._batch_checks", "the log has no batches, or one", "needs")
FEW_IN_STRETCH = Claim(
    "inference.diagnostics.arms._batch_checks",
    "an arm has fewer than {fewest} rewards in a stretch of batches",
    "needs",
)

ESTIMATES_CHANGE = Claim(
    "inference.diagnostics.agreement.mean_differences", "weighting changes the estimates", "caution"
)
USE_VALID_ONES = Claim(
    "inference.diagnostics.agreement.mean_differences",
    "use valid ones (ArmMeans), and see audit.simulate_bias for how far adaptivity alone moves the sample "
    "mean",
    "advice",
)
DRIFT_TOO = Claim("inference.diagnostics.agreement.mean_differences", "drift and contexts do it too", "note")
DIFFERENT_MEANS = Claim(
    "profile.decides_by_context",
    "the design chooses by context, so that they estimate different means",
    "note",
)
MEAN_CHANGED = Claim(
    "inference.diagnostics.agreement.drifts", "an arm's mean changed while it was sampled", "caution"
)
AVERAGES = Claim(
    "inference.diagnostics.agreement.drifts",
    "estimates are averages over the rounds with their weights, and methods that assume means that stay the "
    "same do not apply",
    "caution",
)
COMPARE_WITHIN = Claim(
    "inference.diagnostics.agreement.drifts",
    "compare arms within batches (Contrast(...).batch_test) or by period",
    "advice",
)
CONTEXTS_CHANGE = Claim("profile.log.context", "contexts that arrive differently later look the same", "note")

# Propensities that are small, and what is left after weighting

SMALL_PROPENSITY = Claim(
    "inference.diagnostics.diagnosis.decay_checks",
    "a reward at the smallest propensity weighs a thousand times one that was sure",
    "caution",
)
SEE_SIZES = Claim("inference.diagnostics.diagnosis.decay_checks", "see the effective sample sizes", "advice")
FEW_ROUNDS = Claim("inference.diagnostics.diagnosis.decay_checks", "fewer than {fewest} rounds", "needs")
EXPONENT_TO_LOOK_AT = Claim(
    "inference.diagnostics.diagnosis.decay_checks",
    "the exponent is for a look: two-point weights need one that was fixed before the data, never fitted",
    "note",
)
FEW_CARRY = Claim(
    "inference.diagnostics.arms.size_checks",
    "few rewards, or a few of many, carry an arm's weighted estimate",
    "caution",
)
STABILISE = Claim(
    "inference.diagnostics.arms.size_checks",
    "take weights that stabilise it (sqrt, two-point), and trust no normal interval of so small a sample",
    "advice",
)
HARDLY_CHOSEN = Claim(
    "inference.diagnostics.arms.overlap_checks",
    "an arm can hardly be chosen in some rounds: its weighted estimate leans on the assumption that those "
    "rounds are like the others",
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
    "The propensities are estimates, whose error the tests of means and drift ignore.",
    "note",
)
HOLM = Claim(
    "tests",
    "Holm: adjusted for the number of p-values in the table, {tests}; all verdicts together are at "
    "{alpha:g}. A test that does not reject is no proof.",
    "note",
)
MISSED = Claim(
    "missed_of_one",
    "Drift of {least:.2g} sd of their rewards from the first round to the last would have been found with "
    "probability 80%: less may have been missed.",
    "note",
)
MISSED_COMMON = Claim(
    "missed_of_several",
    "Drift common to the arms of {common:.2g} sd of their rewards from the first round to the last would "
    "have been found with probability 80%, and of one arm alone from {alone:.2g} sd on: less may have been "
    "missed.",
    "note",
)
NOTES = (ERROR_IGNORED, HOLM, MISSED, MISSED_COMMON)
