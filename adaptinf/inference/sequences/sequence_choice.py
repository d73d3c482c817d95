"""The confidence sequences that a log supports, checked before any computation."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from adaptinf.claims import propensities, units
from adaptinf.claims import sequences as claims
from adaptinf.claims.contexts import NO_PART
from adaptinf.claims.data import availability
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.sequences.common_rounds import common_rounds, within
from adaptinf.inference.sequences.sequence_methods import METHODS
from adaptinf.inference.sequences.sequence_records import Quantity, SequenceMethod, Settings
from adaptinf.inference.sequences.sequence_sums import check_sums
from adaptinf.inference.validity.methods import refusal
from adaptinf.inference.validity.profile import LogProfile
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import (
    COUNT,
    POSITIVE,
    SHARE,
    Count,
    OneOf,
    check_alpha,
    refuse,
)
from adaptinf.typing import IntArray

ESTIMATORS = ("sample-mean", "ipw", "aipw")
# The defaults are fixed numbers, because values chosen after seeing results would invalidate the sequence.
_T_OPT, _START = 1000, 100
# A floor and propensities read from a file may differ in the last decimals.
_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments that a user gave to `fit`."""

    method: Any
    alpha: Any
    estimator: Any = None
    sigma: Any = None
    floor: Any = None
    t_opt: Any = None
    start: Any = None
    stationary: bool = False


