"""Claims of a protocol's appendix: what a plan answers to the topics of the draft ICH E20 guideline."""

from __future__ import annotations

from adaptinf.claims.claim import Claim
from adaptinf.claims.logs.plans import UNADJUSTED

_TOPICS, _PAGE = "plans.planning.protocol.Protocol.topics", "plans.planning.protocol.Protocol.to_markdown"
ADAPTATIONS = Claim(
    _TOPICS,
    "{design} assigns participants by a prespecified rule; the trial may stop at any of {looks} planned "
    "looks, according to the critical values above (futility: {futility})",
    "note",
)
LEVEL = Claim(
    _TOPICS,
    "nominal {alpha:g}; largest simulated value: {share:.4f} (upper 95% limit {high:.4f}; {scenario}; "
    "scenarios without a difference: {scenarios})",
    "note",
)
LEVEL_NOT_SIMULATED = Claim(
    _TOPICS, "nominal {alpha:g}; no scenario without a difference was simulated", "caution"
)
POWER = Claim(
    _TOPICS,
    "lowest simulated power: {share:.4f} (Monte Carlo standard error {error:.2g}; {scenario}; mean sample "
    "size {size:.1f} rounds)",
    "note",
)
BIAS = Claim(
    _TOPICS,
    "largest bias after stopping: {bias:.4g} (for an estimate that ignores the looks, {naive:.4g}); root "
    "mean squared error {rmse:.4g} ({scenario})",
    "note",
)
COVERAGE = Claim(
    _TOPICS,
    "nominal {nominal:g}; lowest simulated coverage after stopping: {share:.4f} (for an interval that "
    "ignores the looks, {naive:.4f}; {scenario})",
    "note",
)
JOINT_BIAS = Claim(
    _TOPICS,
    "largest bias of any treatment's estimate when the trial stops: {bias:.4g}; root mean squared error "
    "{rmse:.4g} ({arm}, {scenario})",
    "note",
)
JOINT_COVERAGE = Claim(
    _TOPICS,
    "nominal {nominal:g}; lowest simulated joint coverage of the simultaneous intervals: {share:.4f} "
    "({scenario})",
    "note",
)
NO_INTERVAL = Claim(_TOPICS, "the test gives no interval", "missing")
STAGEWISE = Claim(
    _TOPICS,
    "median-unbiased estimate, interval and p-value from stage-wise ordering of augmented "
    "inverse-propensity-weighted scores",
    "note",
)
REPEATED = Claim(
    _TOPICS,
    "closed tests based on the joint distribution of the treatments' scores, with simultaneous repeated "
    "confidence intervals",
    "note",
)
BY_RANK = Claim(
    _TOPICS,
    "p-value from the rank of the trial among replays of the design; {estimate}",
    "note",
    phrases={"estimate": UNADJUSTED},
)
BY_COUNTS = Claim(
    _TOPICS,
    "exact p-value from the numbers of successes; {estimate}",
    "note",
    phrases={"estimate": UNADJUSTED},
)
DRIFT_CANCELS = Claim(
    _TOPICS,
    "common drift cancels in the score; the difference between arms is assumed constant",
    "note",
)
DRIFT_ALLOWED = Claim(
    _TOPICS,
    "under the null hypothesis that outcomes do not depend on the arm assigned, the test is exact "
    "whatever the drift",
    "note",
)
NO_DRIFT = Claim(
    _TOPICS, "success rates are assumed constant: under drift, the error rate is not controlled", "caution"
)
SENSITIVITY = Claim(
    _TOPICS,
    "if the difference varies over time, its average over rounds is estimated, with weights that "
    "increase with the smaller assignment probability in each round",
    "note",
)
SIMULATION = Claim(
    _TOPICS,
    "{trials:,} simulated trials in each of the scenarios {scenarios}; seed {seed}; adaptinf {version}; "
    "Monte Carlo errors are in the table",
    "note",
)
DEVIATIONS = Claim(
    _TOPICS,
    "critical values use the information observed at each look, and unspent alpha is carried over; rounds "
    "after the trial has stopped are not used",
    "note",
)
BOUNDS = Claim(
    _PAGE,
    "Cumulative alpha spent at each look, and critical values if information is proportional to the number "
    "of rounds (distribution: {law}).",
    "note",
)
