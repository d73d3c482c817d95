"""Exact confidence intervals from the log of a two-arm trial with rewards 0 and 1."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from adaptinf.audit.binary.count_rules import Rule
from adaptinf.audit.binary.effect_inversion import (
    LONGEST_INTERVAL,
    SCALES,
    SIDES,
    Inversion,
    interval_limits,
    interval_problems,
)
from adaptinf.audit.binary.exact_results import counts_of, rule_of
from adaptinf.audit.binary.two_arms import exact
from adaptinf.audit.rerun.logged_rows import length_cautions
from adaptinf.claims.logs.stopping import COUNTED
from adaptinf.claims.tables import CAUTION
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Is, problems_of, refuse

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary

_METHOD = "exact_interval"


@dataclass(frozen=True, eq=False, slots=True)
class ExactInterval:
    """Exact confidence intervals for the effect of one arm against the other.

    Attributes
    ----------
    design : str
        The rule under which the intervals are exact.
    arms : tuple of labels
        Arm 1 and arm 0: the second and the first arm of the log.
    pulls, successes : tuple of int
        Of arm 1 and arm 0.
    limits : dict of (float, float) by scale
        Lower and upper limits.
    estimates : dict of float by scale
        From the sample proportions, not corrected for adaptive collection; NaN where there is none.
    pvalue : float
        Of equal arms, by the test that the intervals invert.
    alternative : str
        ``"greater"`` leaves the upper limits open, ``"less"`` the lower ones.
    alpha : float
        One minus the level.
    cautions : tuple of str
        What the log states against an assumption.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.Thompson()
    >>> log = design.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=60, rng=0)
    >>> found = ai.audit.exact_interval(log, scale="difference")
    >>> bool(found.limits["difference"][0] < 0.3 < found.limits["difference"][1])
    True
    """

    design: str
    arms: tuple[Any, Any]
    pulls: tuple[int, int]
    successes: tuple[int, int]
    limits: dict[str, tuple[float, float]]
    estimates: dict[str, float]
    pvalue: float
    alternative: str
    alpha: float
    cautions: tuple[str, ...] = ()

    @property
    def validity(self) -> str:
        """What the level is worth: it holds at this number of rounds, fixed in advance."""
        return "exact"

    @property
    def notes(self) -> tuple[str, ...]:
        """What speaks against the intervals, what they are, and what they assume."""
        one, zero = self.arms
        lines = [
            *(CAUTION(caution=one) for one in self.cautions),
            f"Exact at {self.pulls[0] + self.pulls[1]} rounds: the effects of {one} against {zero} that the "
            "exact unconditional test does not reject.",
            "Assumes success rates that do not drift over the trial, not even together.",
            f"Assumes that {self.design} drew every arm, and a number of rounds fixed in advance; it is not "
            "valid at rounds that the data chose.",
        ]
        if 0 in self.pulls:
            lines.append(f"{self.arms[self.pulls.index(0)]} was never pulled: only the design speaks for it.")
        return tuple(lines)

    def to_frame(self) -> pd.DataFrame:
        """Frame with columns scale, estimate, low and high."""
        import pandas as pd

        rows = [(name, self.estimates[name], *limits) for name, limits in self.limits.items()]
        return pd.DataFrame(rows, columns=["scale", "estimate", "low", "high"])

    def summary(self) -> ResultSummary:
        """Counts, intervals and assumptions as tables.

        Returns
        -------
        ResultSummary
            With as_text, as_latex, as_html, as_markdown and as_csv.
        """
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import cell_widths, format_number, text_table, total_width

        counts = [
            [str(arm), str(pulls), str(won), format_number(won / pulls) if pulls else "nan"]
            for arm, pulls, won in zip(self.arms, self.pulls, self.successes, strict=True)
        ]
        share = f"{100.0 * (1.0 - self.alpha):g}%"
        effects = [
            [SCALES[name].label, *(_shown(value, format_number) for value in (self.estimates[name], *limits))]
            for name, limits in self.limits.items()
        ]
        blocks = [
            (["", "pulls", "successes", "mean"], counts),
            (["", "estimate", f"{share} low", f"{share} high"], effects),
            (["", f"P {self.alternative}"], [["equal arms", f"{self.pvalue:.4f}"]]),
        ]
        widths = [cell_widths([head, *rows], minimum=8) for head, rows in blocks]
        width = max(78, *(total_width(entry, " ") for entry in widths))
        tables = []
        for (head, rows), entry in zip(blocks, widths, strict=True):
            entry[0] += width - total_width(entry, " ")
            align = "l" + "r" * (len(head) - 1)
            tables.append(
                text_table([row[1:] for row in rows], head[1:], [row[0] for row in rows], entry, align)
            )
        return ResultSummary(f"Exact intervals, {self.design}", tables, self.notes)

    def __str__(self) -> str:
        return str(self.summary().as_text())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


def exact_interval(
    log: AdaptiveLog,
    design: Rule | None = None,
    *,
    scale: str | None = None,
    alternative: str = "two-sided",
    alpha: float = 0.05,
) -> ExactInterval:
    """Exact confidence intervals for the effect in a two-arm trial with rewards 0 and 1.

    Parameters
    ----------
    log : AdaptiveLog
        Two arms, rewards 0 and 1, no contexts, at most 300 rounds.
    design : Design or callable, optional
        See `exact`; by default the design that the log names, with its parameters.
    scale : {"difference", "ratio", "odds-ratio"}, optional
        Rate of the second arm of the log minus, or over, that of the first, or their odds; by default all
        three.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"`` gives lower limits only, ``"less"`` upper ones.
    alpha : float
        One minus the level, in (0, 0.5).

    Returns
    -------
    ExactInterval

    Raises
    ------
    InvalidForLog
        With the reason, and what is possible instead.
    ParameterError
        If what is given is no log, or an option is out of range.

    Notes
    -----
    For every effect the exact unconditional test is made: final counts are ordered by the distance of their
    rates, (s + 1/2) / (n + 1), from the effect in standard errors, and the p-value is the probability of
    counts as far off at the nuisance rate that is worst. At equal arms the three scales are one test. The
    p-value at every nuisance rate is read off an expansion in Chebyshev polynomials; p-values are right to
    about 1e-6.

    An interval spans the effects that are not rejected. They need not be without gaps: from the end of the
    scale inwards, an interval of effects is passed over only where the outcomes that are as far off at any of
    them have no more than alpha at either end, and is halved otherwise, down to 1/1024 of a standard error.

    Success rates must not drift, the number of rounds is fixed in advance, and the design given must have
    drawn every arm. At 100 rounds an interval takes up to about a second once the law is there, which is
    kept; at 300 about half a minute.

    References
    ----------
    Baas, S., Jacko, P. and Villar, S. S. (2024). Exact statistical analysis for response-adaptive clinical
    trials: a general and computationally tractable approach. arXiv:2407.01055.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.Thompson().run(ai.environments.BernoulliArms([0.3, 0.8]), horizon=60, rng=0)
    >>> found = ai.audit.exact_interval(log)
    >>> found.to_frame()["scale"].tolist()
    ['difference', 'ratio', 'odds-ratio']
    >>> [round(limit, 3) for limit in found.limits["difference"]]
    [0.457, 0.923]
    """
    first = next(iter(SCALES))
    problems = interval_problems(first if scale is None else scale, alternative, alpha)
    refuse(_METHOD, problems + problems_of(log=(log, Is(AdaptiveLog, "an AdaptiveLog"))))
    law = exact(rule_of(log, design, method=_METHOD, longest=LONGEST_INTERVAL), log.n_rounds)
    counts = counts_of(law, log, _METHOD)
    n1, s1, n0, s0 = counts
    chosen = list(SCALES) if scale is None else [scale]
    return ExactInterval(
        design=law.name,
        arms=(log.arms[1], log.arms[0]),
        pulls=(n1, n0),
        successes=(s1, s0),
        limits={
            name: interval_limits(law, SCALES[name], counts, alternative, float(alpha)) for name in chosen
        },
        estimates={name: value for name, value in _plain(*counts).items() if name in chosen},
        pvalue=Inversion(law, SCALES[first], counts, SIDES[alternative]).pvalue(0.0),
        alternative=alternative,
        alpha=float(alpha),
        cautions=length_cautions(log, COUNTED),
    )


def _plain(n1: int, s1: int, n0: int, s0: int) -> dict[str, float]:
    """Effects from sample proportions by scale."""
    one, zero = (s1 / n1, s0 / n0) if n1 and n0 else (math.nan, math.nan)
    return {
        "difference": one - zero,
        "ratio": _over(one, zero),
        "odds-ratio": _over(one * (1.0 - zero), zero * (1.0 - one)),
    }


def _over(top: float, bottom: float) -> float:
    if bottom == 0.0:
        return math.inf if top > 0.0 else math.nan
    return top / bottom


def _shown(value: float, form: Any) -> str:
    return str(form(value)) if math.isfinite(value) else str(value)
