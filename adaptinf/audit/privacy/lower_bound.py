"""Bounds on epsilon from scores of runs on two data sets, the digits of released floats, and the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.typing import FloatArray, IntArray

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary


# More thresholds would take longer and hardly improve the bound, so beyond this number of values only
# quantiles of both tails are tried.
_CUTS = 2_048


class Found(NamedTuple):
    """The chosen event and its bound."""

    epsilon: float
    cut: float
    upper: bool
    swapped: bool
    hits: tuple[int, int]
    tested: int


def log_ratio_bound(likelier: IntArray, rarer: IntArray, runs: int, delta: float, level: float) -> FloatArray:
    """Lower bound on log((p - delta) / q) from the counts of an event, at confidence 1 - `level`."""
    # An event with probability p on one data set and q on its neighbour refutes every epsilon below log((p -
    # delta) / q).
    # Clopper, C. J. and Pearson, E. S. (1934). The use of confidence or fiducial limits illustrated in the
    # case of the binomial. Biometrika 26.
    # Ding, Z., Wang, Y., Wang, G., Zhang, D. and Kifer, D. (2018). Detecting violations of differential
    # privacy. CCS.
    likelier, rarer = np.asarray(likelier), np.asarray(rarer)
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(likelier > 0, special.betaincinv(likelier, runs - likelier + 1.0, level / 2.0), 0.0)
        high = np.where(rarer < runs, special.betaincinv(rarer + 1.0, runs - rarer, 1.0 - level / 2.0), 1.0)
        return np.asarray(np.log(np.maximum(low - delta, 0.0)) - np.log(high))


def counts_at(scores: FloatArray, cuts: FloatArray, upper: bool) -> IntArray:
    """Number of scores at or above (or at or below) each cut; `scores` are sorted."""
    if upper:
        return np.asarray(scores.size - np.searchsorted(scores, cuts, side="left"))
    return np.asarray(np.searchsorted(scores, cuts, side="right"))


def bound_from_scores(
    first: FloatArray,
    second: FloatArray,
    *,
    delta: float = 0.0,
    confidence: float = 0.999,
    decimals: int | None = 9,
    n_chosen: int | None = None,
) -> Found:
    """Choose an event on one half of the runs, and bound the ratio of its probabilities on the other.

    Shapes: first, second (runs,).
    """
    # In each direction, one half of the runs chooses the threshold with the largest bound, and the other half
    # alone provides the bound, so the choice costs no confidence. The two directions share the level
    # (Bonferroni).
    if decimals is not None:
        first, second = np.round(first, decimals), np.round(second, decimals)
    half = first.size // 2 if n_chosen is None else n_chosen
    if first.shape != second.shape or first.ndim != 1 or not 0 < half < first.size:
        raise ParameterError(
            "bound_from_scores", ["first and second must each contain one score for each of n runs"]
        )
    if np.isnan(first).any() or np.isnan(second).any():
        raise ParameterError("bound_from_scores", ["scores must not be NaN"])
    chosen = [np.sort(first[:half]), np.sort(second[:half])]
    tested = [np.sort(first[half:]), np.sort(second[half:])]
    level = (1.0 - confidence) / 2.0
    found = [_one_direction(chosen, tested, swapped, delta, level) for swapped in (False, True)]
    return max(found, key=lambda event: event.epsilon)


def _one_direction(
    chosen: list[FloatArray], tested: list[FloatArray], swapped: bool, delta: float, level: float
) -> Found:
    rarer, likelier = (1, 0) if swapped else (0, 1)
    cuts = _cuts(np.concatenate(chosen))
    best = (-np.inf, 0.0, True)
    for upper in (True, False):
        counts = [counts_at(scores, cuts, upper) for scores in chosen]
        bounds = log_ratio_bound(counts[likelier], counts[rarer], chosen[0].size, delta, level)
        place = int(np.argmax(bounds))
        best = max(best, (float(bounds[place]), float(cuts[place]), upper))
    _, cut, upper = best
    runs = tested[0].size
    hits = [int(counts_at(scores, np.array([cut]), upper)[0]) for scores in tested]
    bound = log_ratio_bound(np.array(hits[likelier]), np.array(hits[rarer]), runs, delta, level)
    return Found(max(0.0, float(bound)), cut, upper, swapped, (hits[0], hits[1]), runs)


def _cuts(scores: FloatArray) -> FloatArray:
    """Candidate thresholds: every value if there are few, otherwise quantiles, dense in both tails."""
    values = np.unique(scores)
    if values.size <= _CUTS:
        return values
    tail = np.geomspace(1.0 / scores.size, 0.5, _CUTS // 2)
    return np.asarray(np.unique(np.quantile(scores, np.r_[tail, 1.0 - tail], method="nearest")))


_BINS = 64
_DISTINCT = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScore:
    """Sum over coordinates of the log ratio of a value's frequencies in the second and first data sets."""

    values: tuple[Any, ...]
    ratios: tuple[FloatArray, ...]
    exact: tuple[bool, ...]

    def scores(self, outputs: Any) -> FloatArray:
        """Scores of the runs, an array of shape (runs,)."""
        total = np.zeros(outputs.shape[0])
        for column, (values, ratios, exact) in enumerate(
            zip(self.values, self.ratios, self.exact, strict=True)
        ):
            total += ratios[_places(outputs[:, column], values, exact)]
        return total

    def members(self, found: Found) -> Any:
        """Values of the single coordinate that form the event, most informative first."""
        ratios = np.round(self.ratios[0][:-1], 9)
        inside = ratios >= found.cut if found.upper else ratios <= found.cut
        order = np.argsort(-ratios if found.upper else ratios, kind="stable")
        return self.values[0][order[inside[order]]]

    def event(self, found: Found, subject: str) -> str:
        """Description of the event."""
        return (
            f"the log-ratio of {subject}, learned from the first quarter of the runs, is at "
            f"{'least' if found.upper else 'most'} {found.cut:.6g}"
        )


