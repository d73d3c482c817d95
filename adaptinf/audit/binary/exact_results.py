"""Exact tests of a log and their results."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from adaptinf.audit.binary.count_law import CountLaw, conditional_pvalue, unconditional_pvalue
from adaptinf.audit.binary.count_rules import FOLLOWED, Rule, allocation, path_probabilities
from adaptinf.audit.binary.count_states import (
    ALTERNATIVES,
    evidence,
    normal_pvalue,
    read_statistic,
    statistic_problems,
)
from adaptinf.audit.binary.effect_inversion import SCALES
from adaptinf.audit.rerun.logged_rows import late_problems, length_cautions
from adaptinf.audit.rerun.path_propensities import contradiction
from adaptinf.claims.logs.stopping import COUNTED
from adaptinf.claims.tables import CAUTION
from adaptinf.designs.recorded_designs import rebuilt
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.validity.profile import is_binary
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import BOOLEAN, Is, OneOf, problems_of, refuse
from adaptinf.texts import level_text

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary


# In longer trials the weights underflow, and a layer of states takes gigabytes.
LONGEST = 1000
_METHOD = "exact_test"
_SIDES = {
    "two-sided": "outcomes whose statistic is at least as large in absolute value count",
    "central": "twice the smaller one-sided p-value",
    "greater": "outcomes at least as much in favour of {one} count",
    "less": "outcomes at least as much in favour of {zero} count",
}


@dataclass(frozen=True, eq=False, slots=True)
class _OfCounts:
    """Common parts of exact results: the rule, the arms and their counts (arm 1 first), and printing."""

    design: str
    arms: tuple[Any, Any]
    pulls: tuple[int, int]
    successes: tuple[int, int]

    def _tables(self, title: str, blocks: list[tuple[list[str], list[list[str]]]]) -> ResultSummary:
        """A summary with the counts and further blocks, each with a heading and rows of equal width."""
        # The summary needs statsmodels, which is slow to import, so it is loaded only when a table is
        # printed.
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import cell_widths, format_number, text_table, total_width

        counts = [
            [str(arm), str(pulls), str(won), format_number(won / pulls) if pulls else "nan"]
            for arm, pulls, won in zip(self.arms, self.pulls, self.successes, strict=True)
        ]
        blocks = [(["", "pulls", "successes", "mean"], counts), *blocks]
        widths = [cell_widths([head, *rows], minimum=8) for head, rows in blocks]
        width = max(78, *(total_width(entry, " ") for entry in widths))
        tables = []
        for (head, rows), entry in zip(blocks, widths, strict=True):
            entry[0] += width - total_width(entry, " ")
            align = "l" + "r" * (len(head) - 1)
            tables.append(
                text_table([row[1:] for row in rows], head[1:], [row[0] for row in rows], entry, align)
            )
        return ResultSummary(title, tables, self.notes)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on how to interpret the result."""
        raise NotImplementedError

    def summary(self) -> ResultSummary:
        """Counts, results and assumptions as tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.summary().as_text())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


@dataclass(frozen=True, eq=False, slots=True)
class ExactTest(_OfCounts):
    """Exact test of the hypothesis that two arms are equally good.

    Attributes
    ----------
    design : str
        The rule under which the test is exact.
    arms : tuple of labels
        Arm 1 and arm 0: the second and the first arm of the log.
    pulls, successes : tuple of int
        Counts for arm 1 and arm 0.
    statistic : float
        Observed value of the statistic; positive if arm 1 did better.
    statistic_name, alternative : str
        The statistic that orders the outcomes, and the alternative.
    pvalue : float
        P-value given the total number of successes; the size of the test is at most alpha at every theta.
    mid_pvalue : float
        The p-value with ties counted as one half: less conservative, but the size of the test may exceed
        alpha.
    unconditional_pvalue : float
        P-value for the same alternative at the least favourable theta.
    naive_pvalue : float
        Two-sided p-value with the statistic treated as standard normal; NaN if this is not meaningful.
    mid_p : bool
        Whether `pvalue` is itself the mid-p-value, which lacks the guarantee.
    cautions : tuple of str
        Evidence in the log against an assumption.

    Notes
    -----
    The test is exact if success rates do not drift, the number of rounds was fixed in advance, and the arms
    were assigned by exactly the named design.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.2)
    >>> log = design.run(ai.environments.BernoulliArms([0.2, 0.8]), horizon=100, rng=0)
    >>> found = ai.audit.exact_test(log)
    >>> 0.0 < found.pvalue < 0.05
    True
    """

    statistic: float
    statistic_name: str
    alternative: str
    pvalue: float
    mid_pvalue: float
    unconditional_pvalue: float
    naive_pvalue: float
    mid_p: bool = False
    cautions: tuple[str, ...] = ()

    @property
    def n_rounds(self) -> int:
        """Rounds of the trial."""
        return sum(self.pulls)

    @property
    def notes(self) -> tuple[str, ...]:
        """Evidence against the p-values, their interpretation, and their assumptions."""
        one, zero = self.arms
        side = _SIDES[self.alternative].format(one=one, zero=zero)
        ties = "ties count half" if self.mid_p else "ties count in full"
        guarantee = (
            ". The size of the test may exceed alpha (with mid_p=False it cannot)"
            if self.mid_p
            else ". The size of the test is at most alpha for all success rates"
        )
        return (
            *(CAUTION(caution=one) for one in self.cautions),
            f"Given {sum(self.successes)} successes in total, by the {self.statistic_name} statistic: "
            f"{side}; {ties}{guarantee}.",
            "Assumes that success rates do not drift during the trial, not even together: drift invalidates "
            "every exact p-value here; use a randomisation test instead.",
            f"Assumes that {self.design} assigned every arm, and that the number of rounds was fixed in "
            "advance.",
        )

    def to_frame(self) -> pd.DataFrame:
        """Frame with columns test and p_value."""
        import pandas as pd

        return pd.DataFrame(self._rows(), columns=["test", "p_value"])

    def summary(self) -> ResultSummary:
        """Counts, p-values and assumptions as tables.

        Returns
        -------
        ResultSummary
            A summary with the methods as_text, as_latex, as_html, as_markdown and as_csv.
        """
        from adaptinf.inference.results.tables import format_pvalue

        tests = [[name, "", _format(p, format_pvalue)] for name, p in self._rows()]
        tests[0][1] = _value(self.statistic)
        head = ["", self.statistic_name, f"P {self.alternative}"]
        return self._tables(f"Exact test of equal arms, {self.design}", [(head, tests)])

    def _rows(self) -> list[tuple[str, float]]:
        head = "mid-p" if self.mid_p else "exact"
        rows = [(f"{head}, given the total number of successes", self.pvalue)]
        if not self.mid_p:
            rows.append(("mid-p, given the total number of successes", self.mid_pvalue))
        rows.append(("exact, maximised over the common success rate", self.unconditional_pvalue))
        return [*rows, ("normal approximation that ignores adaptivity (two-sided)", self.naive_pvalue)]


@dataclass(frozen=True, eq=False, slots=True)
class ExactInterval(_OfCounts):
    """Exact confidence intervals for the effect of one arm relative to the other.

    Attributes
    ----------
    design : str
        The rule under which the intervals are exact.
    arms : tuple of labels
        Arm 1 and arm 0: the second and the first arm of the log.
    pulls, successes : tuple of int
        Counts for arm 1 and arm 0.
    limits : dict of (float, float) by scale
        Lower and upper confidence limits.
    estimates : dict of float by scale
        Estimates from the sample proportions, not corrected for adaptive collection; NaN if undefined.
    pvalue : float
        P-value of the hypothesis of equal arms, from the test that is inverted to obtain the intervals.
    alternative : str
        ``"greater"`` gives lower limits only, and ``"less"`` upper limits only.
    alpha : float
        One minus the confidence level.
    cautions : tuple of str
        Evidence in the log against an assumption.

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.Thompson()
    >>> log = design.run(ai.environments.BernoulliArms([0.3, 0.6]), horizon=60, rng=0)
    >>> found = ai.audit.exact_interval(log, scale="difference")
    >>> bool(found.limits["difference"][0] < 0.3 < found.limits["difference"][1])
    True
    """

    limits: dict[str, tuple[float, float]]
    estimates: dict[str, float]
    pvalue: float
    alternative: str
    alpha: float
    cautions: tuple[str, ...] = ()

    @property
    def validity(self) -> str:
        """Condition under which the confidence level holds: the number of rounds was fixed in advance."""
        return "exact"

    @property
    def notes(self) -> tuple[str, ...]:
        """Evidence against the intervals, their interpretation, and their assumptions."""
        one, zero = self.arms
        lines = [
            *(CAUTION(caution=one) for one in self.cautions),
            f"The interval is exact at {self.pulls[0] + self.pulls[1]} rounds: it contains the effects of "
            f"{one} "
            f"against {zero} that the exact unconditional test does not reject.",
            "Assumes that success rates do not drift during the trial, not even together.",
            f"Assumes that {self.design} assigned every arm, and that the number of rounds was fixed in "
            "advance; the interval is invalid if the data determined the number of rounds.",
        ]
        if 0 in self.pulls:
            lines.append(
                f"{self.arms[self.pulls.index(0)]} was never pulled: the interval reflects only the design."
            )
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
            A summary with the methods as_text, as_latex, as_html, as_markdown and as_csv.
        """
        from adaptinf.inference.results.tables import format_number

        share = level_text(self.alpha)
        effects = [
            [SCALES[name].label, *(_shown(value, format_number) for value in (self.estimates[name], *limits))]
            for name, limits in self.limits.items()
        ]
        found = (["", "estimate", f"{share} low", f"{share} high"], effects)
        equal = (["", f"P {self.alternative}"], [["equal arms", f"{self.pvalue:.4f}"]])
        return self._tables(f"Exact intervals, {self.design}", [found, equal])


