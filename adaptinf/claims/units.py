"""Claims about units with several rounds."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.rare_outcomes import UNCOMMON

INDEPENDENT = Claim("profile.repeated_units", "units are independent", "assumes", short="independent units")
NO_CARRY_OVER = Claim(
    "profile.repeated_units",
    "a unit's reward depends only on its current arm, not on its earlier arms (no carry-over)",
    "assumes",
    short="no carry-over",
)
NOT_DRAWN_BY_ROUND = Claim(
    "profile.one_draw_a_unit",
    "each unit was randomised only once, but the method requires randomisation in every round",
    "needs",
)
BY_UNIT = Claim(
    "profile.repeated_units", "cluster-robust standard errors allow for dependence within units", "reason"
)
NOT_BY_UNIT = Claim(
    "profile.repeated_units",
    "rounds from the same unit are treated as independent, so standard errors may be too small",
    "caution",
)
"""A claim about errors that ignore repeated units."""
OF_LOGGED_ROUNDS = Claim(
    "profile.repeated_units",
    "intervals apply only to the average expected reward in the logged rounds; for the population of "
    "units, they may be far too narrow, because of dependence within units",
    "caution",
)
"""A claim for a method that is valid only for the rounds of the log."""
INCOMPLETE = Claim(
    "incomplete_by_unit",
    "the model for missing rewards requires independent rounds, but some units appear in more than one round",
    "needs",
)
"""Why missing rewards and units with several rounds cannot be combined."""
OTHERS_MEAN = Claim(
    "inference.scores.unit_errors.others_means",
    "The outcome model is the mean of other units' earlier rewards under the same arm, or under any arm "
    "if there are none. Rounds without an earlier reward from another unit have weight 0.",
    "note",
)
LATE_MEAN = Claim(
    "inference.scores.unit_errors.others_means",
    "Predictions use the rewards of other units that are already available: their mean in the same arm "
    "or, failing that, in all arms. Rounds before the first available reward have weight 0.",
    "note",
)
OWN_PAST = Claim(
    "inference.arms.data.arms_by_unit.fit_cautions",
    "the outcome model is fitted partly to each unit's own earlier rounds, so clustered standard errors "
    "may be slightly too small (outcome='running-mean' excludes those rounds)",
    "caution",
)

OWN_PAST_TELLS = Claim(
    "inference.arms.data.arms_by_unit.unit_scores",
    "arms are fixed within units, so an outcome model that uses a unit's earlier rewards would depend "
    "on that unit's arm",
    "needs",
)
"""Why no regression on earlier rewards can be used."""
ONE_UNIT = Claim(
    "inference.arms.data.arms_by_unit.fit_notes",
    "Only one unit received arm {arm}, so its mean has no standard error.",
    "missing",
)

DEPENDENT = Claim(
    "inference.validity.unit_facts.UnitFacts.unit_refusal",
    "rounds must be independent, but the {rounds} rounds come from only {units} units and may be "
    "dependent within units",
    "needs",
)
"""Why a method that treats rounds as independent cannot be used."""

ERRORS = Claim(
    "counts",
    "Standard errors are clustered by unit ({units} clusters, {rounds} rounds). The degrees of freedom "
    "are each arm's effective number of units minus 1, and are reduced further if a few rounds dominate.",
    "note",
    short="errors clustered by unit",
)
DRAWN_ONCE = Claim(
    "profile.drawn_once",
    "Each unit stays in its first-round arm with probability 1, so it counts as a single draw with its "
    "first-round propensity.",
    "note",
)
NOTES = (ERRORS, DRAWN_ONCE)
"""Conditions for clustered errors."""
NO_INTERVAL = Claim(
    "inference.validity.units.event_gaps",
    "No interval is available for {terms}, because fewer than {fewest} units have {uncommon} (number of "
    "such units in parentheses).",
    "missing",
    phrases={"uncommon": UNCOMMON},
)

FEW = Claim(
    "few",
    "cluster-robust intervals may undercover, because the number of units is small ({units}; about "
    "{enough} or more are recommended)",
    "caution",
)
EXACT_TEST = Claim(
    "few_but_exact",
    "audit.randomization_test is preferable to large-sample tests, because it is valid for any number "
    "of units",
    "caution",
)
COUNT_CAUTIONS = (FEW, EXACT_TEST)
"""Text with the number of all units."""
FEW_WITH_ARM = Claim(
    "few_with_arm",
    "few units contribute to {terms} (effective number of units in parentheses), so intervals may undercover",
    "caution",
)
FEW_WITH_EVENTS = Claim(
    "few_with_events",
    "fewer than {enough} units have {uncommon} for {terms} (numbers in parentheses), so estimates may "
    "be too close to that value, and their standard errors too small",
    "caution",
    phrases={"uncommon": UNCOMMON},
)
SKEWED = Claim(
    "skewed",
    "there are few units, and unit-level mean rewards are skewed for {terms}, so cluster-robust "
    "intervals may undercover",
    "caution",
)
SELDOM_DRAWN = Claim(
    "seldom_drawn",
    "intervals may undercover: each of {units} units was randomised only once, and for some arms the "
    "expected number of units, based on the arm's smallest propensity, is below {fewest}: {arms}",
    "caution",
)
TIED = Claim(
    "tied",
    "propensity-based weights induce dependence between units, so unit-clustered variance estimates may "
    "be too small (in simulations, 65% to 85% of the true variance); use weights='uniform' to avoid "
    "this problem",
    "caution",
)
CAUTIONS = (*COUNT_CAUTIONS, FEW_WITH_ARM, FEW_WITH_EVENTS, SKEWED, SELDOM_DRAWN, TIED)
"""Why clustered errors may be too small."""
