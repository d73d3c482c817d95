"""Exact tests of a log, and what they found."""

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

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary


# Longest trial: beyond it weights leave the range of floats, and a layer takes gigabytes.
LONGEST = 1000
_METHOD = "exact_test"
_SIDES = {
    "two-sided": "outcomes with a statistic as large in absolute value count",
    "central": "twice the smaller one-sided p-value",
    "greater": "outcomes at least as much in favour of {one} count",
    "less": "outcomes at least as much in favour of {zero} count",
}


@dataclass(frozen=True, eq=False, slots=True)
class _OfCounts:
    """What exact results share: the rule, the arms and their counts, arm 1 first, and how they are shown."""

    design: str
    arms: tuple[Any, Any]
    pulls: tuple[int, int]
    successes: tuple[int, int]

    def _tables(self, title: str, blocks: list[tuple[list[str], list[list[str]]]]) -> ResultSummary:
        """A summary of the counts and of further blocks of a head and rows, all as wide."""
        # statsmodels takes a while to load
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
        """What has to be known to read the result."""
        raise NotImplementedError

    def summary(self) -> ResultSummary:
        """Counts, what was found and its assumptions as tables."""
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self.summary().as_text())

    def _repr_html_(self) -> str:
        return str(self.summary().as_html())


@dataclass(frozen=True, eq=False, slots=True)
class ExactTest(_OfCounts):
    """Exact test that two arms are equally good.

    Attributes
    ----------
    design : str
        The rule under which the test is exact.
    arms : tuple of labels
        Arm 1 and arm 0: the second and the first arm of the log.
    pulls, successes : tuple of int
        Of arm 1 and arm 0.
    statistic : float
        Of the outcome; positive where arm 1 did better.
    statistic_name, alternative : str
        What ordered the outcomes, and which of them count.
    pvalue : float
        Given the total number of successes: its size is at most alpha at every theta.
    mid_pvalue : float
        The same with ties counted by half: less conservative, and without that guarantee.
    unconditional_pvalue : float
        For the same alternative, at the theta that is worst for the statistic.
    naive_pvalue : float
        With the statistic taken for standard normal, two-sided; NaN where it is not one that could be.
    mid_p : bool
        Whether `pvalue` itself is the mid-p-value, without the guarantee.
    cautions : tuple of str
        What the log states against an assumption.

    Notes
    -----
    Exact where success rates do not drift, the number of rounds was fixed in advance, and the arms were drawn
    by the very design named.

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
        """What speaks against the p-values, what they mean, and what they assume."""
        one, zero = self.arms
        side = _SIDES[self.alternative].format(one=one, zero=zero)
        ties = "ties count by half" if self.mid_p else "ties count in full"
        guarantee = (
            ", so that the size may exceed alpha (take mid_p=False for a test that keeps it)"
            if self.mid_p
            else ": its size is at most alpha whatever the success rates are"
        )
        return (
            *(CAUTION(caution=one) for one in self.cautions),
            f"Given {sum(self.successes)} successes in all, by the {self.statistic_name} statistic: {side}; "
            f"{ties}{guarantee}.",
            "Assumes success rates that do not drift over the trial, not even together: drift breaks every "
            "exact p-value here, and a randomisation test is the way out.",
            f"Assumes that {self.design} drew every arm, and a number of rounds fixed in advance.",
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
            With as_text, as_latex, as_html, as_markdown and as_csv.
        """
        from adaptinf.inference.results.tables import format_pvalue

        tests = [[name, "", _format(p, format_pvalue)] for name, p in self._rows()]
        tests[0][1] = _value(self.statistic)
        head = ["", self.statistic_name, f"P {self.alternative}"]
        return self._tables(f"Exact test of equal arms, {self.design}", [(head, tests)])

    def _rows(self) -> list[tuple[str, float]]:
        head = "mid-p" if self.mid_p else "exact"
        rows = [(f"{head}, given all successes", self.pvalue)]
        if not self.mid_p:
            rows.append(("mid-p, given all successes", self.mid_pvalue))
        rows.append(("exact, at the worst success rate", self.unconditional_pvalue))
        return [*rows, ("normal, as if not adaptive (two-sided)", self.naive_pvalue)]


@dataclass(frozen=True, eq=False, slots=True)
class ExactInterval(_OfCounts):
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
        from adaptinf.inference.results.tables import format_number

        share = f"{100.0 * (1.0 - self.alpha):g}%"
        effects = [
            [SCALES[name].label, *(_shown(value, format_number) for value in (self.estimates[name], *limits))]
            for name, limits in self.limits.items()
        ]
        found = (["", "estimate", f"{share} low", f"{share} high"], effects)
        equal = (["", f"P {self.alternative}"], [["equal arms", f"{self.pvalue:.4f}"]])
        return self._tables(f"Exact intervals, {self.design}", [found, equal])


def rule_of(log: AdaptiveLog, design: Rule | None, *, method: str = _METHOD, longest: int = LONGEST) -> Any:
    """The rule under which a log is to be tested."""
    reasons = _unfit(log)
    if log.n_rounds > longest:
        reasons.append(f"it has {log.n_rounds:,} rounds, more than {longest:,}")
    if design is None and log.design is None:
        reasons.append("it does not name its design (give design=)")
    elif design is None and log.design is not None:
        design = rebuilt(log.design)
        if design is None:
            reasons.append(f"{log.design.name} cannot be made from the log's record (give design=)")
    if design is not None and log.n_rounds <= LONGEST:
        try:
            allocation(design, log.n_rounds)
        except ParameterError as error:
            reasons += error.problems
    if reasons:
        raise InvalidForLog(method, "; ".join(reasons), _alternatives(log))
    return design


def option_problems(log: Any, statistic: Any, alternative: Any, mid_p: Any) -> list[str]:
    """What is wrong with the arguments of a test."""
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
    """Test a log under a law; see `ExactLaw.test`, and `exact_test`, which is another subject of errors."""
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
    """Pulls and successes of arm 1 and arm 0 of a log that the law describes; others are refused."""
    reasons = _unfit(log)
    if log.n_rounds != law.horizon:
        reasons.append(f"it has {log.n_rounds} rounds, the law {law.horizon}")
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
    """Why the outcome of a log is not the counts of two arms."""
    reasons = []
    if log.n_arms != 2:
        reasons.append(f"it has {log.n_arms} arms, not 2")
    reasons += late_problems(log)
    if not is_binary(log.arrays.reward):
        reasons.append("its rewards are not all 0 or 1")
    if log.context:
        reasons.append(f"it has contexts ({', '.join(log.context)}), on which success may depend")
    return reasons


def _impossible(law: CountLaw, log: AdaptiveLog) -> list[str]:
    """Why a log cannot have been gathered by a rule."""
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
    return [f"{text}: it was gathered by another design" for text in contradiction(log, chosen, law.name)]


def _alternatives(log: AdaptiveLog) -> tuple[str, ...]:
    ways = ["randomization_test, which re-runs any design"]
    if log.n_arms >= 2 and log.arrays.propensity is not None:
        ways.append("ArmMeans with inverse weights")
    return (*ways, f"exact tests follow {FOLLOWED}")


def _value(statistic: float) -> str:
    return f"{statistic:.4f}" if math.isfinite(statistic) else str(statistic)


def _format(pvalue: float, form: Any) -> str:
    if math.isnan(pvalue):
        return "-"
    return str(form(math.log(pvalue))) if pvalue > 0.0 else "0"


def _shown(value: float, form: Any) -> str:
    return str(form(value)) if math.isfinite(value) else str(value)
