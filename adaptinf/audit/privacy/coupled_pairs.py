"""Neighbouring trials of a design: which pairs are tried, their privacy cost, and whether they agree.

A shift is the difference between the exact sums of two runs at a node. The shift is computed from the two
releases of the node, given that all earlier releases are equal, and must be the same for any other noise of
the node: it is a function of the data and of earlier releases, never of the noise itself.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from adaptinf.audit.privacy.coupled_plays import (
    ANSWER,
    ARM,
    PROPENSITIES,
    RECORDS,
    GivenNoise,
    Output,
    Release,
    Released,
    SessionStage,
    Shown,
    TrialStage,
    played,
    released,
)
from adaptinf.audit.privacy.histories import (
    ENDS,
    INSIDE,
    OUTSIDE,
    History,
    NeighbouringHistory,
    Terms,
    base_history,
    neighbour,
)
from adaptinf.designs.base import Design
from adaptinf.errors import ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import refuse
from adaptinf.sessions.participants import Participants
from adaptinf.sessions.steppers import exact_problems

if TYPE_CHECKING:
    import pandas as pd

    from adaptinf.inference.results.summary import ResultSummary


_ROUNDING = 1e-12
CAVEAT = (
    "Equal outputs demonstrate an alignment for these pairs, coins and noise only. The noise is supplied, "
    "so a design whose real noise was removed would still pass: this is evidence of privacy only if the "
    "distribution, drawn scale, independence, support and lattice of the noise are tested too."
)


@dataclass(frozen=True, slots=True)
class CoupledPair:
    """Two neighbouring runs, the second of which has shifted noise.

    Attributes
    ----------
    kind : str
        How they differ: ``"value"``, ``"context"``, ``"early"``, ``"late"``, ``"never"``, ``"amended"`` or
        ``"erased"``.
    differs : str
        The difference in words.
    cost : float
        Sum of abs(shift) / scale over all draws, with the scales at which the noise was drawn.
    promised : PrivacyGuarantee
        The epsilon guaranteed for runs that differ in this way.
    shifted : int
        Number of draws whose noise is shifted.
    outputs, releases : int
        Number of outputs compared, and of releases among them.
    files : bool
        Whether the trials were also run in files, and not only as sessions.
    disagreement : str
        Description of the first output that differs, or of why noise cannot be shifted; empty if all agree.

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
        """Whether an output differs, or the cost exceeds the guarantee."""
        return not self.agrees or self.dear

    @property
    def dear(self) -> bool:
        """Whether the cost exceeds the guarantee."""
        return self.cost > self.promised.epsilon * (1.0 + _ROUNDING)


@dataclass(frozen=True, slots=True)
class Coupled:
    """Neighbouring runs with equal coins, one with noise shifted until its releases equal the other's.

    Attributes
    ----------
    target : str
        The target and the length of the trials.
    pairs : tuple of CoupledPair
        The pairs, in the order in which they were tried.

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
        """Whether an output of some pair differs, or a cost exceeds its guarantee."""
        return any(pair.refuted for pair in self.pairs)

    @property
    def cost(self) -> float:
        """The largest cost among the pairs."""
        return max(pair.cost for pair in self.pairs)

    @property
    def share(self) -> float:
        """The largest cost relative to the guarantee for its pair."""
        return max(_share(pair) for pair in self.pairs)

    @property
    def disagreement(self) -> str:
        """Description of the first output that differs; empty if all agree."""
        return next((f"{pair.differs}: {pair.disagreement}" for pair in self.pairs if not pair.agrees), "")

    def to_frame(self) -> pd.DataFrame:
        """Frame with one row per pair, in full precision.

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
        """Kinds of pairs, their largest cost and the guarantee, as text, Markdown, LaTeX, HTML or CSV."""
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
            notes.append(
                f"{filed} pairs were also run as trials stored in files, and the others as sessions."
            )
        notes.append(CAVEAT)
        return ResultSummary("Coupled Neighbouring Trials", tables, notes)

    def _findings(self) -> list[str]:
        found = [f"First disagreement: {self.disagreement}."] if self.disagreement else []
        if dear := [pair for pair in self.pairs if pair.dear]:
            worst = max(dear, key=_share)
            found.append(
                f"The largest cost exceeds the guarantee: {worst.cost:.6g} instead of at most "
                f"{worst.promised.epsilon:.6g}, where {worst.differs}."
            )
        return found

    def __str__(self) -> str:
        return self.summary().as_text()

    def _repr_html_(self) -> str:
        return self.summary().as_html()


