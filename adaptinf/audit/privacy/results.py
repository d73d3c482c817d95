"""What an audit of privacy found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptinf.guarantee import PrivacyGuarantee

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that keeps a design's promise from being proved, whatever the bound is.

    Attributes
    ----------
    check : {"replay", "noise", "public"}
        A decision that is not a function of releases and earlier actions; or noise that has another law than
        the promise needs, comes again, is too coarse, or goes with a reward or with other noise; or a public
        part that is not what was released.
    text : str
        In words: what, where and how often.

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
    """A lower confidence bound of epsilon, and the event that gives it.

    Attributes
    ----------
    epsilon : float
        The bound; 0 where nothing was found.
    confidence : float
        With which the true epsilon is at least that large.
    delta : float
        The delta that was allowed for.
    runs, tested : int
        Runs on each data set, and those among them that were not used to choose the event.
    hits : (int, int)
        Runs with the event among the tested ones, on the first and on the second data set.
    event : str
        In words.
    target : str
        What was audited, and on which neighbours.
    promised : PrivacyGuarantee or None
        What the bound is held against.
    findings : tuple of Finding
        What was found beside the bound.
    looked : tuple of str
        What was recomputed and tested beside the bound, in words, or why nothing was.
    own_promise : bool
        Whether the promise is the target's own. What is found speaks of that one: it does not refute a weaker
        promise that was given in its place.

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
        """Whether the bound exceeds the promise, or something was found against one of the target's own."""
        if self.promised is None:
            return False
        return self.epsilon > self.promised.epsilon or (self.own_promise and bool(self.findings))

    @property
    def tightness(self) -> float:
        """The bound as a share of the promised epsilon; NaN where none was promised, or an epsilon of 0."""
        if self.promised is None or self.promised.epsilon == 0.0:
            return float("nan")
        return self.epsilon / self.promised.epsilon

    def to_frame(self) -> pd.DataFrame:
        """Frame of one row, in full precision.

        Returns
        -------
        DataFrame
            Columns target, event, epsilon (the bound), confidence, delta, runs, tested, hits_first,
            hits_second, promised (NaN where nothing was), tightness, findings (their number) and refuted.
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
        """The bound, its event and the promise, as text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import format_number, plain_table

        bound = [
            ["epsilon at least", format_number(self.epsilon), f"{100.0 * self.confidence:g}% confidence"]
        ]
        if self.delta > 0.0:
            bound.append(["delta allowed for", f"{self.delta:g}", ""])
        if self.promised is not None:
            share = "" if self.promised.epsilon == 0.0 else f"; the bound is {self.tightness:.1%} of it"
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
            f"Chosen on {self.runs - self.tested:,} further runs on each data set.",
            *(f"Found ({finding.check}): {finding.text}." for finding in self.findings),
            *self.looked,
        ]
        if self.promised is not None:
            notes.append(f"Promised: {self.promised}.")
        if not self.refuted:
            notes.append("A bound below the promise proves nothing: another event may reveal more.")
        return ResultSummary("Lower Bound of Epsilon", tables, notes)

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()
