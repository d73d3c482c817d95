"""What an audit of privacy found."""

from __future__ import annotations

from dataclasses import dataclass

from adaptinf.guarantee import PrivacyGuarantee

__all__ = ["EpsilonLowerBound"]


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

    @property
    def refuted(self) -> bool:
        """Whether the bound exceeds what was promised."""
        return self.promised is not None and self.epsilon > self.promised.epsilon

    @property
    def tightness(self) -> float:
        """The bound as a share of the promised epsilon; NaN where none was promised."""
        return float("nan") if self.promised is None else self.epsilon / self.promised.epsilon

    def __str__(self) -> str:
        shares = [f"{hits / self.tested:.4%}" for hits in self.hits]
        lines = [
            f"epsilon >= {self.epsilon:.4f} with {100 * self.confidence:g}% confidence",
            f"audited: {self.target}",
            f"event: {self.event}",
            f"in {shares[0]} of {self.tested:,} runs on the first data set, {shares[1]} on the second",
            f"runs: {self.runs:,} on each; the event was chosen on the others",
        ]
        if self.delta > 0.0:
            lines.append(f"delta allowed for: {self.delta:g}")
        if self.promised is not None:
            verdict = "REFUTED" if self.refuted else "not refuted"
            lines.append(f"promised: {self.promised}: {verdict}")
        return "\n".join(lines)
