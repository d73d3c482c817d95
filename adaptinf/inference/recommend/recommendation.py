"""Which methods are valid for a log, in which order, and why."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real
from typing import TYPE_CHECKING, Any

from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.choice import arm_codes, decay_problems
from adaptinf.inference.arms.question import Question
from adaptinf.inference.inputs.arguments import require_data, require_log
from adaptinf.inference.recommend.rows import (
    Method,
    arm_rows,
    batches_told,
    cate_rows,
    contexts_told,
    exact_fact,
    policy_rows,
    projection_rows,
    sequence_rows,
    smallest_propensity,
)
from adaptinf.inference.validity.profile import profile_of
from adaptinf.log.promises import source_note
from adaptinf.parameters import NON_NEGATIVE, OneOf, refuse
from adaptinf.texts import absent

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.base import Results
    from adaptinf.inference.results.summary import ResultSummary
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums

_TARGETS = ("arm-means", "contrast", "cate", "policy-value")
_BY_ARM = ("arm-means", "contrast")
_OWN = {
    "arm-means": ("arms",),
    "contrast": ("treatment", "control"),
    "cate": ("by", "formula", "trusted", "treatment", "control", "rounds"),
    "policy-value": ("policy", "snapshots"),
}
_LENGTHS = (
    "Length: of the 95% intervals to be expected, over that of the first method; by counts, propensities and "
    "the mean and variance of all rewards together, never by an arm's own."
)
_STOPPED = "it holds at a number of rounds that was fixed in advance, and the data chose it"


@dataclass(frozen=True, slots=True, eq=False)
class Recommendation:
    """Every method for a target, the valid ones first; made by `recommend`.

    Attributes
    ----------
    target : str
        What is to be estimated.
    methods : tuple of Method
        In order.
    facts : tuple of (str, str)
        What was read from the log.
    """

    target: str
    methods: tuple[Method, ...]
    facts: tuple[tuple[str, str], ...]

    @property
    def best(self) -> Method:
        """The first method.

        Raises
        ------
        InvalidForLog
            If none is valid.
        """
        first = self.methods[0]
        if not first.verdict.valid:
            reasons = dict.fromkeys(method.verdict.reason for method in self.methods)
            ways = ["recommend with another target="] if self.target != "cate" else []
            raise InvalidForLog(f"any method for {self.target}", "; ".join(reasons), ways)
        return first

    @property
    def frame(self) -> pd.DataFrame:
        """One row per method: method, label, length, call, reason, assumes and warning.

        The length is that of the 95% intervals to be expected, over that of the first method: by counts,
        propensities, and the mean and variance of all rewards together, never of an arm's.
        """
        import pandas as pd

        return pd.DataFrame(
            {
                "method": [one.verdict.name for one in self.methods],
                "label": [one.verdict.label for one in self.methods],
                "length": self._lengths(),
                "call": [one.call for one in self.methods],
                "reason": [one.verdict.reason for one in self.methods],
                "assumes": [one.verdict.assumes for one in self.methods],
                "warning": [one.verdict.warning for one in self.methods],
            }
        )

    def _lengths(self) -> list[float]:
        """Expected lengths over that of the first method; NaN where they are not known."""
        first = self.methods[0].verdict.length
        known = math.isfinite(first) and first > 0.0
        return [one.verdict.length / first if known else math.nan for one in self.methods]

    def fit(self, method: str | None = None) -> Results:
        """Run a method.

        Parameters
        ----------
        method : str, optional
            Its name in the frame; by default the best.

        Returns
        -------
        Results
            Of the call in the frame.

        Raises
        ------
        ParameterError
            If there is no such method.
        InvalidForLog
            If it is not valid for the log.
        """
        if method is None:
            return self.best.run()
        found = {one.verdict.name: one for one in self.methods}
        if method not in found:
            raise ParameterError("Recommendation.fit", [absent("method", method, found)])
        chosen = found[method]
        if not chosen.verdict.valid:
            ways = [one.verdict.name for one in self.methods if one.verdict.valid][:3]
            raise InvalidForLog(method, chosen.verdict.reason, ways)
        return chosen.run()

    def summary(self) -> ResultSummary:
        """The table, with numbered notes that methods may share: as text, Markdown, LaTeX or HTML."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import plain_table

        notes = list(dict.fromkeys(map(_note, self.methods)))
        rows = [
            [
                str(place),
                one.verdict.name,
                one.verdict.label,
                "" if math.isnan(length) else f"{length:.2f}",
                f"[{notes.index(_note(one)) + 1}]",
            ]
            for place, (one, length) in enumerate(zip(self.methods, self._lengths(), strict=True), start=1)
        ]
        first = self.methods[0]
        chosen = first.call if first.verdict.valid else "none is valid"
        facts = plain_table([*map(list, self.facts), ["First choice", chosen]], None, "ll")
        table = plain_table(rows, ["", "method", "label", "length", "note"], "rllrl")
        if any(row[3] for row in rows):
            notes.append(_LENGTHS)
        return ResultSummary(f"Methods for {self.target}", [facts, table], notes)

    def __str__(self) -> str:
        return self.summary().as_text()

    def __repr__(self) -> str:
        valid = [one for one in self.methods if one.verdict.valid]
        first = repr(valid[0]) if valid else "none is valid"
        return f"<Recommendation for {self.target}: {len(valid)} of {len(self.methods)} valid; {first}>"

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def recommend(
    log: AdaptiveLog | Sums,
    target: str = "arm-means",
    *,
    arms: Sequence[Any] | None = None,
    treatment: Any = None,
    control: Any = None,
    by: str | Sequence[str] | None = None,
    formula: str | None = None,
    trusted: bool | None = None,
    rounds: Any = None,
    policy: Any = None,
    snapshots: Any = None,
    decay: float | None = None,
    stopping: str = "fixed",
    stability: Any = None,
) -> Recommendation:
    """Rate the validity of every method for a target on this log.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    target : {"arm-means", "contrast", "cate", "policy-value"}
        What is to be estimated.
    arms : sequence of labels, optional
        For arm means: the arms of interest, by default all.
    treatment, control : label, optional
        For contrasts and effects within groups: the arms. With two arms the second is the treatment.
    by : str or sequence of str, optional
        For effects: the columns that make the groups.
    formula : str, optional
        For effects: covariates, in place of groups.
    trusted : bool, optional
        For effects by a formula: compute any Python in it, as for `CATE.from_formula`.
    rounds : str or array_like of bool, optional
        For effects: rounds whose arm was drawn at random, as for `CATE`.
    policy, snapshots : optional
        For policy values, as for `PolicyValue`.
    decay : float, optional
        Exponent in [0, 1) of the propensity floor t^-decay, fixed in advance, where the log's design does not
        state it.
    stopping : {"fixed", "data-chosen"}
        Whether the number of rounds was fixed in advance. Where the data chose it, sequences alone are valid.
    stability : float or result of `audit.stability`, optional
        Coefficient of variation of re-simulated arm counts, the largest over the arms; a result must be of
        the log's arms and number of rounds. Up to 0.1 sample means count as asymptotically normal.

    Returns
    -------
    Recommendation
        Prints as a table with a reason for every method; `best` is the first, `fit` runs it.

    Raises
    ------
    ParameterError
        If an argument makes no sense, or belongs to another target.

    Notes
    -----
    The order does not look at estimates: choosing the shortest of several intervals would spoil it. Lengths
    are expected ones, by counts, propensities and the pooled mean and variance of the rewards, on a log
    without drift; sequences stand in their order, other methods by what they assume. Of many arms some
    stand for all. Without arguments ``ArmMeans(log).fit()`` and ``Contrast(log, ...).fit()`` take the first
    method of their class.

    References
    ----------
    Hadad, Hirshberg, Zhan, Wager, Athey (2021), "Confidence intervals for policy evaluation in adaptive
    experiments". Ying, Khamaru, Zhang (2023), "Adaptive linear estimating equations". Neel, Roth (2018),
    "Mitigating bias in adaptive data gathering via differential privacy".

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
    >>> table = ai.recommend(log)
    >>> table.best
    ArmMeans(log).fit(estimator='alee', stationary=True)  # asymptotic
    >>> table.frame.groupby("label").size().to_dict()
    {'anytime': 5, 'asymptotic': 3, 'not valid': 21}
    >>> table.fit().estimator
    'alee'
    """
    log = _readable(log, target, formula)
    given = {"arms": arms, "treatment": treatment, "control": control, "by": by, "formula": formula}
    given |= {"trusted": trusted, "rounds": rounds, "policy": policy, "snapshots": snapshots}
    variation = _check(log, target, given, decay, stopping, stability)
    if target in ("contrast", "cate"):
        treatment, control = _pair(log, treatment, control)
    pair = {"treatment": treatment, "control": control}
    rows, always = [], []
    if target in _BY_ARM:
        contrast = target == "contrast"
        codes = arm_codes("recommend", log, (treatment, control) if contrast else arms)
        own: dict[str, Any] = pair if contrast else {"arms": arms}
        rows = arm_rows(Question(profile_of(log), codes, contrast, decay, variation), own)
        always = [] if profile_of(log).incomplete else sequence_rows(log, target, own)
    elif target == "policy-value":
        rows, always = policy_rows(log, policy, snapshots), sequence_rows(log, target, {"policy": policy})
    elif by is not None:
        rows = cate_rows(log, {"by": by, **pair, "rounds": rounds})
    else:
        rows = projection_rows(log, {"formula": formula, **pair, "rounds": rounds, "trusted": trusted}, decay)
    if stopping == "data-chosen":
        rows = [_at_fixed_rounds(row) for row in rows]
    rows = sorted([*rows, *always], key=lambda row: (not row.verdict.valid, row.verdict.rank))
    exact = exact_fact(log) if stopping == "fixed" and target in _BY_ARM else ()
    return Recommendation(target, tuple(rows), (*_facts(log, stopping, variation), *exact))


