"""Claims of a protocol's appendix: what a plan answers to the topics of the draft ICH E20 guideline."""

from __future__ import annotations

from adaptinf.claims.claim import Claim

_TOPICS, _PAGE = "plans.planning.protocol.Protocol.topics", "plans.planning.protocol.Protocol.to_markdown"
ADAPTATIONS = Claim(
    _TOPICS,
    "{design} assigns participants by its fixed rule; the trial may stop at {looks} planned looks, by the "
    "critical values above (futility: {futility})",
    "note",
)
LEVEL = Claim(
    _TOPICS,
    "nominal {alpha:g}; simulated at most {share:.4f} (95% limit {high:.4f}; {scenario}; scenarios "
    "without a difference: {scenarios})",
    "note",
)
LEVEL_NOT_SIMULATED = Claim(
    _TOPICS, "nominal {alpha:g}; no scenario without a difference was simulated", "caution"
)
POWER = Claim(
    _TOPICS,
    "simulated at least {share:.4f} (Monte Carlo standard error {error:.2g}; {scenario}; mean size "
    "{size:.1f} rounds)",
    "note",
)
BIAS = Claim(
    _TOPICS,
    "largest bias {bias:.4g} after the stop, of an estimate that ignores the looks {naive:.4g}; root mean "
    "squared error {rmse:.4g} ({scenario})",
    "note",
)
COVERAGE = Claim(
    _TOPICS,
    "nominal {nominal:g}; simulated at least {share:.4f} after the stop, of an interval that ignores the "
    "looks {naive:.4f} ({scenario})",
    "note",
)
JOINT_BIAS = Claim(
    _TOPICS,
    "largest bias {bias:.4g} of a treatment's estimate at the stop; root mean squared error {rmse:.4g} "
    "({arm}, {scenario})",
    "note",
)
JOINT_COVERAGE = Claim(
    _TOPICS,
    "nominal {nominal:g}; all simultaneous intervals together, simulated at least {share:.4f} ({scenario})",
    "note",
)
NO_INTERVAL = Claim(_TOPICS, "the test gives no interval", "missing")
STAGEWISE = Claim(
    _TOPICS,
    "median-unbiased estimate, interval and p-value by stage-wise ordering of the augmented "
    "inverse-propensity score",
    "note",
)
REPEATED = Claim(
    _TOPICS,
    "closed tests by the joint law of the treatments' scores, with simultaneous repeated intervals",
    "note",
)
BY_RANK = Claim(
    _TOPICS, "p-value by rank among replays of the design; the estimate is not adjusted for the looks", "note"
)
BY_COUNTS = Claim(
    _TOPICS,
    "p-value by the exact distribution of the counts; the estimate is not adjusted for the looks",
    "note",
)
DRIFT_CANCELS = Claim(
    _TOPICS,
    "drift common to both arms cancels in the score; the difference between the arms is assumed constant",
    "note",
)
DRIFT_ALLOWED = Claim(_TOPICS, "the test is exact under any drift if no arm has an effect on anyone", "note")
NO_DRIFT = Claim(
    _TOPICS, "success rates are assumed constant: under drift, the error rate is not controlled", "caution"
)
SENSITIVITY = Claim(
    _TOPICS,
    "if the difference changes, the estimate is an average over rounds, with weights that grow with the "
    "smaller of the two assignment probabilities",
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
    "critical values use the information observed at each look, and unused level is carried over; rounds "
    "after the stop are not used",
    "note",
)
BOUNDS = Claim(
    _PAGE,
    "Cumulative alpha spent at each look, and critical values if information is proportional to the number "
    "of rounds (distribution: {law}).",
    "note",
)
