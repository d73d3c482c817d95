"""Claims about trials with planned looks."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

UNTESTED = Claim(
    "plans.plan.Plan.analyse",
    "no look had {least:g} effective rewards, and {least:g} outcomes of the rarer kind, in each of the two "
    "arms",
    "needs",
)
GOES_ON = Claim(
    "plans.plan.Plan.analyse",
    "the plan does not stop at any of its looks up to round {rounds}; the next look is after round {after}",
    "needs",
)
STAGEWISE = Claim(
    "plans.plan.Plan.analyse",
    "The estimate is median-unbiased, and its interval and p-value order outcomes by the look at which a "
    "trial stops; {looks} of {planned} looks were used, and {spending} spending controls the type I error.",
    "note",
    short="stage-wise ordering after {looks} of {planned} looks",
)
BY_RANK = Claim(
    "plans.plan.Plan.analyse",
    "The p-value ranks the trial among {replays} replays of the design on the same outcomes; {looks} of "
    "{planned} looks were used, and {spending} spending controls the type I error exactly if no arm has an "
    "effect on anyone.",
    "note",
    short="rank among {replays} replays after {looks} of {planned} looks",
)
NO_LIMITS = Claim(
    "plans.plan.Plan.analyse",
    "re-randomisation tests a difference of 0 for everyone, and gives no interval; the estimate is not "
    "adjusted for the looks",
    "missing",
)
NO_EFFECT_ON_ANYONE = Claim(
    "plans.plan.Plan.analyse",
    "under the null, no arm has an effect on anyone",
    "assumes",
    short="under the null, no effect on anyone",
)
REPEATED = Claim(
    "plans.plan.Plan.analyse",
    "Intervals and p-values are simultaneous over treatments, and hold at every look whatever the reason "
    "for stopping; estimates are not adjusted for the looks. {looks} of {planned} looks were used, and "
    "{spending} spending controls the family-wise error.",
    "note",
    short="simultaneous repeated intervals after {looks} of {planned} looks",
)
CLOSED = Claim(
    "plans.plan.Plan.analyse",
    "Closed tests reject: {rejected}. A treatment may be rejected although its simultaneous interval "
    "contains the null.",
    "note",
    short="rejected by closed tests: {rejected}",
)
ANY_TREATMENT = Claim(
    "plans.plan.Plan.analyse",
    "The null of the p-value is that no arm has an effect; only the treatment with the largest score is "
    "shown.",
    "note",
    short="no effect of any arm under the null",
)
OVERRUN = Claim(
    "plans.plan.Plan.analyse",
    "{more} rounds after the look at which the plan stopped are not used.",
    "note",
    short="{more} later rounds not used",
)
CONSTANT_EFFECT = Claim(
    "plans.plan.Plan.analyse",
    "the difference between the two arms is constant over time (drift common to both is allowed)",
    "assumes",
    short="a constant difference; common drift cancels",
)
LOOKS_KEPT = Claim(
    "plans.plan.Plan.analyse",
    "looks took place when planned, and the plan's rule was followed",
    "assumes",
    short="planned looks",
)
WITHOUT_PROPENSITIES = Claim(
    "plans.characteristics.characteristics",
    "a look needs propensities, and rounds in which both arms could be drawn; {design} records no "
    "propensities, or assigns arms without drawing",
    "needs",
)
BOUNDED = Claim(
    "plans.stored_plans.outcomes_of",
    "rewards are missing, and looks have no bounds: they assume that rewards are missing at random",
    "needs",
)
DIFFERS = Claim(
    "plans.stored_plans.differs",
    "look {stage} recorded the decision {recorded!r}, but with the outcomes in the log, the decision is "
    "{decision!r} at look {found}: outcomes were amended later",
    "caution",
)
OVERRIDDEN = Claim(
    "inference.results.log_facts.evidence_told",
    "the trial was continued by hand after look {stage}, whose decision was {decision!r}",
    "caution",
)
ACCOUNTS = Claim(
    "inference.recommend.recommendation.recommend",
    "the trial's plan accounts for its looks",
    "reason",
)
USE_PLAN = Claim(
    "inference.results.estimates.Estimates.at_any_length",
    "use Plan.of(log).analyse(log) for the planned difference, or ConfidenceSequence, which is valid under "
    "any stopping rule",
    "advice",
)
FAILED = Claim(
    "plans.characteristics.characteristics",
    "{failed} of {trials} trials in {scenario!r} failed and are left out; the first error: {error:.200}",
    "caution",
)
ALL_FAILED = Claim(
    "plans.characteristics.simulated",
    "every simulated trial failed; the first error: {error:.200}",
    "needs",
)
NORMAL_LAW = Claim("plans.planning.sizes.sample_size", "the normal law of the looks", "phrase")
SIZE_BY_LAW = Claim(
    "plans.planning.sizes.sample_size",
    "Nothing adapts, so power and mean size follow from the joint normal distribution of the looks; the "
    "horizon is rounded up.",
    "note",
)
SIZE_BY_SIMULATION = Claim(
    "plans.planning.sizes.sample_size",
    "Looks keep their fractions of the horizon; each horizon uses the same streams of random numbers.",
    "note",
)
SIZE_NOT_REACHED = Claim(
    "plans.planning.sizes.sample_size",
    "The power is not reached at {longest:,} rounds, the longest horizon.",
    "note",
)
CALIBRATED = Claim(
    "plans.planning.calibration.calibrate",
    "The error rate was simulated in these environments, and is not known in others.",
    "caution",
)
BY_COUNTS = Claim(
    "plans.plan.Plan.analyse",
    "The p-value follows from the exact distribution of the counts, given the total number of successes; "
    "{looks} of {planned} looks were used, and {spending} spending controls the type I error at every "
    "constant rate.",
    "note",
    short="exact distribution of counts after {looks} of {planned} looks",
)
NO_COUNT_LIMITS = Claim(
    "plans.plan.Plan.analyse",
    "the exact distribution of counts tests a difference of 0, and gives no interval; the estimate is the "
    "difference of the sample proportions, not adjusted for the looks",
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
    "plans.characteristics.characteristics",
    "{scenario!r} has constant success rates: probabilities of stopping, sizes and bias are exact.",
    "note",
)
NORMAL_ONLY = Claim(
    "plans.planning.conditional.conditional_power",
    'conditional and predictive power use normal scores of one treatment: the plan must have law="z" (it has '
    "{law!r}) and one treatment",
    "needs",
)
NOT_UNDER_WAY = Claim(
    "plans.planning.conditional.conditional_power",
    "the trial must go on after a look that tested: the decision at the latest look is {decision}",
    "needs",
)