def _readable(log: object, target: Any, formula: Any) -> AdaptiveLog:
    """A log, or sums for the targets that these allow."""
    if target in _BY_ARM or (target == "cate" and formula is None):
        return require_data("recommend", log)
    return require_log("recommend", log, incomplete=True)


def _at_fixed_rounds(row: Method) -> Method:
    """What a method that holds at a fixed number of rounds is worth where the data chose it."""
    if not row.verdict.valid:
        return row
    stopped = replace(row.verdict, label="not valid", reason=_STOPPED, baseline=True, length=math.nan)
    return replace(row, verdict=stopped)


def _pair(log: AdaptiveLog, treatment: Any, control: Any) -> tuple[Any, Any]:
    from adaptinf.inference.effects.question import arm_pair

    treatment, control, problems = arm_pair(log, treatment, control)
    refuse("recommend", problems)
    return treatment, control


def _check(
    log: AdaptiveLog, target: Any, given: dict[str, Any], decay: Any, stopping: Any, stability: Any
) -> float | None:
    problems = OneOf(*_TARGETS)("target", target)
    problems += OneOf("fixed", "data-chosen")("stopping", stopping)
    if target in _TARGETS:
        own = _OWN[target]
        for name, value in given.items():
            if value is not None and name not in own:
                problems.append(f"{name} does not belong to target={target!r}: leave it out")
        if target == "policy-value" and given["policy"] is None:
            problems.append("target='policy-value' needs policy=")
        if target == "cate" and (given["by"] is None) == (given["formula"] is None):
            problems.append("target='cate' needs by= (columns that make groups) or formula=, one of them")
    if decay is not None:
        problems += decay_problems(decay)
    runs = all(hasattr(stability, name) for name in ("variation", "frame", "horizon"))
    variation = stability.variation if runs else stability
    if variation is not None and (isinstance(variation, bool) or not isinstance(variation, Real)):
        problems.append("stability must be what audit.stability returns, or a coefficient of variation")
    elif variation is not None:
        problems += NON_NEGATIVE("stability", variation)
    if runs:
        problems += _other_runs(log, stability)
    refuse("recommend", problems)
    return None if variation is None else float(variation)