def rule_of(log: AdaptiveLog, design: Rule | None, *, method: str = _METHOD, longest: int = LONGEST) -> Any:
    """The rule under which a log is tested."""
    reasons = _unfit(log)
    if log.n_rounds > longest:
        reasons.append(f"it has {log.n_rounds:,} rounds, more than {longest:,}")
    if design is None and log.design is None:
        reasons.append("it does not name its design (pass design=)")
    elif design is None and log.design is not None:
        design = rebuilt(log.design)
        if design is None:
            reasons.append(f"{log.design.name} cannot be reconstructed from the log's record (pass design=)")
    if design is not None and log.n_rounds <= LONGEST:
        try:
            allocation(design, log.n_rounds)
        except ParameterError as error:
            reasons += error.problems
    if reasons:
        raise InvalidForLog(method, "; ".join(reasons), _alternatives(log))
    return design


def option_problems(log: Any, statistic: Any, alternative: Any, mid_p: Any) -> list[str]:
    """Problems with the arguments of a test."""
    return statistic_problems(statistic) + problems_of(
        alternative=(alternative, OneOf(*ALTERNATIVES)),
        mid_p=(mid_p, BOOLEAN),
        log=(log, Is(AdaptiveLog, "an AdaptiveLog")),
    )


def exact_result(
    law: CountLaw,
    log: Any,
    statistic: Any = "wald",
    alternative: str = "two-sided",
    mid_p: Any = False,
    subject: str = "ExactLaw.test",
) -> ExactTest:
    """Test a log under a distribution; `ExactLaw.test` and `exact_test` differ only in `subject`."""
    refuse(subject, option_problems(log, statistic, alternative, mid_p))
    ordering = read_statistic(subject, statistic)
    counts = counts_of(law, log, _METHOD)
    name = statistic if isinstance(statistic, str) else getattr(statistic, "__name__", "given")
    seen = float(evidence(subject, ordering, *(np.array([count]) for count in counts))[0])
    exact, halved = (
        conditional_pvalue(law, subject, counts, ordering, alternative, half) for half in (False, True)
    )
    return ExactTest(
        design=law.name,
        arms=(log.arms[1], log.arms[0]),
        pulls=(counts[0], counts[2]),
        successes=(counts[1], counts[3]),
        statistic=seen,
        statistic_name=str(name),
        alternative=alternative,
        pvalue=halved if mid_p else exact,
        mid_pvalue=halved,
        unconditional_pvalue=unconditional_pvalue(law, subject, counts, ordering, alternative),
        naive_pvalue=float(normal_pvalue(np.array(seen))) if name in ("wald", "score") else math.nan,
        mid_p=mid_p,
        cautions=length_cautions(log, COUNTED),
    )


