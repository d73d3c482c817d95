"""What is said of effects within groups, and by covariates: which rounds serve, and how they are weighted."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

EFFECT = Claim("inference.effects.record.effect", "Effect of {treatment!r} over {control!r}.", "target")

# Which rounds serve

NEVER_BOTH = Claim(
    "inference.effects.rounds.weightable_rounds",
    "both arms were possible in none of the {n} rounds of {where}",
    "needs",
)
LACKS_BOTH_PROPENSITIES = Claim(
    "lacks_both_propensities",
    "they need the propensities of both arms, and the log records only that of the chosen arm",
    "needs",
)
NOTHING_RANDOMISED = Claim(
    "inference.effects.rounds.randomised_rounds",
    "nothing says which rounds were randomised, or with what propensities",
    "needs",
)
ESTIMATES_SHOW_NOTHING = Claim(
    "inference.effects.rounds.randomised_rounds",
    "estimated propensities cannot show that assignment probabilities were fixed",
    "needs",
)
PROPENSITIES_VARY = Claim(
    "inference.effects.rounds.randomised_rounds",
    "propensities vary within {groups}, and whatever changed them biases plain means",
    "needs",
)
MARK_THE_ROUNDS = Claim(
    "inference.effects.rounds.randomised_rounds",
    "rounds= with a column that marks the randomised rounds",
    "advice",
)
KNOW_PROPENSITIES = Claim(
    "inference.effects.rounds.randomised_rounds",
    "aipw with errors by unit, if propensities are known",
    "advice",
)
ALL_ROUNDS = Claim("inference.effects.rounds.weightable_rounds", "Rounds: all {n} of {where}.", "note")
CONSTANT_IN_GROUPS = Claim(
    "inference.effects.rounds.randomised_rounds", "Propensities do not vary within groups.", "note"
)
CONSTANT_BY_ESTIMATES = Claim(
    "inference.effects.rounds.randomised_rounds",
    "Propensities are estimates, so it is not certain that they are constant within groups.",
    "note",
)
MARKED = Claim("inference.effects.rounds.randomised_rounds", "Rounds: {where}, {n} of {all}.", "note")
MARKED_VARY = Claim(
    "inference.effects.rounds.randomised_rounds",
    "In these rounds the logged propensities vary within {groups}: the difference in means is valid only "
    "if every marked round drew its arm with fixed probabilities.",
    "note",
)
CHOSEN_ALONE = Claim(
    "inference.effects.rounds.weightable_rounds",
    "Propensities of arms that were not chosen are unknown: the estimate assumes that neither arm ever had "
    "propensity 0.",
    "note",
)
WEIGHTABLE = Claim("inference.effects.rounds.weightable_rounds", "Rounds: {n} of {where}.", "note")
LEFT_OUT = Claim(
    "inference.effects.rounds.weightable_rounds",
    "Left out: {n} rounds of {where} where one of the two arms had propensity 0, such as the rounds "
    "after randomisation stopped. They cannot be weighted.",
    "note",
)

# How they are weighted

LAGGED = Claim(
    "lagged_by",
    "Weights are made from {by}.",
    "note",
)

# How much they tell

FEW_EFFECTIVE = Claim(
    "few_effective",
    "{terms}: intervals may be short, as an arm has the precision of {least:.1f} equally weighted "
    "rewards, fewer than {enough:g}",
    "caution",
)
TINY_PROPENSITIES = Claim(
    "tiny_propensities",
    "{term}: with a propensity of {least:.2g} the estimate rests on a few rewards (effective number "
    "{size:.1f}), and intervals may be much too short",
    "caution",
)