def _share(pair: CoupledPair) -> float:
    """Cost divided by the guarantee; infinite if the cost is positive and the guarantee is zero."""
    if pair.promised.epsilon > 0.0:
        return pair.cost / pair.promised.epsilon
    return math.inf if pair.cost > 0.0 else 0.0


_NOTHING = Output("nothing", "nothing", "")
_SHOWN, _BEFORE = 120, 40


def covered(shown: Shown, kind: str, step: int, propensities: bool) -> list[Output]:
    """Outputs covered by the guarantee for neighbours of a kind, in order."""
    # Only the participant who differs receives the answers about that participant, so the guarantee need not
    # cover them. If contexts differ, it covers neither that participant's arm nor the probabilities of arms
    # by round; if outcomes arrive at other times, it does not cover outputs that show which outcomes were
    # recorded.
    record = kind == "context"
    counted = kind in ("value", "context")
    return [
        output
        for output in shown.outputs
        if not (output.step == step and (output.part == ANSWER or (record and output.part == ARM)))
        and (output.part != PROPENSITIES or (propensities and not record))
        and (output.part != RECORDS or counted)
    ]


def first_difference(one: list[Output], other: list[Output]) -> tuple[Output, str] | None:
    """The first output in which two runs differ, with a description."""
    for mine, theirs in zip_longest(one, other, fillvalue=_NOTHING):
        if mine.words != theirs.words:
            told = f"{mine.words} in one of the runs, {theirs.words} in the other"
            return (theirs if mine is _NOTHING else mine), told
        if mine.text != theirs.text:
            return mine, f"{mine.words}: {' and '.join(_apart(mine.text, theirs.text))}"
    return None


def _apart(one: str, other: str) -> tuple[str, str]:
    """Two excerpts that begin shortly before the position at which the texts diverge."""
    shorter = min(len(one), len(other))
    place = next((at for at, pair in enumerate(zip(one, other, strict=False)) if pair[0] != pair[1]), shorter)
    begin = max(place - _BEFORE, 0) if max(len(one), len(other)) > _SHOWN else 0
    dots = "..." if begin else ""
    shown = [f"{dots}{text[begin : begin + _SHOWN]}" for text in (one, other)]
    return shown[0], shown[1]


# A design in which an outcome affects more nodes than this is reported to have no alignment, which keeps the
# search finite.
MOST = 256
_NEAR = 1e-9
# The arguments are the shifts by node, the nodes whose noise is redrawn, and a node after which the run may
# stop, which saves the rest of the run.
Run = Callable[[Mapping[str, int], frozenset[str], str], Released]


@dataclass(frozen=True)
class Alignment:
    """Shifts by node, their cost, and where and why the alignment failed, if it did."""

    shifts: dict[str, int]
    cost: Fraction
    problem: str = ""
    round: int = 0


def aligned(one: Released, first: Run, second: Run) -> Alignment:
    """Shift the second run's noise until its releases are those of the first run, `one`."""
    shifts: dict[str, int] = {}
    problem, place = "", None
    while not problem:
        other = second(shifts, frozenset(), "")
        place = _first_difference(one.releases, other.releases)
        if place is None:
            break
        problem = _shift(one, other, place, shifts, second)
    cost = [Fraction(abs(shift)) / Fraction(one.nodes[node]) for node, shift in shifts.items()]
    if problem and place is not None:
        return Alignment(shifts, sum(cost, Fraction(0)), problem, one.releases[place].round)
    return Alignment(shifts, sum(cost, Fraction(0)), _follows_noise(shifts, first, second))