def counts_of(law: CountLaw, log: AdaptiveLog, method: str) -> tuple[int, int, int, int]:
    """Pulls and successes of arm 1 and arm 0; logs to which the distribution does not apply are refused."""
    reasons = _unfit(log)
    if log.n_rounds != law.horizon:
        reasons.append(f"it has {log.n_rounds} rounds, but the law has {law.horizon}")
    if not reasons:
        reasons = _impossible(law, log)
    if reasons:
        raise InvalidForLog(method, "; ".join(reasons), _alternatives(log))
    action, reward = log.arrays.action, log.arrays.reward
    (n1, s1), (n0, s0) = (
        (int(np.count_nonzero(action == arm)), int(reward[action == arm].sum())) for arm in (1, 0)
    )
    return n1, s1, n0, s0


def _unfit(log: AdaptiveLog) -> list[str]:
    """Reasons why the counts of two arms do not determine the outcome of a log."""
    reasons = []
    if log.n_arms != 2:
        reasons.append(f"it has {log.n_arms} arms, not 2")
    reasons += late_problems(log)
    if not is_binary(log.arrays.reward):
        reasons.append("its rewards are not all 0 or 1")
    if log.context:
        reasons.append(f"it has contexts ({', '.join(log.context)}), and success may depend on them")
    return reasons


