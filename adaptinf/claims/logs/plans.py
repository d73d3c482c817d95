"""Claims about trials with planned looks."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNTESTED = Claim(
    "plans.plan.Plan.analyse",
    "no look included a test: at each look, an arm's effective sample size, or the number of outcomes "
    "of the rarer kind, was below {least:g}",
    "needs",
)
GOES_ON = Claim(
    "plans.plan.Plan.analyse",
    "under the plan, no look up to round {rounds} stops the trial; the next look is after round {after}",
    "needs",
)
GOES_ON_BY_DATE = Claim(
    "plans.plan.Plan.analyse",
    "under the plan, the trial does not stop at any look that the log has reached, and the next look is "
    "on day {day}; if the log is complete up to that day, set as_of={day}",
    "needs",
)
GOES_ON_BY_INFORMATION = Claim(
    "plans.plan.Plan.analyse",
    "the plan does not stop at any look that the log has reached; the next one is at information {level:g}, "
    "and the log has {now:g}",
    "needs",
)
STAGEWISE = Claim(
    "plans.plan.Plan.analyse",
    "The estimate is median-unbiased; the interval and p-value use stage-wise ordering, which ranks "
    "outcomes by the look at which a trial stops. {looks} of {planned} looks were used, with alpha spending "
    "({spending}) to control the type I error.",
    "note",
    short="stage-wise ordering after {looks} of {planned} looks",
)
BY_RANK = Claim(
    "plans.plan.Plan.analyse",
    "The p-value is based on the trial's rank among {replays} replays of the design with the same outcomes "
    "({looks} of {planned} looks). If no arm has an effect on any participant, alpha spending ({spending}) "
    "controls the type I error exactly.",
    "note",
    short="rank among {replays} replays after {looks} of {planned} looks",
)
UNADJUSTED = Claim("plans.plan.Plan.analyse", "the estimate is not adjusted for the looks", "phrase")
NO_LIMITS = Claim(
    "plans.plan.Plan.analyse",
    "the re-randomisation test (null hypothesis: no effect for any participant) gives no interval; "
    "{estimate}",
    "missing",
    phrases={"estimate": UNADJUSTED},
)
NO_EFFECT_ON_ANYONE = Claim(
    "plans.plan.Plan.analyse",
    "under the null hypothesis, no participant's outcome depends on the arm",
    "assumes",
    short="under the null, no effect on any participant",
)
REPEATED = Claim(
    "plans.plan.Plan.analyse",
    "Intervals and p-values are simultaneous across treatments and valid at every look, whatever the "
    "reason for stopping; estimates are unadjusted. To control the familywise error rate, alpha was "
    "spent over {looks} of {planned} looks ({spending}).",
    "note",
    short="simultaneous repeated intervals after {looks} of {planned} looks",
)
CLOSED = Claim(
    "plans.plan.Plan.analyse",
    "Closed tests reject the null hypothesis for: {rejected}. A rejection is possible even if the "
    "treatment's simultaneous interval contains the null value.",
    "note",
    short="null rejected by closed tests for: {rejected}",
)
ANY_TREATMENT = Claim(
    "plans.plan.Plan.analyse",
    "The p-value is for the null hypothesis that none of the arms has an effect; only the treatment "
    "with the largest score is shown.",
    "note",
    short="tests for an effect of any arm",
)
OVERRUN = Claim(
    "plans.plan.Plan.analyse",
    "Rounds after the look at which the plan stopped the trial are not used ({more} in total).",
    "note",
    short="later rounds not used: {more}",
)
OVERRUN_USED = Claim(
    "plans.plan.Plan.analyse",
    "Under the deletion method, the final look is replaced by an analysis of all data, including {more} "
    "later rounds. The interval is then slightly conservative, and the estimate tends to move towards "
    "the null value.",
    "note",
    short="{more} later rounds included (deletion method)",
)
OVERRUN_ONE = Claim(
    "plans.plan.Plan.analyse",
    'later rounds can be included only if the plan has a single treatment and law="z" (this plan has '
    "law {law!r} or several treatments)",
    "needs",
)
CONSTANT_EFFECT = Claim(
    "plans.plan.Plan.analyse",
    "the difference between the two arms is constant over time (drift common to both is allowed)",
    "assumes",
    short="a constant difference; common drift cancels",
)
LOOKS_KEPT = Claim(
    "plans.plan.Plan.analyse",
    "looks took place as planned, and the plan's stopping rule was followed",
    "assumes",
    short="planned looks",
)
WITHOUT_PROPENSITIES = Claim(
    "plans.plan_characteristics.characteristics",
    "interim looks require propensities and rounds in which either arm could be assigned, but {design} "
    "either records no propensities or does not randomise",
    "needs",
)
BOUNDED = Claim(
    "plans.stored_plans.outcomes_of",
    "interim looks treat missing rewards as missing at random; bounds are not available",
    "needs",
)
DIFFERS = Claim(
    "plans.stored_plans.differs",
    "the decision recorded at look {stage} was {recorded!r}, but outcomes were amended later; with the "
    "outcomes now in the log, the decision is {decision!r} at look {found}",
    "caution",
)
OVERRIDDEN = Claim(
    "inference.results.log_facts.evidence_told",
    "the trial was continued manually after look {stage}, although the plan's decision was {decision!r}",
    "caution",
)
ACCOUNTS = Claim(
    "inference.recommend.recommendation.recommend",
    "the analysis specified in the trial's plan accounts for its looks",
    "reason",
)
USE_PLAN = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    "use Plan.of(log).analyse(log) for the planned difference, or ConfidenceSequence for inference "
    "under any stopping rule",
    "advice",
)
FAILED = Claim(
    "plans.plan_characteristics.characteristics",
    "{failed} of {trials} trials in {scenario!r} failed and are excluded; first error: {error:.200}",
    "caution",
)
ALL_FAILED = Claim(
    "plans.plan_characteristics.simulated",
    "every simulated trial failed; first error: {error:.200}",
    "needs",
)
NORMAL_LAW = Claim(
    "plans.planning.sizes.sample_size", "the joint normal distribution of the test statistics", "phrase"
)
SIZE_BY_LAW = Claim(
    "plans.planning.sizes.sample_size",
    "The design is not adaptive, so power and mean sample size are computed from a normal "
    "approximation, without simulation; the horizon is rounded up.",
    "note",
)
SIZE_BY_SIMULATION = Claim(
    "plans.planning.sizes.sample_size",
    "Looks are at the same fractions of every horizon, and all horizons use the same random number streams.",
    "note",
)
SIZE_NOT_REACHED = Claim(
    "plans.planning.sizes.sample_size",
    "The target power is not reached even at the longest horizon considered ({longest:,} rounds).",
    "note",
)
CALIBRATED = Claim(
    "plans.planning.plan_calibration.calibrate",
    "The error rate was simulated only in these environments; in others, it is unknown.",
    "caution",
)
BY_COUNTS = Claim(
    "plans.plan.Plan.analyse",
    "The p-value is exact, conditional on the total number of successes ({looks} of {planned} looks). "
    "For any constant success rate, the type I error is controlled by alpha spending ({spending}).",
    "note",
    short="exact distribution of counts after {looks} of {planned} looks",
)
NO_COUNT_LIMITS = Claim(
    "plans.plan.Plan.analyse",
    "the exact test applies only to a difference of 0, so there is no interval; the estimated "
    "difference between sample proportions is unadjusted for the looks",
    "missing",
)
CONSTANT_RATES = Claim(
    "plans.plan.Plan.analyse",
    "the plan's design assigned the arms, and each arm's success rate is the same in every round (drift, "
    "even if common to both arms, is not allowed)",
    "assumes",
    short="constant success rates, without drift",
)
NOT_BINARY = Claim(
    "plans.plan.Plan.process",
    "the exact distribution of counts requires rewards of 0 and 1",
    "needs",
)
BY_EXACT_LAW = Claim(
    "plans.plan_characteristics.characteristics",
    "Success rates are constant in {scenario!r}, so stopping probabilities, mean sample sizes and bias are "
    "exact.",
    "note",
)
NORMAL_ONLY = Claim(
    "plans.planning.conditional.conditional_power",
    "conditional and predictive power are available only for plans with a single treatment and normal "
    'scores (law="z"; law of this plan: {law!r})',
    "needs",
)
NOT_UNDER_WAY = Claim(
    "plans.planning.conditional.conditional_power",
    "the trial must have continued after a look that included a test, but the latest decision is: {decision}",
    "needs",
)
