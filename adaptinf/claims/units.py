"""What is said of units with several rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

INDEPENDENT = Claim("profile.repeated_units", "units are independent", "assumes")
NO_CARRY_OVER = Claim(
    "profile.repeated_units",
    "a unit's reward depends on the arm of its round, not on those of earlier rounds (no carry-over)",
    "assumes",
)
DRAWN_ONCE = Claim(
    "profile.one_draw_a_unit",
    "each unit's arm was drawn once, and its scores need a draw in every round",
    "needs",
)
BY_UNIT = Claim("profile.repeated_units", "errors by unit", "reason")
NOT_BY_UNIT = Claim(
    "profile.repeated_units",
    "standard errors treat all rounds as independent, although units have several",
    "caution",
)
"""Of errors that ignore units with several rounds."""
OF_LOGGED_ROUNDS = Claim(
    "profile.repeated_units",
    "units have several rounds: the limits cover the mean expected reward of the logged rounds; for the "
    "population of units they are far too narrow",
    "caution",
)
"""Of a method that holds for the rounds of the log alone."""
INCOMPLETE = Claim(
    "incomplete_by_unit",
    "the model of which rewards are observed needs independent rounds, and units have several",
    "needs",
)
"""Why missing rewards and units with several rounds do not go together."""
OTHERS_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: other units' mean earlier reward with the arm, or while there is none with any arm; "
    "rounds before any of these have no weight.",
    "note",
)
LATE_MEAN = Claim(
    "inference.scores.by_unit.units.others_means",
    "Outcome model: the average reward that other units were known to have had with the arm by then, else "
    "with any arm; rounds with none known have no weight.",
    "note",
)
OWN_PAST = Claim(
    "inference.arms.circumstances.by_unit.fit_cautions",
    "the outcome model uses the unit's own earlier rounds, which makes errors by unit slightly too small; "
    "outcome='running-mean' leaves them out",
    "caution",
)

OWN_PAST_TELLS = Claim(
    "inference.arms.circumstances.by_unit.unit_scores",
    "one draw gave each unit its arm, and the unit's earlier rewards would reveal it to the model",
    "needs",
)
"""Why no regression on earlier rewards serves."""
ONE_UNIT = Claim(
    "inference.arms.circumstances.by_unit.fit_notes",
    "{arm}: only one unit had it, so it has no standard error.",
    "note",
)

DEPENDENT = Claim(
    "inference.validity.unit_facts.UnitFacts.unit_refusal",
    "{units} units have {rounds} rounds: those of one unit are dependent, and it needs independent ones",
    "needs",
)
"""Why a method that takes rounds to be independent does not serve."""

ERRORS = Claim(
    "counts",
    "Errors by unit, of {units} units in {rounds} rounds: they allow for any dependence between the "
    "rounds of a unit, not between units. Degrees of freedom: the effective number of units that had "
    "the arm, minus 1, or fewer where few rounds carry the estimate.",
    "note",
)
DRAWN_ONCE = Claim(
    "profile.drawn_once",
    "Each unit keeps its arm, with propensity 1 after its first round: the arm counts as drawn once per "
    "unit, with the propensity of the first round.",
    "note",
)
NOTES = (ERRORS, DRAWN_ONCE)
"""What errors by unit rest on."""
NO_INTERVAL = Claim(
    "inference.validity.units.event_gaps",
    "{terms}: no interval, with events in fewer than {fewest} units (an event is an outcome other than the "
    "usual one, or the rarer of two).",
    "note",
)

FEW = Claim(
    "few",
    "{units} units are few: below about {enough}, intervals by unit cover less than they promise",
    "caution",
)
EXACT_TEST = Claim("few_but_exact", "audit.randomization_test does not need many units", "caution")
COUNT_CAUTIONS = (FEW, EXACT_TEST)
"""Of the number of all units."""
FEW_WITH_ARM = Claim(
    "few_with_arm",
    "few units count for {terms}, whose intervals may be short",
    "caution",
)
FEW_WITH_EVENTS = Claim(
    "few_with_events",
    "fewer than {enough} units have an event for {terms}: the estimate and its standard error tend to be "
    "too small at once",
    "caution",
)
SKEWED = Claim(
    "skewed",
    "{terms}: few units count, and their mean rewards are skewed: intervals by unit may be too short",
    "caution",
)
SELDOM_DRAWN = Claim(
    "seldom_drawn",
    "one draw gives each of {units} units its arm, and at their smallest propensities fewer than {fewest} "
    "are expected to get {arms}: too few for intervals by unit",
    "caution",
)
TIED = Claim(
    "tied",
    "weights made from propensities make units depend on each other: where units differ, errors by unit are "
    "too small (variances .65 to .85 of the true ones in simulations); uniform weights avoid this",
    "caution",
)
CAUTIONS = (*COUNT_CAUTIONS, FEW_WITH_ARM, FEW_WITH_EVENTS, SKEWED, SELDOM_DRAWN, TIED)
"""Why errors by unit may be too small."""