def _impossible(law: CountLaw, log: AdaptiveLog) -> list[str]:
    """Reasons why a log cannot have been collected under the rule."""
    action, reward = log.arrays.action, log.arrays.reward
    plan = allocation(law.rule, law.horizon)
    chance = path_probabilities(plan, action, reward)
    chosen = np.where(action == 1, chance, 1.0 - chance)
    if np.any(chosen <= 0.0):
        row = int(np.argmax(chosen <= 0.0))
        arm = log.arms[action[row]]
        return [f"{law.name} could not have chosen {arm!r} in row {row} (rows are counted from 0)"]
    if plan.tables.draws or len(plan.edges) <= law.horizon:
        return []
    return [f"{text}: it was collected under another design" for text in contradiction(log, chosen, law.name)]


def _alternatives(log: AdaptiveLog) -> tuple[str, ...]:
    ways = ["randomization_test, which re-runs any design"]
    if log.n_arms >= 2 and log.arrays.propensity is not None:
        ways.append("ArmMeans with inverse weights")
    return (*ways, f"exact tests are available for {FOLLOWED}")


def _value(statistic: float) -> str:
    return f"{statistic:.4f}" if math.isfinite(statistic) else str(statistic)


def _format(pvalue: float, form: Any) -> str:
    if math.isnan(pvalue):
        return "-"
    return str(form(math.log(pvalue))) if pvalue > 0.0 else "0"


def _shown(value: float, form: Any) -> str:
    return str(form(value)) if math.isfinite(value) else str(value)
