"""Exact tests and intervals for the log of a two-arm trial with rewards 0 and 1."""

from __future__ import annotations

import math
from typing import Any

from adaptinf.audit.binary.count_rules import Rule
from adaptinf.audit.binary.effect_inversion import (
    LONGEST_INTERVAL,
    SCALES,
    SIDES,
    Inversion,
    interval_limits,
    interval_problems,
)
from adaptinf.audit.binary.exact_law import exact
from adaptinf.audit.binary.exact_results import (
    ExactInterval,
    ExactTest,
    counts_of,
    exact_result,
    option_problems,
    rule_of,
)
from adaptinf.audit.rerun.logged_rows import length_cautions
from adaptinf.claims.logs.stopping import COUNTED
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import Is, problems_of, refuse


def exact_test(
    log: AdaptiveLog,
    design: Rule | None = None,
    *,
    statistic: Any = "wald",
    alternative: str = "two-sided",
    mid_p: bool = False,
) -> ExactTest:
    """Exact test of equal arms for the log of a two-arm trial with rewards 0 and 1.

    Parameters
    ----------
    log : AdaptiveLog
        A log with two arms, rewards 0 and 1, and no contexts.
    design : Design or callable, optional
        See `exact`; by default the design named in the log, with its parameters.
    statistic : {"wald", "score", "difference"} or callable
        The statistic that orders the outcomes; see `ExactLaw.conditional_pvalue`.
    alternative : {"two-sided", "central", "greater", "less"}
        The direction of the alternative.
    mid_p : bool
        Count half the probability of ties; the size may then exceed alpha.

    Returns
    -------
    ExactTest

    Raises
    ------
    InvalidForLog
        If the method does not apply; the message gives the reason and an alternative.
    ParameterError
        If the argument is not a log, or an option is out of range.

    Notes
    -----
    The test assumes that success rates do not drift, that the number of rounds was fixed in advance, and that
    the log was collected by exactly the given design.

    Examples
    --------
    >>> import adaptinf as ai
    >>> log = ai.designs.Thompson().run(ai.environments.BernoulliArms([0.3, 0.8]), horizon=60, rng=0)
    >>> round(ai.audit.exact_test(log).pvalue, 4)
    0.0766
    """
    refuse("exact_test", option_problems(log, statistic, alternative, mid_p))
    law = exact(rule_of(log, design), log.n_rounds)
    return exact_result(law, log, statistic, alternative, mid_p, subject="exact_test")


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
        A log with two arms, rewards 0 and 1, no contexts, and at most 300 rounds.
    design : Design or callable, optional
        See `exact`; by default the design named in the log, with its parameters.
    scale : {"difference", "ratio", "odds-ratio"}, optional
        Difference, ratio or odds ratio of the success rates, second arm of the log relative to the first; by
        default all three.
    alternative : {"two-sided", "greater", "less"}
        ``"greater"`` gives lower limits only, and ``"less"`` upper limits only.
    alpha : float
        One minus the confidence level, in (0, 0.5).

    Returns
    -------
    ExactInterval

    Raises
    ------
    InvalidForLog
        If the method does not apply; the message gives the reason and an alternative.
    ParameterError
        If the argument is not a log, or an option is out of range.

    Notes
    -----
    The exact unconditional test is applied to every effect: final counts are ordered by the distance of their
    rates, (s + 1/2) / (n + 1), from the effect in standard errors, and the p-value is the probability of
    counts at least as far away at the least favourable nuisance rate. For the hypothesis of equal arms, the
    three scales give the same test. The p-value at every nuisance rate is computed from an expansion in
    Chebyshev polynomials; p-values are accurate to about 1e-6.

    An interval spans all effects that are not rejected. The set of effects that are not rejected may have
    gaps. The search starts from the end of the scale. A range of effects is skipped only if the outcomes that
    are as far away at any effect in the range have probability at most alpha at both of its ends; otherwise
    the range is halved, down to 1/1024 of a standard error.

    Success rates must not drift, the number of rounds must be fixed in advance, and every arm must have been
    assigned by exactly the given design. With 100 rounds, an interval takes up to about a second once the
    distribution has been computed and cached; with 300, about half a minute.

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
    [-0.037, 0.767]
    """
    first = next(iter(SCALES))
    problems = interval_problems(first if scale is None else scale, alternative, alpha)
    refuse("exact_interval", problems + problems_of(log=(log, Is(AdaptiveLog, "an AdaptiveLog"))))
    law = exact(rule_of(log, design, method="exact_interval", longest=LONGEST_INTERVAL), log.n_rounds)
    counts = counts_of(law, log, "exact_interval")
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
    """Effects computed from the sample proportions, by scale."""
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
