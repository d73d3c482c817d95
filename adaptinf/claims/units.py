"""What is said of units with several rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim, Part

INDEPENDENT = Claim("profile.repeated_units", "units are independent", "assumes")
NO_CARRY_OVER = Claim(
    "profile.repeated_units",
    "a unit's reward depends on the arm of its round, not on those of its earlier rounds",
    "assumes",
)
BY_UNIT = Claim("profile.repeated_units", "errors by unit", "reason")
NOT_BY_UNIT = Claim(
    "profile.repeated_units",
    "rounds of one unit depend on each other, and the errors shown take all rounds to be independent",
    "caution",
)
"""Of errors that ignore units with several rounds."""
OF_LOGGED_ROUNDS = Claim(
    "profile.repeated_units",
    "units have several rounds: what is covered is the mean of the logged rounds' own expected rewards, not "
    "that of the population of units, for which the limits are far too close",
    "caution",
)
"""Of a method that holds for the rounds of the log alone."""
INCOMPLETE = Claim(
    "profile.repeated_units",
    "the share of rewards observed takes rounds to be independent, and units have several",
    "needs",
)
"""Why missing rewards and units with several rounds do not go together."""
OTHERS_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: the arm's mean over earlier rounds of other units, before there are any the mean of all "
    "of their rewards; rounds before any reward of another unit have no weight.",
    "note",
)
LATE_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: the arm's mean over rewards of other units that were known by then, before there are any "
    "the mean of all that were; rounds before any was known have no weight.",
    "note",
)
OWN_PAST = Claim(
    "inference.arms.circumstances.by_unit.fit_cautions",
    "the outcome model uses a unit's own earlier rounds, with which errors by unit are a little too small; "
    "outcome='running-mean' leaves them out",
    "caution",
)

DEPENDENT = Claim(
    "inference.validity.unit_facts.UnitFacts.unit_refusal",
    "{units} units have {rounds} rounds: rounds of one unit depend on each other, and it takes all rounds to "
    "be independent",
    "needs",
)
"""Why a method that takes rounds to be independent does not serve."""

NOTES = (
    Claim(
        "counts",
        "Errors by unit: {units} units in {rounds} rounds. Rounds of one unit may depend on each other, "
        "units are taken to be independent. Degrees of freedom: the effective number of units that had the "
        "arm, minus 1, or less where few rounds carry the estimate.",
        "note",
    ),
    Part("no_carry_over", "note"),
    Claim(
        "profile.drawn_once",
        "Each unit keeps its arm, with propensity 1 after its first round: the arm is taken to be drawn once "
        "a unit, and its propensity is that of the first round.",
        "note",
    ),
)
"""What errors by unit rest on."""
NO_INTERVAL = Claim(
    "inference.validity.units.event_gaps",
    "{terms}: no interval, as fewer than {fewest} units have an event (an outcome other than the usual one; "
    "of two outcomes, the rarer).",
    "note",
)

FEW = Claim(
    "few",
    "{units} units are few: below about {enough} intervals by unit cover less than they promise",
    "caution",
)
FEW_BUT_EXACT = Claim(
    "few_but_exact",
    "{units} units are few: below about {enough} intervals by unit cover less than they promise; "
    "audit.randomization_test needs no large numbers",
    "caution",
)
COUNT_CAUTIONS = (FEW, FEW_BUT_EXACT)
"""Of the number of all units."""
FEW_WITH_ARM = Claim(
    "few_with_arm",
    "few units count for {terms}: intervals by unit cover less than they promise",
    "caution",
)
FEW_WITH_EVENTS = Claim(
    "few_with_events",
    "fewer than {enough} units have an event for {terms}: estimate and standard error are too small together",
    "caution",
)
SKEWED = Claim(
    "skewed",
    "{terms}: the units' mean rewards are skewed, and few units count: intervals by unit may be too short",
    "caution",
)
SELDOM_DRAWN = Claim(
    "seldom_drawn",
    "one draw gives each of {units} units its arm, and at their smallest propensity fewer than {fewest} "
    "units are expected to get {arms}: intervals by unit may be too short",
    "caution",
)
TIED = Claim(
    "tied",
    "weights made from propensities tie units together through later weights: where units differ, errors "
    "by unit are too small (simulated variances are .65 to .85 of the true ones); uniform weights do not do "
    "that",
    "caution",
)
CAUTIONS = (*COUNT_CAUTIONS, FEW_WITH_ARM, FEW_WITH_EVENTS, SKEWED, SELDOM_DRAWN, TIED)
"""Why errors by unit may be too small."""
