"""The results of a fit: estimates, simultaneous inference, and a table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from adaptinf.drawing import drawn
from adaptinf.inference.results.multiplicity import AT_ONCE, check_adjustment
from adaptinf.inference.results.simultaneous import JointInference
from adaptinf.parameters import check_alpha

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from adaptinf.inference.results.explanation import Explanation
    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Results(JointInference):
    """Estimates with tests and intervals based on a single distribution.

    Parameters
    ----------
    model : str
        Name of the class of the model.
    estimands : tuple of Estimand
        Estimands of the k terms.
    terms : tuple of str
        Labels of the terms in tables.
    estimate, std_error : ndarray
        Estimates and standard errors, shape (k,). If a value cannot be computed, it is NaN, and a note gives
        the reason.
    reference : Reference
        Distribution of the k terms.
    estimator : str
        Such as ``"aipw"``.
    facts : LogFacts
        Facts about the log.
    validity : {"exact", "anytime", "asymptotic", "not valid"}
        Validity of the uncorrected results for the log.
    weights : str, optional
        Such as ``"sqrt"``; None if the estimator has no weights.
    covariance : ndarray, optional
        Covariance of the estimates, shape (k, k). Without it, joint tests are refused, and simultaneous
        intervals are Bonferroni's.
    null : float
        Value under the null hypothesis of the tests.
    correction : Correction, optional
        The correction for adaptive collection, given only if the estimator itself is not valid for the log.
    details : mapping of str to ndarray
        Diagnostics by term, each of shape (k,). ``"ess"`` and ``"min_propensity"`` are also attributes.
    notes, cautions : tuple of str
        Notes contain assumptions, adjustments and reasons for NaN. Cautions are reasons why the results may
        be less valid than their label says.
    efficiency_note : str
        A statement on the loss of precision, which is the last note on the model in a summary.
    private : bool
        Whether the results are based on the log's private releases alone, so that its guarantee covers them.
    scores : mapping of str to ndarray, optional
        Arrays over the rounds, which are row-level data and kept only on request.
    contrast_of : callable, optional
        Function that returns results for the difference between two terms, given by their positions, if
        differences have their own weights and distribution.

    Notes
    -----
    The effective sample size of a term is (sum g)^2 / sum g^2 over the rounds of its arm, where g is the
    weight of a round's reward in the estimate. As many equally weighted rewards would give the same
    precision. For a difference, it is the smaller of the two arms' effective sizes.

    Examples
    --------
    >>> import adaptinf as ai
    >>> result = ai.result({"a": 0.5}, {"a": 0.1}, label="my estimator")
    >>> result.conf_int(alpha=0.1).round(3)
         low   high
    a  0.336  0.664
    """

    _picture: ClassVar[str] = "forest"
    _adjustment: ClassVar[str | None] = None
    """The default adjustment in tables and sentences."""

    def summary(self, alpha: float = 0.05, adjust: str | None = None) -> ResultSummary:
        """Summarise the results in a table, with cautions and a few lines on the method.

        `explain` lists everything on which the results are based.

        Parameters
        ----------
        alpha : float
            One minus the confidence level of the intervals, between 0 and 0.5.
        adjust : {"holm", "bh", "max-t"}, optional
            Method by which p-values are adjusted for the number of terms, after any correction; by default,
            no adjusted p-values are shown. ``"max-t"`` shows the p-values of `pvalues_simultaneous` and the
            intervals of `conf_int_simultaneous` below those of single terms.

        Returns
        -------
        ResultSummary
            A summary that is printed as text; ``as_markdown()``, ``as_latex()`` and ``as_html()`` return
            other formats.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or the adjustment is unknown.
        InvalidForLog
            If the adjustment is ``"max-t"``, and a correction is needed.
        """
        # Tables need statsmodels, which is slow to load and is not needed for the numbers alone.
        from adaptinf.inference.results.summary import summarise

        return summarise(self, alpha, adjust)

    def explain(self, alpha: float = 0.05, adjust: str | None = None) -> Explanation:
        """List the basis of the results: cautions, the methods of computation, and the assumptions.

        Parameters
        ----------
        alpha, adjust
            As in `summary`.

        Returns
        -------
        Explanation
            An explanation that is printed as text. ``to_frame()`` has one row per claim, with its kind and,
            for assumptions, the result of the check.

        Raises
        ------
        ParameterError
            If alpha is not between 0 and 0.5, or the adjustment is unknown.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.Thompson(floor=0.1).run(
        ...     ai.environments.BernoulliArms([0.4, 0.6]), horizon=500, rng=0
        ... )
        >>> claims = ai.ArmMeans(log).fit().explain().to_frame()
        >>> claims.loc[claims["kind"] == "assumes", ["text", "check"]].iloc[0].tolist()
        ['the logged propensities are the true assignment probabilities', 'checked']
        """
        from adaptinf.inference.results.explanation import explained

        check_alpha("explain", alpha)
        if adjust is not None:
            check_adjustment("explain", adjust, AT_ONCE)
        return explained(self, alpha, adjust)

    def sentence(
        self,
        term: str | None = None,
        alpha: float = 0.05,
        unit: str | None = None,
        adjust: str | None = None,
    ) -> str:
        """State the findings in one sentence.

        Parameters
        ----------
        term : str, optional
            The term; by default, all terms together.
        alpha : float
            One minus the confidence level of the intervals, between 0 and 0.5.
        unit : str, optional
            Unit of the rewards, such as ``"clicks"``; not allowed for lifts, which are in percent.
        adjust : {"max-t", "holm", "bh"}, optional
            As in `summary`; with ``"max-t"``, the intervals of all terms hold simultaneously.

        Returns
        -------
        str
            A sentence with estimates and limits as printed in the table, which says "undecided" if an
            interval contains the null.

        Raises
        ------
        ParameterError
            If there is no such term, alpha is not between 0 and 0.5, the adjustment is unknown, or a unit is
            given for a lift.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.Thompson(floor=0.1).run(
        ...     ai.environments.BernoulliArms([0.3, 0.5]), horizon=1_000, rng=0
        ... )
        >>> ai.Contrast(log, treatment=1, control=0).fit().sentence()
        'Arm 1 has a higher mean reward than arm 0: difference 0.2564 (95% interval 0.1742 to 0.3386).'
        """
        from adaptinf.inference.results.sentences import sentence_of

        check_alpha("sentence", alpha)
        if adjust is not None:
            check_adjustment("sentence", adjust, AT_ONCE)
        return sentence_of(self, term, alpha, unit, adjust)

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the estimates and their intervals.

        The plot is `plots.forest`; for confidence sequences, it is `plots.confidence_sequence`, and for the
        best of several arms, `plots.winner`.

        Parameters
        ----------
        ax : Axes, optional
            Axes in which to draw; by default, those of a new figure.
        **options
            Options of the plot.

        Returns
        -------
        Axes

        Raises
        ------
        MissingDependencyError
            If matplotlib is not installed.
        ParameterError
            If fields are inconsistent; the message lists every problem.

        Examples
        --------
        >>> import adaptinf as ai
        >>> log = ai.designs.Thompson().run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=500, rng=0)
        >>> ai.ArmMeans(log).fit().plot(unit="clicks").get_xlabel()
        'mean reward (clicks)'
        """
        return drawn(self._picture, self, ax, options)

    def __repr__(self) -> str:
        terms = "1 term" if len(self.terms) == 1 else f"{len(self.terms):,} terms"
        return f"<{self.model}, {self.estimator}: {terms}; print() shows the table>"

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()
