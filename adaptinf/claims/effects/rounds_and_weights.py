"""Claims about which rounds are used for effects by group and by covariate, and their weights."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

EFFECT = Claim(
    "inference.effects.effect_methods.effect",
    "The effect is the mean reward of {treatment!r} minus that of {control!r}.",
    "target",
)

NEVER_BOTH = Claim(
    "inference.effects.group_question.weightable_rounds",
    "in each of the {n} rounds of {where}, one or both arms had propensity 0",
    "needs",
)
LACKS_BOTH_PROPENSITIES = Claim(
    "lacks_both_propensities",
    "weighting requires both arms' propensities, but only the chosen arm's was logged",
    "needs",
)
NOTHING_RANDOMISED = Claim(
    "inference.effects.group_question.randomised_rounds",
    "the log records neither propensities nor which rounds were randomised",
    "needs",
)
ESTIMATES_SHOW_NOTHING = Claim(
    "inference.effects.group_question.randomised_rounds",
    "constant assignment probabilities cannot be verified from estimated propensities",
    "needs",
)
PROPENSITIES_VARY = Claim(
    "inference.effects.group_question.randomised_rounds",
    "propensities vary within {groups}, so the difference in sample means can be biased",
    "needs",
)
MARK_THE_ROUNDS = Claim(
    "inference.effects.group_question.randomised_rounds",
    "an indicator column for the randomised rounds, supplied as rounds=",
    "advice",
)
KNOW_PROPENSITIES = Claim(
    "inference.effects.group_question.randomised_rounds",
    "the AIPW estimator with unit-clustered standard errors, if propensities are known",
    "advice",
)
ALL_ROUNDS = Claim(
    "inference.effects.group_question.weightable_rounds", "All {n} rounds of {where} are used.", "note"
)
CONSTANT_IN_GROUPS = Claim(
    "inference.effects.group_question.randomised_rounds", "Propensities are constant within groups.", "note"
)
CONSTANT_BY_ESTIMATES = Claim(
    "inference.effects.group_question.randomised_rounds",
    "Estimated propensities do not vary within groups, but the true propensities may.",
    "note",
)
MARKED = Claim(
    "inference.effects.group_question.randomised_rounds",
    "The estimate uses {where} ({n} of {all} rounds).",
    "note",
)
MARKED_VARY = Claim(
    "inference.effects.group_question.randomised_rounds",
    "Logged propensities vary within {groups} in the rounds selected by rounds=; the difference in "
    "means is valid only if the actual assignment probabilities were constant in these rounds.",
    "note",
)
CHOSEN_ALONE = Claim(
    "inference.effects.group_question.weightable_rounds",
    "The propensities of unchosen arms are not logged; the estimate assumes that neither arm ever had "
    "propensity 0.",
    "note",
)
WEIGHTABLE = Claim(
    "inference.effects.group_question.weightable_rounds", "The estimate uses {n} rounds from {where}.", "note"
)
LEFT_OUT = Claim(
    "inference.effects.group_question.weightable_rounds",
    "Rounds of {where} in which either arm had propensity 0, such as rounds after randomisation "
    "stopped, are excluded ({n} in total).",
    "note",
)

LAGGED = Claim(
    "lagged_by",
    "Weights are derived from {by}.",
    "note",
)

FEW_EFFECTIVE = Claim(
    "few_effective",
    "{terms}: confidence intervals may undercover, because one arm's effective sample size is only "
    "{least:.1f} (below {enough:g})",
    "caution",
)
TINY_PROPENSITIES = Claim(
    "tiny_propensities",
    "{term}: with propensities down to {least:.2g} and an effective number of rounds of {size:.1f}, the "
    "interval may severely undercover",
    "caution",
)
