"""The mean of the arm with the highest estimate, and its lead over another arm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from scipy.special import ndtri

from adaptinf.claims import also_assumed
from adaptinf.claims.arms import winners as claims
from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import ArmMeans
from adaptinf.inference.arms.choice import arm_codes
from adaptinf.inference.arms.question import Question
from adaptinf.inference.inputs.arguments import require_data
from adaptinf.inference.results import Results
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.log_facts import USUAL, meaningful
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.validity.rare import FEWEST
from adaptinf.inference.winners import projected
from adaptinf.inference.winners.contest import Contest, asked_of, comparison_problems, variance_problems
from adaptinf.inference.winners.winner_intervals import last_rounds
from adaptinf.inference.winners.winner_law import NEAR, WinnerLaw
from adaptinf.inference.winners.winner_methods import CONDITIONAL, HELD_OUT, HYBRID, PROJECTION, refusal
from adaptinf.inference.winners.winner_results import WinnerResults
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import OneOf, check, refuse
from adaptinf.sums import Sums
from adaptinf.typing import BoolArray

_WAYS = {
    "hybrid": claims.HYBRID(reason=claims.WITHIN_PROJECTION()),
    "conditional": claims.CONDITIONAL(reason=claims.GIVEN_WINNER()),
    "projection": claims.PROJECTION(),
}
_RECORDS = {record.name: record for record in (HYBRID, CONDITIONAL, PROJECTION)}


class Winner:
    """The mean of the arm with the highest estimate, with intervals that account for the selection.

    Alternatively, the difference between this mean and that of a control or of the runner-up.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    arms : sequence of labels, optional
        The arms among which the winner is selected, and the control; by default, all arms.
    rounds : array, column or mask, optional
        Rounds to use, as for `ArmMeans`.
    control : label, optional
        An arm that is excluded from the selection, and with which the winner is compared.
    runner_up : bool
        Whether the winner is compared with the arm with the second highest estimate.

    Examples
    --------
    >>> import adaptinf as ai
    >>> arms = ai.environments.BernoulliArms([0.30, 0.32, 0.35])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.3).run(arms, horizon=3_000, rng=0)
    >>> best = ai.Winner(log).fit()
    >>> best.winner, best.conf_int().round(2).to_numpy().tolist()
    (2, [[0.33, 0.37]])
    """

    def __init__(
        self,
        log: AdaptiveLog | Sums,
        arms: Sequence[Any] | None = None,
        *,
        rounds: Any = None,
        control: Any = None,
        runner_up: bool = False,
    ) -> None:
        self._means = ArmMeans(require_data("Winner", log), arms, rounds=rounds)
        self.arms = self._means.arms
        refuse("Winner", comparison_problems(self.arms, control, runner_up))
        self.control, self.runner_up = control, runner_up

    def fit(
        self,
        estimator: str | None = None,
        weights: str | None = None,
        *,
        method: str = "hybrid",
        held_out: Any = None,
        **options: Any,
    ) -> WinnerResults:
        """Estimate the means of all arms, and that of the winner with an interval.

        Parameters
        ----------
        estimator, weights : str, optional
            As in `ArmMeans.fit`, with the same defaults. Weights are shared by the arms, unless
            ``stationary=True`` states that no arm's mean drifts.
        method : {"hybrid", "conditional", "projection"}
            How the interval accounts for the selection, as in `winner_interval`. If an arm has fewer than 5
            successes or failures, and the means have exact intervals, the projection of these intervals is
            used. If the winner's estimate is skewed, such as a rate near 0 or 1 from few rounds, the
            projection of intervals corrected for skewness replaces the hybrid interval.
        held_out : int, str or array_like of bool, shape (T,), optional
            Rounds that are excluded from the selection of the winner and used only to estimate its mean,
            given as the number of final batches, or a column or mask that selects the last rounds. The
            interval is then the ordinary interval of `ArmMeans` or `Contrast` for these rounds, and `method`
            is ignored.
        **options
            Other arguments of `ArmMeans.fit`.

        Returns
        -------
        WinnerResults
            Results with one term, the mean or the difference. The estimate is median-unbiased given the
            selection. The standard error ignores the selection, and is not used by the interval or the
            p-value.

        Raises
        ------
        ParameterError
            If an argument is invalid.
        InvalidForLog
            If the log does not support the estimator, or the estimates have no joint covariance.
        """
        check("Winner", method=(method, OneOf(*_RECORDS)))
        if held_out is not None:
            return self._later(estimator, weights, last_rounds(self._means.log, held_out), options)
        codes = arm_codes("Winner", self._means.log, self.arms)
        if reason := refusal(Question(profile_of(self._means.log), codes)):
            raise InvalidForLog("Winner", reason, ["arms=[...] with only the other arms"])
        means = self._means.fit(estimator, weights, **options)
        if projected.serves(profile_of(self._means.log), codes, means):
            contest = asked_of(means.estimate, self.arms, self.control, self.runner_up)
            of_counts = projected.projected_law(self._means.log, means, contest, self.arms)
            return _results(means, of_counts, contest, self.arms)
        means = _whole(means, self.arms)
        assert means.covariance is not None
        contest = asked_of(means.estimate, self.arms, self.control, self.runner_up)
        if problems := variance_problems(means.covariance, contest):
            raise InvalidForLog("Winner", problems[0], ["arms=[...] without one of these arms"])
        law: WinnerLaw = _RECORDS[method].fit(means, contest)
        if method != "conditional" and projected.skewed(profile_of(self._means.log), means, contest):
            of_parts = projected.projected_law(self._means.log, means, contest, self.arms, law)
            return _results(means, of_parts, contest, self.arms)
        return _results(means, law, contest, self.arms)

    def _later(
        self, estimator: str | None, weights: str | None, keep: BoolArray, options: dict[str, Any]
    ) -> WinnerResults:
        """The results for the winner of the first rounds, from the remaining rounds; keep (T,)."""
        log, asked = self._means.log, {"estimator": estimator, "weights": weights, **options}
        means = ArmMeans(log, self.arms, rounds=~keep).fit(**asked)
        if not np.isfinite(means.estimate).all():
            raise InvalidForLog(
                "Winner", "at least one arm has no estimate from the first rounds", ["arms=[...]"]
            )
        contest = asked_of(means.estimate, self.arms, self.control, self.runner_up)
        later = HELD_OUT.fit(log, contest, self.arms, keep, **asked)
        rounds = {"first": int((~keep).sum()), "last": int(keep.sum())}
        note = claims.HELD_OUT(arm=self.arms[contest.won], **rounds)
        given = {field.name: getattr(later, field.name) for field in fields(Results)}
        given |= {"model": "Winner", "terms": _terms(contest, self.arms), "notes": (note, *later.notes)}
        against = None if contest.against is None else self.arms[contest.against]
        return WinnerResults(**given, winner=self.arms[contest.won], against=against, means=means)


def _whole(means: Results, arms: Sequence[Any]) -> Results:
    """Return the estimates for all arms with their covariance, or raise an error if it is unknown."""
    known = np.isfinite(means.estimate) & (means.std_error > 0.0)
    if not known.all():
        without = [repr(arm) for arm, there in zip(arms, known, strict=True) if not there]
        reason = claims.NO_ERROR(arms=", ".join(without))
        raise InvalidForLog("Winner", reason, ["arms=[...] with only the other arms"])
    if means.covariance is None or not np.isfinite(means.covariance).all():
        reason = claims.NO_COVARIANCE(estimator=means.estimator)
        raise InvalidForLog("Winner", reason, ['fit("aipw"), if propensities are known'])
    return means


def _terms(contest: Contest, arms: Sequence[Any]) -> tuple[str, ...]:
    """The label of the row in the table."""
    won = f"{arms[contest.won]} (winner)"
    return (won if contest.against is None else f"{won} - {arms[contest.against]}",)


def _results(
    means: Results, law: WinnerLaw | projected.ProjectedLaw, contest: Contest, arms: Sequence[Any]
) -> WinnerResults:
    """The winner's results, with the notes from the fit of all arms."""
    won, other = contest.won, contest.against
    arm, against = arms[won], None if other is None else arms[other]
    kept = [won] if other is None else [won, other]
    details = {name: np.asarray(values)[kept] for name, values in means.details.items()}
    estimand = means.estimands[won] if other is None else Estimand("contrast", treatment=arm, control=against)
    normal = [] if isinstance(law, projected.ProjectedLaw) else [claims.NORMAL()]
    return WinnerResults(
        model="Winner",
        estimands=(estimand,),
        terms=_terms(contest, arms),
        estimate=np.array([law.median]),
        std_error=np.array([law.scale]),
        reference=law,
        estimator=means.estimator,
        facts=means.facts,
        validity="not valid" if means.validity == "not valid" else "exact" if law.exact else "asymptotic",
        weights=means.weights,
        null=means.null,
        details={name: np.min(values, keepdims=True) for name, values in details.items()},
        notes=(*_notes(means, law, contest, arms), *also_assumed(means.notes, normal)),
        cautions=means.cautions,
        winner=arm,
        against=against,
        means=means,
    )