def settle(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> Settings:
    """Check the request against the log, and determine the settings."""
    try:
        return settled(profile, quantities, asked)
    except InvalidForLog as error:
        ways = [*error.alternatives, *_alternatives(profile, quantities, asked)]
        raise InvalidForLog(error.method, error.reason, ways) from None


def _alternatives(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> list[str]:
    """The sequences that are available, in an order that starts with those that use the same method."""
    same, others = [], []
    for method in dict.fromkeys((asked.method, *(one.name for one in METHODS.values() if one.offered))):
        for scores in ESTIMATORS:
            if not _runs(profile, quantities, Request(method, asked.alpha, scores)):
                continue
            if method == asked.method:
                same.append(f"estimator={scores!r}")
            else:
                others.append(f"method={method!r}, estimator={scores!r}")
    return [*same, *others[:3]]


def _runs(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> bool:
    try:
        return not refusal(settled, profile, quantities, asked)
    except ParameterError:
        return False


def settled(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> Settings:
    """Like `settle`, without suggesting alternatives."""
    policy = not quantities[0].codes
    _check_arguments(asked, policy)
    method, sigma, floor = METHODS[asked.method], asked.sigma, asked.floor
    chosen = _estimator(profile, quantities, asked, policy)
    if sigma is not None and chosen != "sample-mean":
        problem = f"sigma describes rewards, but the scores of {chosen} are on another scale: omit it"
        if asked.estimator is None and _runs(
            profile, quantities, Request(asked.method, asked.alpha, "sample-mean", sigma)
        ):
            problem += ", or use estimator='sample-mean' if contexts did not affect the choice"
        raise ParameterError("ConfidenceSequence.fit", [problem])
    if profile.sums is not None:
        check_sums(method, chosen, floor)
    if chosen != "sample-mean":
        _check_propensities(profile, quantities, method, chosen, floor)
    low, high = _range(profile, quantities, asked)
    if method.two_valued:
        _check_two_values(profile, method, chosen, low, high)
    bounded = math.isfinite(high)
    return Settings(
        method=method,
        estimator=chosen,
        alpha=float(asked.alpha),
        sigma=sigma,
        floor=floor,
        t_opt=float(_T_OPT if asked.t_opt is None else asked.t_opt),
        start=_START if asked.start is None else int(asked.start),
        low=low if bounded else 0.0,
        width=high - low if bounded else 1.0,
        bounded=bounded,
    )


def _check_arguments(asked: Request, policy: bool) -> None:
    method, estimator = asked.method, asked.estimator
    sigma, floor, t_opt, start = asked.sigma, asked.floor, asked.t_opt, asked.start
    problems = OneOf(*METHODS)("method", method)
    own = None if problems else METHODS[method].options
    if estimator is not None:
        problems += OneOf(*ESTIMATORS)("estimator", estimator)
    if policy and estimator == "sample-mean":
        problems.append("a policy's value requires scores: estimator must be ipw or aipw, got 'sample-mean'")
    if sigma is not None:
        problems += POSITIVE("sigma", sigma)
        if own is not None and "sigma" not in own:
            problems.append(f"sigma applies to the normal mixture, not to {method}")
    if floor is not None:
        problems += SHARE("floor", floor)
        if estimator == "sample-mean":
            problems.append("floor bounds propensities, which sample means do not use: omit it")
    if t_opt is not None:
        problems += COUNT("t_opt", t_opt)
        if own is not None and "t_opt" not in own:
            problems.append(f"t_opt applies to mixtures and the asymptotic sequence, not to {method}")
    if start is not None:
        problems += Count(2)("start", start)
        if own is not None and "start" not in own:
            problems.append(f"start applies to the asymptotic sequence, not to {method}")
    try:
        check_alpha("ConfidenceSequence.fit", asked.alpha)
    except ParameterError as error:
        problems += error.problems
    refuse("ConfidenceSequence.fit", problems)


def _estimator(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request, policy: bool) -> str:
    estimator = asked.estimator
    if policy:
        return str(estimator or "ipw")
    if estimator in ("ipw", "aipw"):
        return str(estimator)
    if (
        estimator is None
        and len(quantities[0].codes) > 1
        and (scores := _without_drift(profile, quantities, asked))
    ):
        return scores
    if profile.context_refusal:
        if estimator is None and profile.knows_propensities and not profile.deciding_context:
            return "ipw"
        raise InvalidForLog("sample-mean", profile.context_refusal, [profile.in_place_of_means])
    if profile.repeated_units:
        if estimator is None and profile.knows_propensities:
            return "ipw"
        raise InvalidForLog("sample-mean", profile.unit_refusal, [])
    if estimator is None and not profile.context_free and _serve(profile, quantities):
        return "ipw"
    return "sample-mean"


def _without_drift(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> str:
    """Kind of scores that is not affected by drift common to both arms of a contrast; empty if none is."""
    if asked.stationary or asked.sigma is not None or profile.deciding_context:
        return ""
    if not all(profile.pulls[code] for one in quantities for code in one.codes):
        return ""
    if (found := profile.propensities_found) is not None and found.contradicted:
        return ""
    scores = (replace(asked, estimator=one) for one in ("aipw", "ipw"))
    return next((one.estimator for one in scores if _runs(profile, quantities, one)), "")


def _serve(profile: LogProfile, quantities: tuple[Quantity, ...]) -> bool:
    """Whether the propensities are those of the design and positive for the arms of all quantities."""
    return not refusal(_check_scores, profile, quantities, "")


def _range(profile: LogProfile, quantities: tuple[Quantity, ...], asked: Request) -> tuple[float, float]:
    log, method = profile.log, asked.method
    if log.reward_range is None or not np.all(np.isfinite(log.reward_range)):
        if not METHODS[method].anytime or asked.sigma is not None:
            return 0.0, math.inf
        ways: list[str] = [claims.RANGE_BY_NATURE()]
        if _runs(profile, quantities, Request("normal-mixture", asked.alpha, "sample-mean", sigma=1.0)):
            ways.append(claims.KNOWN_SCALE())
        raise InvalidForLog(f"the {method} sequence", claims.BOUNDS_NEEDED(), ways)
    low, high = log.reward_range
    if profile.sums is not None:  # Ranges of sums were checked when the sums were read.
        return float(low), float(high)
    outside = (log.arrays.reward < low) | (log.arrays.reward > high)
    if not np.any(outside):
        return float(low), float(high)
    raise InvalidForLog(
        f"the {method} sequence",
        claims.OUTSIDE_RANGE(outside=int(outside.sum()), low=low, high=high),
        [
            "a log with a reward_range that includes all rewards",
            "a log without reward_range, with method='asymptotic'",
        ],
    )


def _check_two_values(
    profile: LogProfile, method: SequenceMethod, estimator: str, low: float, high: float
) -> None:
    reason = ""
    if estimator != "sample-mean":
        reason = claims.NO_COUNTS(estimator=estimator)
    elif not profile.all_at(low, high):
        reason = claims.NOT_AT_ENDS(low=low, high=high)
    if reason:
        raise InvalidForLog(f"the {method.name} sequence", reason, [])


def _check_propensities(
    profile: LogProfile,
    quantities: tuple[Quantity, ...],
    method: SequenceMethod,
    estimator: str,
    floor: float | None,
) -> None:
    subject = f"the {method.name} sequence on {estimator} scores"
    _check_scores(profile, quantities, subject)
    for part, quantity in (within(profile, one) for one in quantities):
        if method.bounds(estimator) and floor is None:
            _check_predictable(part, quantity, subject)
        if floor is not None:
            _check_floor(part.log, quantity, floor)


def _check_scores(profile: LogProfile, quantities: tuple[Quantity, ...], subject: str) -> None:
    if not profile.knows_propensities:
        raise InvalidForLog(subject, propensities.NEEDED(), [])
    if profile.estimated:
        raise InvalidForLog(subject, claims.ESTIMATES(), [])
    if profile.one_draw_a_unit:
        raise InvalidForLog(subject, units.NOT_DRAWN_BY_ROUND(), [])
    for quantity in quantities:
        keep = common_rounds(profile, quantity)
        if keep is not None and not keep.any():
            raise InvalidForLog(subject, availability.NEVER_TOGETHER(**_never(profile, quantity)), [])
        if not quantity.codes:
            _check_positive(profile, quantity, subject)


def _never(profile: LogProfile, quantity: Quantity) -> dict[str, Any]:
    """The arms that were never all available simultaneously, and the one that was available least often."""
    worst = max(quantity.among, key=lambda code: profile.impossible[code])
    arms = "the two arms" if len(quantity.codes) > 1 else "the requested arms"
    rounds = {"n": int(profile.impossible[worst]), "rounds": profile.log.n_rounds}
    return {"arms": arms, "arm": profile.log.arms[worst], **rounds}


def _check_positive(profile: LogProfile, policy: Quantity, subject: str) -> None:
    log, used = profile.log, policy.weights.arms != 0.0
    arrays = log.arrays
    known = profile.partial_propensities if arrays.propensities is None else arrays.propensities
    if known is not None:
        impossible = used & (known <= 0.0)
    else:
        assert arrays.propensity is not None
        others = arrays.action[:, None] != np.arange(log.n_arms)
        impossible = used & others & (arrays.propensity >= 1.0)[:, None]
    if np.any(impossible):
        rounds = np.flatnonzero(impossible.any(axis=1))
        arm = log.arms[int(np.argmax(impossible[rounds[0]]))]
        reason = claims.IMPOSSIBLE(arm=arm, without=len(rounds), rounds=log.n_rounds)
        raise InvalidForLog(subject, reason, [])


def _check_predictable(profile: LogProfile, quantity: Quantity, subject: str) -> None:
    log, ways = profile.log, [claims.GUARANTEED_FLOOR()]
    if log.arrays.propensities is None:
        raise InvalidForLog(subject, propensities.EVERY_ONE_NEEDED(), ways)
    if not np.all(profile.fixed_before_contexts[list(quantity.codes or range(log.n_arms))]):
        # Bets must depend on the past only, which does not include the context of the same round; contexts
        # that are not logged affect propensities all the same.
        late = claims.KNOWN_TOO_LATE if log.context else claims.UNLOGGED_TOO_LATE
        if not profile.decides_by_context:
            ways.append(claims.STATED_WITHOUT_CONTEXTS(so=NO_PART()))
        raise InvalidForLog(subject, late(), ways)
    if quantity.weights.by_context and np.any(log.arrays.propensities <= 0.0):
        raise InvalidForLog(subject, claims.CHANGING_POLICY(), [])


def _check_floor(log: AdaptiveLog, quantity: Quantity, floor: float) -> None:
    arrays = log.arrays
    assert arrays.propensity is not None
    weights = quantity.weights
    used: IntArray = np.array(quantity.codes, dtype=np.int64)
    if not quantity.codes:
        used = np.flatnonzero(weights.by_context | np.any(weights.arms != 0.0, axis=0))
    if arrays.propensities is not None:
        lowest = arrays.propensities[:, used].min(axis=1)
    else:
        lowest = np.where(np.isin(arrays.action, used), arrays.propensity, 1.0)
    smallest = float(lowest.min(initial=1.0))
    if smallest < floor * (1.0 - _TOLERANCE):
        problem = (
            f"floor must hold in every round, but the log has a propensity of {smallest:g}, below floor = "
            f"{floor:g}"
        )
        raise ParameterError("ConfidenceSequence.fit", [problem])
    at = np.flatnonzero(lowest == floor)
    if len(at) == 1 and at[0] < log.n_rounds - 1:
        problem = (
            f"floor = {floor:g} is the smallest propensity of this log, reached only once, in the middle, "
            f"so it seems to be fitted to the log, and a fitted floor is not a bound. Give the floor that "
            f"the design guaranteed in advance "
            "(if it equals this number, give a slightly smaller one)"
        )
        raise ParameterError("ConfidenceSequence.fit", [problem])
