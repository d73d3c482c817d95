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