def _notes(
    means: Results, law: WinnerLaw | projected.ProjectedLaw, contest: Contest, arms: Sequence[Any]
) -> tuple[str, ...]:
    """Notes on which arm won, and on how its interval was computed."""
    won, other = contest.won, contest.against
    named: dict[str, Any] = {"arm": arms[won], "n": contest.size, "beside": ""}
    if isinstance(law, projected.ProjectedLaw):
        way = claims.PROJECTED(fewest=FEWEST) if law.exact else claims.PROJECTED_SKEWED()
        return claims.HIGHEST(**named), way
    own = float(contest.direction @ means.estimate)
    if other is None:
        every = means.reference.interval(math.log(USUAL))
        low, high = meaningful(every, means.estimands, means.facts.longest, means.std_error)[won].tolist()
    else:
        if contest.ranked:
            named["beside"] = claims.BESIDE_SECOND(second=arms[other])
        else:
            named |= {"n": contest.size - 1, "beside": claims.BESIDE_CONTROL()}
        half = -float(ndtri(0.025)) * law.scale
        low, high = own - half, own + half
    usual = claims.USUAL(what="mean" if other is None else "difference", own=own, low=low, high=high)
    way = claims.TIED(near=NEAR) if law.tied else _WAYS[law.method]
    return claims.HIGHEST(**named), usual, way