def _other_runs(log: AdaptiveLog, found: Any) -> list[str]:
    """What is wrong with re-simulated counts that are of another experiment than the log's."""
    problems = []
    arms = list(found.frame["arm"])
    if set(arms) != set(log.arms):
        problems.append(f"stability is of the arms {arms!r:.200}, those of the log are {log.arms!r:.200}")
    if found.horizon != log.n_rounds:
        problems.append(f"stability is of {found.horizon} rounds, the log has {log.n_rounds}")
    return problems


def _facts(log: AdaptiveLog, stopping: str, variation: float | None) -> tuple[tuple[str, str], ...]:
    profile, known = profile_of(log), "none"
    if profile.knows_propensities:
        which = "every arm's" if profile.knows_every_propensity else "the chosen arm's"
        known = f"{which}, {log.propensity_status}, smallest {smallest_propensity(log):.2g}"
        decay = profile.floor_decay
        known += "" if decay is None else f", floor falls like t^-{decay:g}"
    guarantee = log.reward_guarantee or log.guarantee
    span = log.reward_range
    bounded = span is not None and all(math.isfinite(end) for end in span)
    facts = [
        ("Design", profile.design_title or "unknown"),
        ("Rounds", f"{log.n_rounds}, stopping {stopping}"),
        ("Propensities", known),
        ("Batches", batches_told(log)),
        ("Contexts", contexts_told(log)),
        (
            "Rewards",
            f"within [{span[0]:g}, {span[1]:g}]" if bounded and span is not None else "no known bounds",
        ),
        ("Guarantee", "none" if guarantee is None else f"{guarantee}{source_note(log.guarantee_source)}"),
    ]
    if variation is not None:
        facts.append(("Arm counts", f"vary by {variation:.1%} of their median"))
    return tuple(facts)


def _note(method: Method) -> str:
    verdict = method.verdict
    parts = [f"{verdict.reason[:1].upper()}{verdict.reason[1:]}."]
    parts += [f"Assumes: {verdict.assumes}."] if verdict.assumes else []
    parts += [f"Caution: {verdict.warning}."] if verdict.warning else []
    return " ".join(parts)
