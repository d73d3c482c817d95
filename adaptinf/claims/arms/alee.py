"""Claims about adaptive linear estimating equations (ALEE) for arm means."""

from __future__ import annotations

from adaptinf.claims import contexts, stationarity
from adaptinf.claims.arms import arm_fits
from adaptinf.claims.claim import Claim, Part

UNDERCOVERS = Claim(
    "self_normalised",
    "self-normalised intervals may undercover: in simulations with equal arm means, coverage of nominal "
    "95% intervals was 93% (Thompson sampling, two arms), 94% (UCB, two arms), 87% (UCB, five arms) and "
    "89% (greedy)",
    "caution",
)
UNLESS_NOTHING_ADAPTED = Claim(
    "may_not_adapt",
    "If outcomes did not influence assignment, set adaptive=False. The {test} intervals are then valid, "
    "and are shorter than intervals that allow for adaptivity.",
    "advice",
    short="if outcomes did not influence assignment, adaptive=False gives shorter intervals",
)
"""The first line below the table of a fit."""

NEEDS = (Part("profile.context_refusal", "needs"), Part("profile.unit_refusal", "needs"))
REASONS = (
    Claim(
        "always",
        "propensities are not required, and intervals are valid regardless of how the choice of arms "
        "depends on earlier rewards",
        "reason",
    ),
    Claim("conservative", "standard errors are conservative", "reason"),
    Claim(
        "self_normalised",
        "self-normalised intervals are used, because they are shorter than intervals based on conservative "
        "standard errors",
        "reason",
    ),
)
NO_DRIFT = Claim(
    "always",
    "the mean and variance of each arm's rewards are constant (no drift)",
    "assumes",
    check="drift_found",
    scope=stationarity.TRENDS_ALONE,
    short="no drift in means or variances",
)
ASSUMES = (
    NO_DRIFT,
    contexts.NO_PART,
)
ROW_CAUTIONS = (UNDERCOVERS,)
"""Statements for a row of `recommend`, which are also made for a fit."""

FIT = (
    *ASSUMES,
    Claim(
        "always",
        "ALEE does not use propensities: the weight of an arm's i-th reward is a fixed function of i and the "
        "number of rounds.",
        "note",
    ),
    Claim(
        "conservative",
        "Standard errors equal the residual standard deviation divided by the sum of the weights. They are "
        "conservative, because the sum of the squared weights is less than 1.",
        "note",
    ),
    Claim(
        "self_normalised",
        "The standard error is sigma * sqrt(sum(w^2)) / sum(w), where w are the weights and sigma is the "
        "residual standard deviation.",
        "note",
    ),
    Claim(
        "propensities_unused",
        "The logged propensities vary but are not used. Estimates are valid if this variation is due to "
        "earlier rewards, but not if it is due to unlogged contexts.",
        "note",
    ),
    stationarity.NO_TREND,
    stationarity.MIX_MOVES,
    stationarity.UNTESTED,
    contexts.NEVER_RANDOM,
    UNDERCOVERS,
    *arm_fits.FIT,
)
"""Statements about a fit, in the order in which its table shows them."""