def _first_difference(one: list[Release], other: list[Release]) -> int | None:
    """The first position at which two runs have different releases."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if repr(mine) != repr(theirs):
            return place
    return None


def _shift(one: Released, other: Released, place: int, shifts: dict[str, int], second: Run) -> str:
    """Shift the node of a release, or explain why a shift cannot make the releases equal."""
    mine, theirs = one.releases[place], other.releases[place]
    told = f"release {place + 1}, {mine.name} of {mine.group!r} in round {mine.round},"
    if repr(mine._replace(value=0.0)) != repr(theirs._replace(value=0.0)):
        return f"{told} is {theirs.name} of {theirs.group!r} in round {theirs.round}, scale {theirs.scale!r}"
    node = node_of(one, place)
    if node is None or node_of(other, place) != node:
        return f"{told} has no noise of its own to shift"
    if one.nodes[node] != other.nodes[node]:
        return f"{told} has noise of scale {other.nodes[node]!r} instead of {one.nodes[node]!r}"
    probe = round(other.nodes[node]) + 1
    probed = second({**shifts, node: shifts.get(node, 0) + probe}, frozenset(), node)
    unit = (probed.releases[place].value - theirs.value) / probe
    shift = round((mine.value - theirs.value) / unit) if unit else 0
    if node in shifts or shift == 0:
        return f"{told} cannot be made equal in both runs by shifting its noise by whole units"
    if abs(abs(unit) * other.nodes[node] / mine.scale - 1.0) > _NEAR:
        scale = abs(unit) * other.nodes[node]
        return f"{told} reports noise of scale {mine.scale:.9g}, but it was drawn with scale {scale:.9g}"
    if len(shifts) == MOST:
        return f"more than {MOST} releases differ"
    shifts[node] = shift
    return ""


def node_of(run: Released, place: int) -> str | None:
    """The node of a release; nodes are drawn in the order of the noisy releases."""
    noisy = [number for number, release in enumerate(run.releases) if release.scale > 0.0]
    if len(noisy) != len(run.nodes) or place not in noisy:
        return None
    return list(run.nodes)[noisy.index(place)]


def _follows_noise(shifts: Mapping[str, int], first: Run, second: Run) -> str:
    """Detect a shift that depends on the noise of its own node, all else being equal up to that point."""
    for node in shifts:
        stretched = frozenset([node])
        one, other = first({}, stretched, node), second(shifts, stretched, node)
        place = _first_difference(one.releases, other.releases)
        if place is not None and node_of(one, place) == node:
            release = one.releases[place]
            return (
                f"the shift of {node} depends on its noise: {release.name} of {release.group!r} in round "
                f"{release.round} agrees for one draw but not for another"
            )
    return ""


SUBJECT = "audit.coupled"
# These kinds get additional pairs, because the cost of an alignment depends on which participant differs.
MORE = ("value", "context")
# Bases take turns in how outcomes differ, so outcomes outside the range, which are clipped, are tried as
# well.
_MOVES = (ENDS, OUTSIDE, INSIDE, OUTSIDE)


@dataclass(frozen=True)
class _Coins:
    """The terms of a pair, and the sources of its coins and its noise."""

    terms: Terms
    seed: bytes
    noise: bytes


@dataclass(frozen=True)
class PairAudit:
    """A design with its terms, and its guarantees for outcomes and for whole records."""

    design: Design
    terms: Terms
    rewards: PrivacyGuarantee
    whole: PrivacyGuarantee
    propensities: bool

    @classmethod
    def of(cls, design: Design, terms: Terms) -> PairAudit:
        """Create the audit, or refuse if there are no runs to couple."""
        participants = Participants(*terms.declared, design.domain)
        # Designs without nodes are refused below, with the reason why they cannot be coupled.
        if design.nodes is not None:
            refuse(SUBJECT, design._environment_problems(participants, terms.horizon))
        placed = design._placed(participants)
        sizes = terms.horizon, len(terms.arms)
        whole, rewards = placed.guarantee(*sizes), placed.reward_guarantee(*sizes)
        refuse(SUBJECT, noise_problems(placed) or exact_problems(placed, *sizes))
        assert whole is not None
        assert rewards is not None
        outputs = placed.traits.outputs
        shows = outputs is not None and outputs.propensities != "not covered"
        return cls(design, terms, rewards, whole, shows)

    @property
    def words(self) -> str:
        """Description of the target."""
        terms = self.terms
        window = "" if terms.window is None else f", outcome window {terms.window}"
        came = "" if terms.rounds == terms.horizon else f" of {terms.horizon:,}"
        return f"{self.design!r}, {len(terms.arms)} arms, {terms.rounds:,}{came} participants{window}"

    def fitting(self, kinds: Sequence[str]) -> tuple[str, ...]:
        """The kinds of pairs that apply."""
        return tuple(kind for kind in dict.fromkeys(kinds) if not self.unfit(kind))

    def unfit(self, kind: str) -> str:
        """The reason why a kind does not apply; empty if it does."""
        terms, name = self.terms, type(self.design).__name__
        if kind == "context" and (self.whole.unit != "record" or len(terms.features or ()) < 2):
            return f"context does not apply to {name}: its guarantee covers rewards, and contexts are public"
        if kind == "early" and terms.punctual == 0:
            return f"early does not apply to {name} with window {terms.window}: outcomes arrive immediately"
        if kind in ("late", "erased") and terms.window is None:
            return f"{kind} does not apply to {name}: it waits for each outcome and has no live trial"
        if kind == "never" and self.design.lost is None:
            return f"never does not apply to {name}, which requires every outcome"
        return ""

    def pairs(
        self,
        number: int,
        kinds: Sequence[str],
        root: np.random.Generator,
        more: int = 0,
        step: int | None = None,
    ) -> list[CoupledPair]:
        """One pair of each kind with a common base; each pair differs in the participant given by `step`."""
        # There are `more` further pairs that differ in values and contexts. They run as sessions only,
        # because trials are slow.
        terms, moved = self.terms, _MOVES[number % len(_MOVES)]
        if moved == OUTSIDE:
            terms = replace(terms, reward_range=(-np.inf, np.inf))
        if step is None:
            places = 0, min(terms.rounds // 3, terms.latest - 1)
            step = places[number] if number < len(places) else int(root.integers(0, terms.latest))
        base = base_history(terms, step, moved, root)
        coins = _Coins(terms, root.bytes(32), root.bytes(32))
        one = self._session(coins, base, {})
        filed = None if terms.window is None else self._trial(coins, base, {})
        others = [neighbour(base, terms, kind, step, moved, root) for kind in kinds]
        found = [self._pair(coins, base, other, one, filed) for other in others]
        for turn in range(more):
            for kind in [kind for kind in kinds if kind in MORE]:
                # One further participant is arbitrary. The others come late, when a design reports its
                # findings.
                place = int(root.integers(2 * terms.rounds // 3 if turn else 0, terms.rounds))
                further = neighbour(base, terms, kind, place, moved, root)
                found.append(self._pair(coins, base, further, one, None))
        return found

    def _pair(
        self, coins: _Coins, base: History, other: NeighbouringHistory, one: Shown, filed: Shown | None
    ) -> CoupledPair:
        """Align a neighbour with its base, and compare their outputs."""

        def run(history: History) -> Run:
            return lambda *how: self._released(coins, history, *how)

        found = aligned(one.released, run(base), run(other.history))
        sides = [(one, self._session(coins, other.history, found.shifts))]
        if filed is not None:
            sides.append((filed, self._trial(coins, other.history, found.shifts)))
        problems, compared = [], 0
        for pair in sides:
            mine, theirs = (covered(shown, other.kind, other.step, self.propensities) for shown in pair)
            compared += len(mine)
            if (difference := first_difference(mine, theirs)) is not None:
                problems.append(difference)
        return CoupledPair(
            kind=other.kind,
            differs=other.words,
            cost=float(found.cost),
            promised=self.whole if other.kind == "context" else self.rewards,
            shifted=len(found.shifts),
            outputs=compared,
            releases=len(one.released.releases),
            files=filed is not None,
            disagreement=_named(found, problems),
        )

    def _released(
        self,
        coins: _Coins,
        history: History,
        shifts: Mapping[str, int],
        stretched: frozenset[str],
        until: str,
    ) -> Released:
        given = GivenNoise(coins.noise, dict(shifts), stretched)
        stage = SessionStage(self.design, coins.terms, coins.seed, given)
        return released(stage, coins.terms, history, given, until)

    def _session(self, coins: _Coins, history: History, shifts: Mapping[str, int]) -> Shown:
        given = GivenNoise(coins.noise, dict(shifts))
        return played(SessionStage(self.design, coins.terms, coins.seed, given), coins.terms, history, given)

    def _trial(self, coins: _Coins, history: History, shifts: Mapping[str, int]) -> Shown:
        given = GivenNoise(coins.noise, dict(shifts))
        with tempfile.TemporaryDirectory() as folder:
            stage = TrialStage(self.design, coins.terms, coins.seed, given, Path(folder))
            try:
                return played(stage, coins.terms, history, given)
            finally:
                stage.close()


def _named(found: Alignment, problems: list[tuple[Output, str]]) -> str:
    """The first disagreement: the release that cannot be made equal, or an earlier arm."""
    if found.problem and not (problems and problems[0][0].part == ARM and problems[0][0].step < found.round):
        return found.problem
    return problems[0][1] if problems else ""


def noise_problems(design: Design) -> list[str]:
    """Reasons why a design has no noise that can be shifted, and which audits can be used instead."""
    name = type(design).__name__
    if not _promises(design):
        return [f"{name} has no privacy guarantee to check"]
    if design.nodes is not None:
        return []
    return [
        f"{name} has no whole-number noise that could be shifted ({design.inexact}): use "
        "audit.epsilon_lower_bound(design), which computes a lower bound of its epsilon from many runs"
    ]


def _promises(design: Design) -> bool:
    """Whether a design has a privacy guarantee, including guarantees that depend on the contexts."""
    try:
        return design.guarantee(max(design.needs.min_horizon, 2), max(design.needs.min_arms, 2)) is not None
    except ParameterError:
        return True
