"""The mean of the arm that did best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from adaptinf.errors import InvalidForLog
from adaptinf.inference.arms import ArmMeans
from adaptinf.inference.results import Results
from adaptinf.inference.winners.law import METHODS, TIED, WinnerLaw
from adaptinf.inference.winners.results import WinnerResults
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import OneOf, check
from adaptinf.sums import Sums

_WAYS = {
    "hybrid": "Hybrid interval: conditional on which arm won, within the projection at a tenth of alpha.",
    "conditional": "Conditional interval: it has its level given which arm won, and may be very long.",
    "projection": "Projection: the winner's part of a simultaneous interval for all arms.",
}


class Winner:
    """The mean of the arm with the highest estimate, by intervals that know that it was picked.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    arms : sequence of labels, optional
        The arms that were in the contest; all by default.
    rounds : array, column or mask, optional
        Rounds to use, as for `ArmMeans`.

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
        self, log: AdaptiveLog | Sums, arms: Sequence[Any] | None = None, *, rounds: Any = None
    ) -> None:
        self._means = ArmMeans(log, arms, rounds=rounds)
        self.arms = self._means.arms

    def fit(
        self,
        estimator: str | None = None,
        weights: str | None = None,
        *,
        method: str = "hybrid",
        **options: Any,
    ) -> WinnerResults:
        """Estimate all arms, and the mean of the one with the highest estimate.

        Parameters
        ----------
        estimator, weights : str, optional
            As for `ArmMeans.fit`; its default by default.
        method : {"hybrid", "conditional", "projection"}
            How the interval takes account of the choice, as for `winner_interval`.
        **options
            Other arguments of `ArmMeans.fit`.

        Returns
        -------
        WinnerResults
            One term. Its estimate is median-unbiased given which arm won; its standard error is that of the
            arm's own estimate, which neither interval nor p-value uses.

        Raises
        ------
        ParameterError
            If an argument makes no sense.
        InvalidForLog
            If the log does not support the estimator, or the estimates have no joint covariance.
        """
        check("Winner", method=(method, OneOf(*METHODS)))
        means = self._means.fit(estimator, weights, **options)
        known = np.isfinite(means.estimate) & (means.std_error > 0.0)
        if not known.all():
            lacking = ", ".join(repr(arm) for arm, there in zip(self.arms, known, strict=True) if not there)
            reason = f"there is no estimate with a standard error of {lacking}"
            raise InvalidForLog("Winner", reason, ["arms=[...], the others alone"])
        if means.covariance is None or not np.isfinite(means.covariance).all():
            reason = f"{means.estimator} has no joint covariance of the arms"
            raise InvalidForLog("Winner", reason, ['fit("aipw"), where propensities are known'])
        law = WinnerLaw.of(means.estimate, means.covariance, method)
        return _results(means, law, self.arms[law.won])


def _results(means: Results, law: WinnerLaw, arm: Any) -> WinnerResults:
    """The winner's row, with what the fit of all arms says of itself."""
    low, high = (float(end) for end in means.conf_int().iloc[law.won])
    own = float(means.estimate[law.won])
    return WinnerResults(
        model="Winner",
        estimands=(means.estimands[law.won],),
        terms=("winner",),
        estimate=np.array([law.median]),
        std_error=np.array([law.scale]),
        reference=law,
        estimator=means.estimator,
        facts=means.facts,
        validity="not valid" if means.validity == "not valid" else "asymptotic",
        weights=means.weights,
        null=means.null,
        details={name: np.asarray(values)[[law.won]] for name, values in means.details.items()},
        notes=(
            f"Arm {arm!r} has the highest of {law.size} estimates, {own:.4g}; its usual interval, {low:.4g} "
            f"to {high:.4g}, takes no notice of that. The estimate shown is median-unbiased.",
            TIED if law.tied else _WAYS[law.method],
            "Estimates count as normal, their covariance as known.",
            *means.notes,
        ),
        cautions=means.cautions,
        winner=arm,
        means=means,
    )