def learn(first: Any, second: Any) -> LearnedScore:
    """Learn a score from outputs on two data sets, each of shape (runs, coordinates)."""
    values, ratios, exact = [], [], []
    for column in range(first.shape[1]):
        pooled = np.concatenate([first[:, column], second[:, column]])
        seen = np.unique(pooled)
        is_exact = seen.size <= _DISTINCT
        if not is_exact:
            seen = np.unique(np.quantile(pooled, np.arange(_BINS) / _BINS))
        counts = [
            np.bincount(_places(side[:, column], seen, is_exact), minlength=seen.size + 1)
            for side in (first, second)
        ]
        values.append(seen)
        ratios.append(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
        exact.append(is_exact)
    return LearnedScore(tuple(values), tuple(ratios), tuple(exact))


def _places(outputs: Any, values: Any, exact: bool) -> Any:
    """Row of each output in a table of values (the last row for values not seen before) or of bins."""
    if not exact:
        return np.clip(np.searchsorted(values, outputs, side="right") - 1, 0, values.size - 1)
    place = np.minimum(np.searchsorted(values, outputs), values.size - 1)
    return np.where(values[place] == outputs, place, values.size)


# Zero has no set bit. This code for it exceeds the exponent of every float.
_NO_BIT = 1_024.0
_SHIFT, _STEP, _MISSING = 1_100, 4_096, 0.5
# Infinities get a code that exceeds the code of every finite float.
_INFINITE = 1e9


def lowest_bit(values: Any) -> FloatArray:
    """Exponent e of the lowest set bit of each float: the value is an odd multiple of 2 to the power e."""
    # The sum of a float and noise is rounded to the spacing of floats near the larger of the two. If noise is
    # added to 1 and the sum is near 0, the sum is a multiple of 2^-53; a sum of 0 and noise hardly ever is.
    # An observer who sees all digits thus distinguishes the two without error. Mironov, I. (2012). On
    # significance of the least significant bits for differential privacy. CCS.
    mantissa, exponent = np.frexp(np.asarray(values, dtype=np.float64))
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    _, place = np.frexp((whole & -whole).astype(np.float64))
    return np.where(whole == 0, _NO_BIT, exponent - 54.0 + place)


def bit_codes(values: Any) -> FloatArray:
    """Sign, largest power of two below, and lowest set bit of each float in a run, combined into one number.

    Shapes: values (runs, ...); returns (runs, floats).
    """
    rows = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    known = np.where(np.isfinite(rows), rows, 0.0)
    _, exponent = np.frexp(known)
    codes = np.sign(known) * ((exponent + _SHIFT) * float(_STEP) + lowest_bit(known) + _SHIFT)
    codes = np.where(np.isinf(rows), np.copysign(_INFINITE, rows), codes)
    return np.where(np.isnan(rows), _MISSING, codes)


def digits_event(found: Found, learned: LearnedScore, subject: str) -> str:
    """Description of the event, for one or several released numbers."""
    if len(learned.values) > 1:
        return learned.event(found, f"the sizes and lowest set bits of {subject}")
    codes = learned.members(found)
    more = f", or one of {codes.size - 1} other such kinds" if codes.size > 1 else ""
    return f"{subject} is {_kind(float(codes[0]))}{more}"


def _kind(code: float) -> str:
    """Description of the floating-point numbers that have this code."""
    if code in (0.0, _MISSING):
        return "zero" if code == 0.0 else "missing"
    if abs(code) == _INFINITE:
        return "plus infinity" if code > 0.0 else "minus infinity"
    exponent, lowest = divmod(int(abs(code)), _STEP)
    side = "above 0" if code > 0.0 else "below 0"
    return (
        f"{side}, of size 2^{exponent - _SHIFT - 1} to 2^{exponent - _SHIFT}, with lowest set bit "
        f"2^{lowest - _SHIFT}"
    )


@dataclass(frozen=True, slots=True)
class Finding:
    """Evidence, apart from the bound, that a design's guarantee does not hold.

    Attributes
    ----------
    check : {"replay", "noise", "public"}
        Examples are a decision that is not a function of releases and earlier actions; noise that has the
        wrong distribution, repeats, is too coarse, or is correlated with a reward or with other noise; and a
        public part that differs from the actual releases.
    text : str
        Description of the finding, where it occurred and how often.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.audit.Finding("noise", "its scale is half of what the promise needs").text
    'its scale is half of what the promise needs'
    """

    check: str
    text: str


@dataclass(frozen=True, slots=True)
class EpsilonLowerBound:
    """A lower confidence bound on epsilon, and the event that gives it.

    Attributes
    ----------
    epsilon : float
        The bound; 0 if nothing was detected.
    confidence : float
        Confidence level of the bound on epsilon.
    delta : float
        The delta of the comparison.
    runs, tested : int
        Runs on each data set, and the number of them that were not used to choose the event.
    hits : (int, int)
        Number of test runs in which the event occurred, on the first and on the second data set.
    event : str
        The event in words.
    target : str
        The target and its neighbours.
    promised : PrivacyGuarantee or None
        The guarantee with which the bound is compared.
    findings : tuple of Finding
        Findings in addition to the bound.
    looked : tuple of str
        Decisions that were recomputed and tests that were made in addition to the bound, or the reason why
        there were none.
    own_promise : bool
        Whether the guarantee is the target's own. Findings concern the target's own guarantee: they do not
        refute a weaker guarantee specified instead.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.epsilon_lower_bound(ai.privacy.Laplace(epsilon=1.0), runs=20_000, rng=0)
    >>> 0.5 < found.epsilon < 1.0
    True
    """

    epsilon: float
    confidence: float
    delta: float
    runs: int
    tested: int
    hits: tuple[int, int]
    event: str
    target: str
    promised: PrivacyGuarantee | None
    findings: tuple[Finding, ...] = ()
    looked: tuple[str, ...] = ()
    own_promise: bool = True

    @property
    def refuted(self) -> bool:
        """Whether the bound exceeds the guarantee, or a finding contradicts the target's own guarantee."""
        if self.promised is None:
            return False
        return self.epsilon > self.promised.epsilon or (self.own_promise and bool(self.findings))

    @property
    def tightness(self) -> float:
        """The bound as a share of the guaranteed epsilon; NaN if there is no guarantee, or epsilon is 0."""
        if self.promised is None or self.promised.epsilon == 0.0:
            return float("nan")
        return self.epsilon / self.promised.epsilon

    def to_frame(self) -> pd.DataFrame:
        """Frame with one row, in full precision.

        Returns
        -------
        DataFrame
            Columns target, event, epsilon (the bound), confidence, delta, runs, tested, hits_first,
            hits_second, promised (NaN without a guarantee), tightness, findings (their number) and refuted.
        """
        import pandas as pd

        row = {
            "target": self.target,
            "event": self.event,
            "epsilon": self.epsilon,
            "confidence": self.confidence,
            "delta": self.delta,
            "runs": self.runs,
            "tested": self.tested,
            "hits_first": self.hits[0],
            "hits_second": self.hits[1],
            "promised": float("nan") if self.promised is None else self.promised.epsilon,
            "tightness": self.tightness,
            "findings": len(self.findings),
            "refuted": self.refuted,
        }
        return pd.DataFrame([row])

    def summary(self) -> ResultSummary:
        """The bound, its event and the guarantee, as text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import format_number, plain_table

        bound = [
            ["epsilon at least", format_number(self.epsilon), f"{100.0 * self.confidence:g}% confidence"]
        ]
        if self.delta > 0.0:
            bound.append(["delta allowed for", f"{self.delta:g}", ""])
        if self.promised is not None:
            share = (
                ""
                if self.promised.epsilon == 0.0
                else f"; the lower bound is {self.tightness:.1%} of the promise"
            )
            verdict = "REFUTED" if self.refuted else f"not refuted{share}"
            bound.append(["promised", format_number(self.promised.epsilon), verdict])
        counts = [
            [name, f"{hits:,}", f"{self.tested:,}", f"{hits / self.tested:.6f}"]
            for name, hits in zip(("first data set", "second data set"), self.hits, strict=True)
        ]
        tables = [
            plain_table(bound, None, "lrl"),
            plain_table(counts, ["", "event", "runs", "share"], "lrrr"),
        ]
        notes = [
            f"Audited: {self.target}.",
            f"Event: {self.event}.",
            f"The event was chosen on {self.runs - self.tested:,} separate runs on each data set.",
            *(f"Found ({finding.check}): {finding.text}." for finding in self.findings),
            *self.looked,
        ]
        if self.promised is not None:
            notes.append(f"Promised: {self.promised}.")
        if not self.refuted:
            notes.append("A bound below the guarantee proves nothing: another event may reveal more.")
        return ResultSummary("Lower Bound of Epsilon", tables, notes)

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()
