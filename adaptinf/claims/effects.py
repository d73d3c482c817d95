"""What is said of effects within groups, and by covariates: which rounds serve, and how they are weighted."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

EFFECT = Claim("inference.effects.record.effect", "Effect of {treatment!r} over {control!r}.", "target")

# Which rounds serve

NO_PROPENSITIES = Claim(
    "inference.effects.rounds.weightable_rounds",
    "it divides by propensities, and the log has none",
    "needs",
)
NEVER_BOTH = Claim(
    "inference.effects.rounds.weightable_rounds",
    "in none of the {n} rounds of {where} could both arms have been chosen",
    "needs",
)
LACKS_BOTH_PROPENSITIES = Claim(
    "lacks_both_propensities",
    "they need both arms' propensities at every round, and the log has the chosen arm's alone",
    "needs",
)
NOTHING_RANDOMISED = Claim(
    "inference.effects.rounds.randomised_rounds",
    "it says neither which rounds were randomised nor with which propensities",
    "needs",
)
ESTIMATES_SHOW_NOTHING = Claim(
    "inference.effects.rounds.randomised_rounds",
    "its propensities are estimates, which cannot show that arms were drawn with fixed probabilities",
    "needs",
)
PROPENSITIES_VARY = Claim(
    "inference.effects.rounds.randomised_rounds",
    "the propensities vary within {groups}, so plain means are biased by what moved them",
    "needs",
)
MARK_THE_ROUNDS = Claim(
    "inference.effects.rounds.randomised_rounds",
    "rounds= with a column that marks the rounds whose arm was drawn at random",
    "advice",
)
CONSTANT_IN_GROUPS = Claim(
    "inference.effects.rounds.randomised_rounds",
    "Rounds: all {n} of {where}; their propensities are constant within each group.",
    "note",
)
CONSTANT_BY_ESTIMATES = Claim(
    "inference.effects.rounds.randomised_rounds",
    "The propensities were estimated: their error is not in the standard errors.",
    "note",
)
MARKED = Claim("inference.effects.rounds.randomised_rounds", "Rounds: {where}, {n} of {all}.", "note")
MARKED_VARY = Claim(
    "inference.effects.rounds.randomised_rounds",
    "The logged propensities vary over these rounds within {groups}: the difference in means is valid only "
    "if a marked round draws its arm with fixed probabilities.",
    "note",
)
CHOSEN_ALONE = Claim(
    "inference.effects.rounds.weightable_rounds",
    "Rounds: all {n} of {where}. Only the chosen arm's propensity is known: the estimate rests on the other "
    "arms never having had propensity 0.",
    "note",
)
WEIGHTABLE = Claim("inference.effects.rounds.weightable_rounds", "Rounds: {n} of {where}.", "note")
LEFT_OUT = Claim(
    "inference.effects.rounds.weightable_rounds",
    "Left out: {n} rounds of {where} in which one of the two arms had propensity 0 (such as those after the "
    "randomised stretch, which all get one arm). Nothing can be weighted there.",
    "note",
)

# How they are weighted

LAGGED = Claim("lagged_by", "The weights are by {by}.", "note")

# How much they tell

FEW_EFFECTIVE = Claim(
    "few_effective",
    "{terms}: an arm is worth {least:.1f} rewards of equal weight, below {enough:g}: intervals may be short",
    "caution",
)
TINY_PROPENSITIES = Claim(
    "tiny_propensities",
    "{term}: smallest propensity {least:.2g}, effective sample size {size:.1f}; a few rewards carry the "
    "estimate, intervals may be far too short",
    "caution",
)
