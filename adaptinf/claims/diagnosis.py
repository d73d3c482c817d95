"""Questions and statements of `diagnose`: findings, advice, and why a check does not apply."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

COULD_BE_MISSED = "drift that could be missed"
QUESTIONS = {
    "propensity calibration": "Do choice frequencies agree with the propensities, both small and large?",
    "sample ratio": "Do arm counts match the propensities or the declared allocation?",
    "sample ratio, anytime": "At any round, did arm counts contradict these probabilities (exact test)?",
    "sample mean against AIPW": "Do sample means differ from AIPW estimates by more than chance?",
    "common drift": "Do all arm means rise or fall together over time?",
    "drift over time": "Does an arm's mean rise or fall over time?",
    "drift by batch": "Is an arm's mean the same in all groups of consecutive batches?",
    COULD_BE_MISSED: "What linear drift, in standard deviations of the rewards, is detected with 80% power?",
    "decay of propensities": "How small do propensities become, and how fast do they decrease?",
    "effective sample size": "How large is the effective sample size of each arm?",
    "overlap": "In how many rounds was an arm's propensity very low?",
}
"""Questions by the names of the checks."""
OCCASIONAL = {
    "shares within batches": "Are the arm proportions that replace propensities constant within batches?",
    "negative control": "Does a variable that no arm can affect differ between arms, given the propensities?",
    "availability": "In how many rounds could an arm that is otherwise assigned at random not be chosen?",
    "missing rewards": "What proportion of an arm's rewards is missing?",
    "missing by arm": "Is this proportion the same in all arms?",
    "missing by batch": "Is it constant over time within each arm?",
}
"""Questions that only some logs raise: sums of shares from rows with times, columns that are named as
controls, arms that come or go, and missing rewards."""

CERTAIN = Claim(
    "inference.diagnostics.choice_checks.no_calibration",
    "all known propensities are 0 or 1, so there is no randomisation to check",
    "needs",
)
CIRCULAR = Claim(
    "inference.diagnostics.choice_checks.no_calibration",
    "the propensities were estimated from the observed assignments, so the two agree by construction",
    "needs",
)
FEW_CHOICES = Claim(
    "inference.diagnostics.choice_checks.merged_bins",
    "too few rounds were randomised: the variance of the number of rounds assigned to the arm is below "
    "{least:g}",
    "needs",
)
NEEDS_EVERY = Claim(
    "inference.diagnostics.choice_checks.no_ratio",
    "the test requires propensities of all arms in every round (for a fixed allocation, set expected= "
    "instead)",
    "needs",
)
ONE_ARM = Claim("inference.diagnostics.choice_checks.no_ratio", "the log has only one arm", "needs")
VARY_IN_BATCHES = Claim(
    "inference.diagnostics.sums_checks.choice_checks_of_sums",
    "propensities vary within batches, but the test requires products of propensities that the batch "
    "sums do not contain; use row-level data (AdaptiveLog) instead",
    "needs",
)

NOT_TRUSTED = Claim(
    "inference.diagnostics.choice_checks.chi_square",
    "logged propensities appear inconsistent with the observed assignments, so "
    "inverse-propensity-weighted estimates may be biased",
    "caution",
)
HOW_LOGGED = Claim(
    "inference.diagnostics.choice_checks.chi_square",
    "check whether propensities were logged late, rounds were lost or filtered, or the design was overridden",
    "advice",
)
EVERY_ARM_POSSIBLE = Claim(
    "inference.diagnostics.choice_checks.inverse_checks",
    "arms whose propensities were not logged had positive probability of being chosen",
    "assumes",
    short="every arm was possible",
)
COUNTS_OFF = Claim(
    "inference.diagnostics.choice_checks.count_test",
    "the arm counts are inconsistent with {expected}",
    "caution",
)
LOST_ROUNDS = Claim(
    "inference.diagnostics.choice_checks.count_test",
    "check for lost or filtered rounds",
    "advice",
)
SEE_ANYTIME = Claim(
    "inference.diagnostics.choice_checks.ratio_checks",
    "use the exact anytime-valid test, because an arm was assigned at random in only a few rounds",
    "advice",
)
SHARES_MOVE = Claim(
    "inference.diagnostics.sums_checks.choice_checks_of_sums",
    "assignment proportions, used in place of propensities, appear to change within batches",
    "caution",
)
GIVE_PROPENSITIES = Claim(
    "inference.diagnostics.sums_checks.choice_checks_of_sums",
    "supply propensities or use shorter batches, for example every='hour'",
    "advice",
)
ROWS_TOGETHER = Claim(
    "inference.diagnostics.sums_checks.choice_checks_of_sums",
    "several rows from the same person at the same time could also explain a change in assignment "
    "proportions",
    "note",
)

CONTROL_DIFFERS = Claim(
    "inference.diagnostics.log_checks.control_checks",
    "{name} differs between arms by more than the propensities can explain (the difference is largest "
    "for arm {arm!r})",
    "caution",
)
CONTROL_CAUSES = Claim(
    "inference.diagnostics.log_checks.control_checks",
    "check whether {name} was measured before assignment, whether assignment depended on it in a way "
    "that is not reflected in the propensities, and whether rows are missing",
    "advice",
)
CONTROL_UNTESTED = Claim(
    "inference.arms.data.covariate_adjustment.control_test",
    "the variable is constant, or too few rounds are informative for the test",
    "needs",
)
CONTROL_CIRCULAR = Claim(
    "profile.estimated",
    "the propensities were estimated, so testing the assignments against them would be circular",
    "needs",
)
CONTROL_ONE_DRAW = Claim(
    "profile.one_draw_a_unit",
    "units were not randomised in each round, so the assignments in a unit's rows are not independent",
    "needs",
)

NEVER_POSSIBLE = Claim(
    "inference.diagnostics.arm_checks.usable",
    "AIPW scores are undefined in rounds in which an arm's propensity is 0",
    "needs",
)
FEW_REWARDS = Claim(
    "inference.diagnostics.arm_checks.usable",
    "fewer than {fewest} rewards were observed for the arm",
    "needs",
)
ONE_REWARD = Claim("inference.diagnostics.arm_checks.usable", "the arm's rewards are all equal", "needs")
SETTLED = Claim(
    "inference.diagnostics.arm_checks._mean_checks",
    "propensities are constant, so the sample mean and AIPW are asymptotically equivalent and their "
    "difference cannot be tested",
    "needs",
)
UNVARYING = Claim(
    "inference.diagnostics.arm_checks.drifts",
    "an estimated variance is 0, so the test statistic is undefined",
    "needs",
)
NO_BATCHES = Claim(
    "inference.diagnostics.arm_checks._batch_checks", "the log has fewer than two batches", "needs"
)
FEW_IN_STRETCH = Claim(
    "inference.diagnostics.arm_checks._batch_checks",
    "at least one group of consecutive batches has fewer than {fewest} rewards for the arm",
    "needs",
)

ESTIMATES_CHANGE = Claim(
    "inference.diagnostics.arm_checks.mean_differences",
    "the sample mean differs significantly from the AIPW estimate",
    "caution",
)
USE_VALID_ONES = Claim(
    "inference.diagnostics.arm_checks.mean_differences",
    "use an estimator that is valid under adaptive assignment, such as ArmMeans (audit.simulate_bias "
    "estimates the bias in sample means caused by adaptivity alone)",
    "advice",
)
DRIFT_TOO = Claim(
    "inference.diagnostics.arm_checks.mean_differences",
    "drift or context-dependent assignment could also explain the difference between the sample mean "
    "and the AIPW estimate",
    "note",
)
DIFFERENT_MEANS = Claim(
    "profile.decides_by_context",
    "assignment depends on contexts, so AIPW and the sample mean have different estimands",
    "note",
)
MEAN_CHANGED = Claim(
    "inference.diagnostics.arm_checks.drifts", "an arm's mean appears to change over time", "caution"
)
AVERAGES = Claim(
    "inference.diagnostics.arm_checks.drifts",
    "under drift, estimates target weighted averages over time, and methods that assume constant means "
    "are invalid",
    "caution",
)
COMPARE_WITHIN = Claim(
    "inference.diagnostics.arm_checks.drifts",
    "compare arms within batches (Contrast(...).batch_test) or within short periods",
    "advice",
)
CONTEXTS_CHANGE = Claim(
    "profile.has_contexts",
    "a shift in the distribution of contexts could also explain the observed change in mean rewards",
    "note",
)

NEEDS_REWARDS = Claim(
    "profile.incomplete",
    "the check requires all rewards, but {missing:,} of {rounds:,} are missing",
    "needs",
)
MISSING_ALIKE = Claim(
    "inference.diagnostics.missing_checks.missing_checks",
    "there are too few missing rewards, observed rewards or groups of rounds to compare proportions",
    "needs",
)
MISSING_BY_ARM = Claim(
    "inference.diagnostics.missing_checks.missing_checks",
    "rewards are missing more often in some arms than in others, so estimates are biased if the "
    "probability of being missing depends on the reward",
    "caution",
)
GIVE_BOUNDS = Claim(
    "inference.diagnostics.missing_checks.missing_checks",
    "also report bounds (missing='bounds'), which are valid whatever the missing rewards would have been",
    "advice",
)
MISSING_OVER_TIME = Claim(
    "inference.diagnostics.missing_checks.missing_checks",
    "within arms, the proportion of rewards that are missing changes over time, so missing='drop' "
    "relies on constant arm means",
    "caution",
)
NOT_YET_IN = Claim(
    "inference.diagnostics.missing_checks.missing_checks",
    "if recent outcomes have not yet arrived, analyse only rounds that are old enough for their "
    "outcomes to have arrived",
    "advice",
)

SMALL_PROPENSITY = Claim(
    "inference.diagnostics.log_checks.decay_checks",
    "the smallest propensity is below 0.001, so a single reward can have an inverse-propensity "
    "weight above 1,000",
    "caution",
)
SEE_SIZES = Claim(
    "inference.diagnostics.log_checks.decay_checks", "check the effective sample sizes", "advice"
)
FEW_ROUNDS = Claim(
    "inference.diagnostics.log_checks.decay_checks", "fewer than {fewest} rounds were logged", "needs"
)
EXPONENT_TO_LOOK_AT = Claim(
    "inference.diagnostics.log_checks.decay_checks",
    "the fitted exponent is descriptive only; the exponent used by two-point weights (decay=) must be "
    "chosen before data collection, not estimated from this log",
    "note",
)
FEW_CARRY = Claim(
    "inference.diagnostics.arm_checks.size_checks",
    "an arm's inverse-propensity-weighted mean has a small effective sample size",
    "caution",
)
STABILISE = Claim(
    "inference.diagnostics.arm_checks.size_checks",
    "use variance-stabilising weights ('sqrt' or 'two-point'), because normal confidence intervals may "
    "undercover when the effective sample size is small",
    "advice",
)
NOT_THERE = Claim(
    "inference.diagnostics.arm_checks.availability_checks",
    "an arm had propensity 0 in some rounds (it was unavailable; this is not poor overlap); "
    "inverse-propensity-weighted comparisons use only rounds in which all the arms compared were available",
    "note",
)
WENT_AWAY = Claim(
    "inference.diagnostics.arm_checks.availability_checks",
    "an arm was unavailable at the end, and estimates of its mean are biased if it was removed because of "
    "its rewards",
    "caution",
)
HARDLY_CHOSEN = Claim(
    "inference.diagnostics.arm_checks.overlap_checks",
    "an arm has very small propensities in some rounds (poor overlap), so the arm's "
    "inverse-propensity-weighted estimate may have a large variance",
    "caution",
)
ABSENT = Claim("inference.diagnostics.arm_checks.availability_checks", "rounds with propensity 0", "phrase")
BELOW = Claim(
    "inference.diagnostics.arm_checks.overlap_checks",
    "rounds with propensity < {limit:g}",
    "phrase",
)
BELOW_WHERE_CHOSEN = Claim(
    "inference.diagnostics.arm_checks.overlap_checks",
    "rounds with chosen-arm propensity < {limit:g}",
    "phrase",
)
BATCHES_BELOW = Claim(
    "inference.diagnostics.arm_checks.overlap_checks",
    "rounds in batches in which the propensity is below {limit:g}",
    "phrase",
)

ERROR_IGNORED = Claim(
    "profile.estimated",
    "Tests of means and drift treat the estimated propensities as known.",
    "note",
)
HOLM = Claim(
    "tests",
    "Holm p-values are adjusted for all {tests} tests in the table, so the familywise error rate "
    "is at most {alpha:g}. Failure to reject does not prove that an assumption holds.",
    "note",
)
MISSED = Claim(
    "missed",
    "The tests have 80% power to detect a {drift} of {least:.2g} reward standard deviations from the "
    "first round to the last; smaller drifts may go undetected.",
    "note",
)
MISSED_ALONE = Claim(
    "missed_alone",
    "In a single arm, the smallest drift detectable with 80% power is {least:.2g} standard deviations "
    "of the rewards.",
    "note",
)
NOTES = (ERROR_IGNORED, HOLM, MISSED, MISSED_ALONE)
