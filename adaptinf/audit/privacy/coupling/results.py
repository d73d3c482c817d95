"""What couplings of neighbouring trials found."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from adaptinf.guarantee import PrivacyGuarantee

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary

_ROUNDING = 1e-12
CAVEAT = (
    "Equal outputs show an alignment for these pairs, coins and noise, and no more. The noise is given, so "
    "that a design passes with its real noise removed: only where law, scale as drawn, independence, support "
    "and lattice of the noise are tested too is it evidence."
)


@dataclass(frozen=True, slots=True)
class CoupledPair:
    """Two neighbouring runs, the second with shifted noise.

    Attributes
    ----------
    kind : str
        What they differ in: ``"value"``, ``"context"``, ``"early"``, ``"late"``, ``"never"``, ``"amended"``
        or ``"erased"``.
    differs : str
        In words.
    cost : float
        Sum of abs(shift) / scale over all draws, with scales as they were drawn.
    promised : PrivacyGuarantee
        What is promised where runs differ in this.
    shifted : int
        Draws whose noise is shifted.
    outputs, releases : int
        Outputs that were compared, and releases among them.
    files : bool
        Whether the trials were run in files too, and not as sessions alone.
    disagreement : str
        The first output that differs, or why noise cannot be shifted, in words; empty where all agree.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.coupled(ai.designs.PrivateUCB(epsilon=1.0), "value", pairs=1, rng=0)
    >>> found.pairs[0].kind, found.pairs[0].agrees, found.pairs[0].cost <= 1.0
    ('value', True, True)
    """

    kind: str
    differs: str
    cost: float
    promised: PrivacyGuarantee
    shifted: int
    outputs: int
    releases: int
    files: bool
    disagreement: str = ""

    @property
    def agrees(self) -> bool:
        """Whether all covered outputs are equal to the last bit."""
        return not self.disagreement

    @property
    def refuted(self) -> bool:
        """Whether an output differs, or the cost exceeds the promise."""
        return not self.agrees or self.dear

    @property
    def dear(self) -> bool:
        """Whether the cost exceeds the promise."""
        return self.cost > self.promised.epsilon * (1.0 + _ROUNDING)


@dataclass(frozen=True, slots=True)
class Coupled:
    """Neighbouring runs with equal coins, the noise of one shifted until its releases are the other's.

    Attributes
    ----------
    target : str
        What was run, and how long.
    pairs : tuple of CoupledPair
        In the order in which they were tried.

    Examples
    --------
    >>> import adaptinf as ai
    >>> found = ai.audit.coupled(ai.designs.PrivateUCB(epsilon=1.0), "value", pairs=1, rng=0)
    >>> found.refuted, found.cost <= 1.0
    (False, True)
    """

    target: str
    pairs: tuple[CoupledPair, ...]

    @property
    def refuted(self) -> bool:
        """Whether an output of some pair differs, or a cost exceeds its promise."""
        return any(pair.refuted for pair in self.pairs)

    @property
    def cost(self) -> float:
        """The largest cost of a pair."""
        return max(pair.cost for pair in self.pairs)

    @property
    def share(self) -> float:
        """The largest cost as a share of what is promised for its pair."""
        return max(_share(pair) for pair in self.pairs)

    @property
    def disagreement(self) -> str:
        """The first output that differs, in words; empty where all agree."""
        return next((f"{pair.differs}: {pair.disagreement}" for pair in self.pairs if not pair.agrees), "")

    def to_frame(self) -> pd.DataFrame:
        """Frame of one row per pair, in full precision.

        Returns
        -------
        DataFrame
            Columns target, kind, differs, cost, promised, share (cost over promise), shifted, outputs,
            releases, files, disagreement and refuted.
        """
        import pandas as pd

        rows = [
            {
                "target": self.target,
                "kind": pair.kind,
                "differs": pair.differs,
                "cost": pair.cost,
                "promised": pair.promised.epsilon,
                "share": _share(pair),
                "shifted": pair.shifted,
                "outputs": pair.outputs,
                "releases": pair.releases,
                "files": pair.files,
                "disagreement": pair.disagreement,
                "refuted": pair.refuted,
            }
            for pair in self.pairs
        ]
        return pd.DataFrame(rows)

    def summary(self) -> ResultSummary:
        """Kinds of pairs with their largest cost beside the promise: text, Markdown, LaTeX, HTML or CSV."""
        from adaptinf.inference.results.summary import ResultSummary
        from adaptinf.inference.results.tables import format_number, plain_table

        rows = []
        for kind in dict.fromkeys(pair.kind for pair in self.pairs):
            pairs = [pair for pair in self.pairs if pair.kind == kind]
            worst, agreeing = max(pairs, key=_share), sum(pair.agrees for pair in pairs)
            rows.append(
                [
                    kind,
                    f"{len(pairs)}",
                    format_number(worst.cost),
                    format_number(worst.promised.epsilon),
                    f"{sum(pair.outputs for pair in pairs):,}",
                    f"{agreeing} of {len(pairs)}" if agreeing < len(pairs) else "all agree",
                ]
            )
        head = ["neighbours", "pairs", "largest cost", "promised", "outputs compared", "agree"]
        verdict = "REFUTED" if self.refuted else "not refuted"
        tables = [
            plain_table([["promise", verdict, f"{len(self.pairs)} pairs"]], None, "lrr"),
            plain_table(rows, head, "lrrrrr"),
        ]
        notes = [f"Run: {self.target}.", *self._findings()]
        filed = sum(pair.files for pair in self.pairs)
        if filed:
            notes.append(f"{filed} pairs were run as trials in files too, the others as sessions.")
        notes.append(CAVEAT)
        return ResultSummary("Coupled Neighbouring Trials", tables, notes)

    def _findings(self) -> list[str]:
        found = [f"First disagreement: {self.disagreement}."] if self.disagreement else []
        if dear := [pair for pair in self.pairs if pair.dear]:
            worst = max(dear, key=_share)
            found.append(
                f"Cost above the promise: {worst.cost:.6g} of {worst.promised.epsilon:.6g}, where "
                f"{worst.differs}."
            )
        return found

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _share(pair: CoupledPair) -> float:
    """Cost over promise; infinite where something is paid of nothing."""
    if pair.promised.epsilon > 0.0:
        return pair.cost / pair.promised.epsilon
    return math.inf if pair.cost > 0.0 else 0.0
