"""Confidence sequences: intervals that are valid at all rounds simultaneously, under any adaptive rule.

References
----------
Waudby-Smith, Ramdas (2024), "Estimating means of bounded random variables by betting". Waudby-Smith, Wu,
Ramdas, Karampatziakis, Mineiro (2024), "Anytime-valid off-policy inference for contextual bandits". Howard,
Ramdas, McAuliffe, Sekhon (2021), "Time-uniform, nonparametric, nonasymptotic confidence sequences".
Robbins (1970), "Statistical methods related to the law of the iterated logarithm".
Waudby-Smith, Arbour, Sinha, Kennedy, Ramdas (2024), "Time-uniform central limit theory and asymptotic
confidence sequences".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from adaptinf.claims import sequences as claims
from adaptinf.claims import under_table
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms.choice import arm_codes
from adaptinf.inference.inputs.arguments import require_log
from adaptinf.inference.inputs.rounds import marked_log
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.inference.scores.inverse import indicators, predictions
from adaptinf.inference.scores.means import effective_size
from adaptinf.inference.sequences.bounded_scores import (
    arm_scores,
    augmented_scores,
    inverse_scores,
    running_outcomes,
    score_floors,
)
from adaptinf.inference.sequences.common_rounds import common_rounds, within
from adaptinf.inference.sequences.sequence_choice import Request, settle
from adaptinf.inference.sequences.sequence_facts import FitFacts
from adaptinf.inference.sequences.sequence_records import Quantity, Scores, Settings, Weights
from adaptinf.inference.sequences.sequence_results import SequenceResults
from adaptinf.inference.sequences.sequence_sums import batch_track, look_rounds
from adaptinf.inference.sequences.tracks import DifferenceTrack, SequenceReference, SingleTrack, Track
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import FINITE, FLAG, OneOf, check, number_array, refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.typing import FloatArray, IntArray


def build_track(profile: LogProfile, quantity: Quantity, settings: Settings) -> tuple[Track, float, float]:
    """The sequence for one quantity, the standard error, and the effective number of rewards."""
    keep = None if settings.estimator == "sample-mean" else common_rounds(profile, quantity)
    if keep is None:
        return _track_of_all(profile, quantity, settings)
    track, std_error, size = _track_of_all(*within(profile, quantity), settings)
    assert isinstance(track, SingleTrack)
    counts = np.concatenate([[0], track.counts])[np.cumsum(keep)]
    return replace(track, counts=counts), std_error, size


def _track_of_all(profile: LogProfile, quantity: Quantity, settings: Settings) -> tuple[Track, float, float]:
    """The results of `build_track` for a quantity if all of its arms could be chosen in every round."""
    if profile.sums is not None:
        return batch_track(profile.sums.cells, quantity, settings)
    log = profile.log
    reward = (log.arrays.reward - settings.low) / settings.width
    mirror = 1.0 if settings.bounded else 0.0
    if settings.estimator == "sample-mean":
        scores = [arm_scores(log.arrays.action, reward, code, mirror) for code in quantity.codes]
        tracks = [_track(x, _ordinals(len(x.lower)), settings, settings.low, settings.width) for x in scores]
        spread = [_std_error(x.lower) * settings.width for x in scores]
        pulls = float(min(len(x.lower) for x in scores))
        if len(tracks) == 1:
            return tracks[0], spread[0], pulls
        return DifferenceTrack(*tracks), math.hypot(*spread), pulls
    weights = quantity.weights
    # Rewards without bounds are measured from the first one, so results do not depend on their origin.
    start = reward[0] if settings.estimator == "aipw" and not settings.bounded else 0.0
    own = _propensity_scores(log, reward - start, weights, settings)
    total = weights.positive - weights.negative
    span = (weights.positive + weights.negative) if settings.bounded else 1.0
    origin = (settings.low + start) * total - (settings.width * weights.negative if settings.bounded else 0.0)
    clock = _rewards_used(log, quantity)[-len(own.lower) :]
    track = _track(own, clock, settings, origin, settings.width * span)
    middle = 0.5 * (own.lower + mirror - own.upper)
    return track, _std_error(middle) * settings.width * span, _effective_size(log, quantity)


def _propensity_scores(log: AdaptiveLog, reward: FloatArray, weights: Weights, settings: Settings) -> Scores:
    action, propensity = log.arrays.action, log.arrays.propensity
    assert propensity is not None
    if settings.method.bets and settings.estimator == "ipw":
        return inverse_scores(action, reward, propensity, weights)
    if settings.estimator == "aipw" and not settings.bounded:
        return _unbounded_scores(log, reward, weights)
    if settings.estimator == "aipw":
        outcome = running_outcomes(action, reward, log.n_arms)
    else:
        outcome = np.full((log.n_rounds, log.n_arms), 0.5 if settings.bounded else 0.0)
    score = augmented_scores(action, reward, propensity, weights, outcome, settings.bounded)
    counts = np.arange(1, log.n_rounds + 1)
    mirror = 1.0 if settings.bounded else 0.0
    if not settings.method.anytime:
        return Scores(score, mirror - score, None, None, counts)
    if settings.floor is None:
        smallest = log.arrays.propensities
        assert smallest is not None
    else:
        smallest = np.full((log.n_rounds, log.n_arms), settings.floor)
    return Scores(score, mirror - score, *score_floors(weights, outcome, smallest), counts)


def _unbounded_scores(log: AdaptiveLog, reward: FloatArray, weights: Weights) -> Scores:
    """Augmented scores of all rounds except the first, which has no prediction; reward (T,), at least 0."""
    action, propensity = log.arrays.action, log.arrays.propensity
    assert propensity is not None
    every = indicators(action, np.arange(log.n_arms, dtype=np.int64))
    score = augmented_scores(action, reward, propensity, weights, predictions(every, reward), bounded=False)[
        1:
    ]
    return Scores(score, -score, None, None, np.arange(log.n_rounds))


def _track(scores: Scores, clock: IntArray, settings: Settings, origin: float, width: float) -> SingleTrack:
    mirror = 1.0 if settings.bounded else 0.0
    lower, upper = settings.method.sides(scores, clock, settings)
    middle = 0.5 * (scores.lower + mirror - scores.upper)
    mean = np.cumsum(middle) / np.arange(1.0, len(middle) + 1.0)
    shares = 2.0 if settings.method.bets else 1.0
    return SingleTrack(lower, upper, mirror, origin, width, shares, mean, scores.counts)


def _ordinals(count: int) -> IntArray:
    return np.arange(1, count + 1, dtype=np.int64)


def _rewards_used(log: AdaptiveLog, quantity: Quantity) -> IntArray:
    """Number of rewards used by the scores up to each round; for a contrast, the number for the rarer arm."""
    action = log.arrays.action
    if quantity.codes:
        pulls = [np.cumsum(action == code) for code in quantity.codes]
        return np.asarray(np.min(pulls, axis=0), dtype=np.int64)
    return np.cumsum(quantity.weights.arms[np.arange(log.n_rounds), action] != 0.0).astype(np.int64)


def _effective_size(log: AdaptiveLog, quantity: Quantity) -> float:
    arrays = log.arrays
    assert arrays.propensity is not None
    ratio = quantity.weights.ratios(arrays.action, arrays.propensity)
    groups = [arrays.action == code for code in quantity.codes] or [np.ones(log.n_rounds, dtype=np.bool_)]
    return float(effective_size(np.column_stack([np.where(group, ratio, 0.0) for group in groups])).min())


def _std_error(score: FloatArray) -> float:
    return float(np.std(score, ddof=1) / math.sqrt(len(score))) if len(score) > 1 else math.nan


_TARGETS = ("arm-means", "contrast", "policy-value")


class ConfidenceSequence:
    """Arm means, contrasts or policy values, with intervals that are valid at all rounds simultaneously.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data. For sums, the sequence is evaluated at the ends of batches, for arm means and contrasts.
    target : {"arm-means", "contrast", "policy-value"}
        The quantity to follow.
    arms : sequence of labels, optional
        For arm means: the arms to estimate, by default all arms.
    treatment : label or list of labels, optional
        For contrasts: the arms to compare with the control, by default all others.
    control : label
        For contrasts: the arm whose mean is subtracted.
    policy : policy, or list of policies
        For policy values: an arm, probabilities of shape (K,) or (T, K), or any other form that `PolicyValue`
        accepts. A policy may depend on the contexts, but not on the log's actions and rewards.
    rounds : str or array_like of bool, shape (T,), optional
        Rounds to use, given as the name of a column of the log or as a mask; by default, all rounds are used.
        Whether a round is used must be known before its arm is drawn, and must not depend on rewards. The
        sequence is then that of a shorter log, whose rounds are renumbered.

    Raises
    ------
    ParameterError
        If an argument is invalid, for example an unknown arm, an argument of another target, or invalid
        probabilities. The message lists every problem.

    Notes
    -----
    Sample means require one assumption: whenever an arm is pulled, its expected reward given the past is the
    same. An arm's rewards in the order of its pulls, minus the arm's mean, are then martingale differences,
    and no propensities are needed. Sample means are therefore valid for UCB and all other designs that do not
    randomise.

    Inverse-propensity scores (ipw, aipw) require the propensities with which the design chose arms, and a
    quantity whose expected value given the past is the same in every round. Contexts may affect rewards and
    propensities if they are drawn independently in each round. The expected value of a contrast does not
    change if all arms drift in the same way. Rounds in which an arm had propensity 0 are omitted.

    Examples
    --------
    >>> import adaptinf as ai
    >>> import numpy as np
    >>> from adaptinf.log import LogArrays
    >>> rng = np.random.default_rng(1)
    >>> action = rng.integers(0, 2, size=400)
    >>> reward = rng.binomial(1, np.array([0.3, 0.6])[action]).astype(float)
    >>> log = ai.AdaptiveLog.from_arrays(
    ...     LogArrays(action=action, reward=reward), arms=("a", "b"), reward_range=(0, 1)
    ... )
    >>> result = ai.ConfidenceSequence(log).fit(method="betting")
    >>> result.conf_int().round(2)
        low  high
    a  0.19  0.37
    b  0.50  0.72
    >>> result.table(rounds=[10, 400]).round(2)
         t term  estimate   low  high
    0   10    a      0.60  0.07  1.00
    1   10    b      0.40  0.00  0.93
    2  400    a      0.26  0.19  0.37
    3  400    b      0.60  0.50  0.72
    """

    def __init__(
        self,
        log: AdaptiveLog,
        target: str = "arm-means",
        *,
        arms: Sequence[Any] | None = None,
        treatment: Any = None,
        control: Any = None,
        policy: Any = None,
        rounds: str | ArrayLike | None = None,
    ) -> None:
        _check_data(log, target)
        whole = log
        log, keep, self._notes = marked_log("ConfidenceSequence", log, rounds)
        self.log = log
        self.target = target
        _check_target(target, arms=arms, treatment=treatment, control=control, policy=policy)
        if target == "arm-means":
            chosen = tuple(log.arms if arms is None else arms)
            codes = arm_codes("ConfidenceSequence", log, chosen)
            self._terms = tuple(map(str, chosen))
            self._estimands = tuple(Estimand("arm-mean", arm=arm) for arm in chosen)
            self.quantities = tuple(_arm(log, int(code), tuple(codes.tolist())) for code in codes)
        elif target == "contrast":
            several = isinstance(treatment, (list, tuple))
            others = [arm for arm in log.arms if arm != control] if treatment is None else [treatment]
            compared = list(treatment) if several else others
            *pairs, last = arm_codes("ConfidenceSequence", log, (*compared, control))
            self._terms = tuple(f"{arm} - {control}" for arm in compared)
            self._estimands = tuple(Estimand("contrast", treatment=arm, control=control) for arm in compared)
            self.quantities = tuple(_contrast(log, int(code), int(last)) for code in pairs)
        else:
            from adaptinf.inference.policies.policy_question import read_policies

            given = list(policy) if isinstance(policy, (list, tuple)) else [policy]
            policies = read_policies("ConfidenceSequence", whole, given)
            if keep is not None:
                policies = tuple(one.within(keep) for one in policies)
            self._terms = tuple(one.name for one in policies)
            self._estimands = tuple(Estimand("policy-value") for _ in policies)
            self.quantities = tuple(
                Quantity((), Weights(read.probabilities, 0.0, 1.0, not _is_fixed(one)))
                for read, one in zip(policies, given, strict=True)
            )

    def fit(
        self,
        method: str | None = None,
        alpha: float = 0.05,
        *,
        estimator: str | None = None,
        sigma: float | None = None,
        floor: float | None = None,
        t_opt: int | None = None,
        start: int | None = None,
        null: float = 0.0,
        stationary: bool = False,
    ) -> SequenceResults:
        """Run the sequence over the log.

        Parameters
        ----------
        method : {"betting", "empirical-bernstein", "beta-binomial", "gamma-exponential", "normal-mixture", \
"asymptotic"}, optional
            The default is betting or, for sums, the asymptotic sequence. All methods except the asymptotic
            sequence are valid at every sample size. Betting, empirical Bernstein and the gamma-exponential
            mixture adapt to the variance, and require rewards with a known range. The beta-binomial mixture
            is for sample means of rewards that always equal one of the two ends of their range, such as 0 and
            1. Which of these four methods gives the narrowest intervals depends on the rewards and their
            number; `recommend` lists the sequence that is expected to be narrowest first. The normal mixture
            does not adapt to the variance, and requires a range or `sigma`. The asymptotic sequence requires
            neither of the two. For sums, the normal mixture, the asymptotic sequence and the beta-binomial
            mixture are available.
        alpha : float
            Level for which the sequence is tuned, between 0 and 0.5. The sequence is valid at every level.
        estimator : {"sample-mean", "ipw", "aipw"}, optional
            The kind of scores. By default, contrasts use aipw if the aipw scores have known bounds, and
            otherwise ipw, so that drift that is common to both arms does no harm. Policies use ipw. Arm means
            use sample means, or ipw if contexts may have affected the assignment. Contrasts use sample means
            if `stationary` is True, or if the log does not have the design's propensities. With ipw and aipw,
            each contrast uses the rounds in which both of its arms could be chosen, and arm means use the
            rounds in which all arms of interest could be chosen.
        sigma : float, optional
            For the normal mixture on sample means: a scale with E exp(s (Y - mean)) <= exp(s^2 sigma^2 / 2)
            for all s. The scale must be known in advance; by default, it is half of the reward range.
        floor : float, optional
            Smallest propensity of the arms of interest that the design guarantees in advance. This floor is
            required by aipw, and by the normal mixture on scores if propensities may depend on contexts or
            are logged only for the chosen arm. Betting, empirical Bernstein and the gamma-exponential mixture
            on ipw scores do not require it.
        t_opt : int, optional
            For mixtures and the asymptotic sequence: number of scores at which the sequence is narrowest.
            This number must be fixed in advance, and is 1000 by default.
        start : int, optional
            For the asymptotic sequence: number of rewards before which no value is excluded, by default 100.
            Counted are the rewards of the arm, of the rarer arm in a contrast, or of the arms that a policy
            chooses.
        null : float
            Value of the quantities under the null hypothesis.
        stationary : bool
            Whether the expected reward is known to be the same whenever an arm is chosen (no drift, and no
            contexts that affected the choice) or, for scores, in every round. Sequences assume this, and
            results include a caution unless it is stated.

        Returns
        -------
        SequenceResults
            The results, with one term for each quantity.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the request. The message gives the reason and valid alternatives.

        Notes
        -----
        All tuning parameters of a sequence must be fixed before the data are seen. For example, `t_opt` must
        not be chosen by the length at which a log happened to stop.

        The sequence for a contrast of sample means divides alpha between the two arms, whereas a contrast of
        scores has a single sequence.
        """
        check("ConfidenceSequence.fit", null=(null, FINITE), stationary=(stationary, FLAG))
        profile = profile_of(self.log)
        if method is None:
            method = "betting" if profile.sums is None else "asymptotic"
        asked = Request(method, alpha, estimator, sigma, floor, t_opt, start, stationary)
        settings = settle(profile, self.quantities, asked)
        with np.errstate(under="ignore"):
            built = [build_track(profile, quantity, settings) for quantity in self.quantities]
        tracks = tuple(track for track, _, _ in built)
        reference = SequenceReference(
            settings.method.title,
            settings.method.anytime,
            tracks,
            self.log.n_rounds,
            None if profile.sums is None else look_rounds(profile.sums.cells),
        )
        facts = FitFacts(profile, self.quantities, self._terms, settings, stationary=stationary)
        notes, cautions = under_table(claims.FIT, facts)
        last = reference.times(np.array([self.log.n_rounds], dtype=np.int64))
        details = {"ess": np.array([size for _, _, size in built])}
        if settings.estimator != "sample-mean":
            details["min_propensity"] = np.array([_smallest(profile, x) for x in self.quantities])
        return SequenceResults(
            model="ConfidenceSequence",
            estimands=self._estimands,
            terms=self._terms,
            estimate=np.array([track.estimates(last)[0] for track in tracks]),
            std_error=np.array([std_error for _, std_error, _ in built]),
            reference=reference,
            estimator=settings.estimator,
            facts=LogFacts.of(self.log, by_unit=profile.repeated_units),
            validity="anytime" if settings.method.anytime else "asymptotic",
            null=float(null),
            details=details,
            notes=(*self._notes, *notes),
            cautions=tuple(cautions),
            dates=self.log.dates if profile.sums is None else None,
        )


def _arm(log: AdaptiveLog, code: int, among: tuple[int, ...]) -> Quantity:
    weights = np.zeros(log.n_arms)
    weights[code] = 1.0
    rows = np.broadcast_to(weights, (log.n_rounds, log.n_arms))
    return Quantity((code,), Weights(rows, 0.0, 1.0), among)


def _contrast(log: AdaptiveLog, treatment: int, control: int) -> Quantity:
    weights = np.zeros(log.n_arms)
    weights[treatment], weights[control] = 1.0, -1.0
    rows = np.broadcast_to(weights, (log.n_rounds, log.n_arms))
    return Quantity((treatment, control), Weights(rows, 1.0, 1.0), (treatment, control))


def _is_fixed(policy: Any) -> bool:
    """Whether a policy is by definition the same in every round, whatever contexts had occurred."""
    if isinstance(policy, (str, Real)):
        return True
    values = number_array(policy)
    return values is not None and values.ndim == 1


def _smallest(profile: LogProfile, quantity: Quantity) -> float:
    """Smallest propensity by which the scores of a quantity are divided."""
    profile, quantity = within(profile, quantity)
    log = profile.log
    if profile.sums is not None:
        return float(profile.sums.cells.smallest[:, list(quantity.codes)].min())
    assert log.arrays.propensity is not None
    used = quantity.weights.arms[np.arange(log.n_rounds), log.arrays.action] != 0.0
    return float(np.min(log.arrays.propensity[used], initial=np.inf)) if np.any(used) else np.nan


def _check_data(log: object, target: Any) -> None:
    """Refuse objects that are not logs or sums, and refuse sums if rows are needed."""
    if not isinstance(log, Sums):
        require_log("ConfidenceSequence", log)
    elif target == "policy-value":
        raise InvalidForLog(
            f"ConfidenceSequence(target={target!r})",
            NEEDS_ROWS,
            ["target='arm-means'", "target='contrast'", "an AdaptiveLog of the rows"],
        )


def _check_target(target: Any, **given: Any) -> None:
    problems = OneOf(*_TARGETS)("target", target)
    refuse("ConfidenceSequence", problems)
    own = {"arm-means": ("arms",), "contrast": ("treatment", "control"), "policy-value": ("policy",)}[target]
    for name, value in given.items():
        if name not in own and value is not None:
            problems.append(f"{name} does not apply to target={target!r}: omit it")
        if name in own and value is None and name not in ("arms", "treatment"):
            problems.append(f"target={target!r} requires {name}=")
    if isinstance(given["treatment"], (list, tuple)) and not given["treatment"]:
        problems.append("treatment must contain at least one arm, or be omitted")
    if isinstance(given["arms"], str):
        problems.append(f"arms must be a list of labels, got the string {given['arms']!r}")
    refuse("ConfidenceSequence", problems)
