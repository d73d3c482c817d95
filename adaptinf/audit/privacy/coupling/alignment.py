"""Shifts of the noise of one run, draw by draw, until all that it releases is what its neighbour released.

A shift is the difference of the exact sums that two runs hold at a node. It is found from the two releases of
the node, all earlier ones being equal, and must then be the same for other noise of the node: a function of
data and of what was released before, and never of the noise itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from adaptinf.audit.privacy.coupling.plays import Release, Released

MOST = 256
"""Nodes whose noise may be shifted: a design in which an outcome enters more is told to have no alignment."""
_NEAR = 1e-9
Run = Callable[[Mapping[str, int], frozenset[str], str], Released]
"""A run with noise that is shifted, another one at some nodes, and no further than a node."""


@dataclass(frozen=True)
class Alignment:
    """Shifts by node, their cost in scales as they were drawn, and why they do not do, from which round."""

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
    """The first place where two runs have different releases."""
    for place, (mine, theirs) in enumerate(zip(one, other, strict=False)):
        if repr(mine) != repr(theirs):
            return place
    return None


def _shift(one: Released, other: Released, place: int, shifts: dict[str, int], second: Run) -> str:
    """Shift the node of a release; or say why that cannot make it equal."""
    mine, theirs = one.releases[place], other.releases[place]
    told = f"release {place + 1}, {mine.name} of {mine.group!r} in round {mine.round},"
    if repr(mine._replace(value=0.0)) != repr(theirs._replace(value=0.0)):
        return f"{told} is {theirs.name} of {theirs.group!r} in round {theirs.round}, scale {theirs.scale!r}"
    node = node_of(one, place)
    if node is None or node_of(other, place) != node:
        return f"{told} has no noise of its own to be shifted"
    if one.nodes[node] != other.nodes[node]:
        return f"{told} has noise of scale {other.nodes[node]!r} in place of {one.nodes[node]!r}"
    probe = round(other.nodes[node]) + 1
    probed = second({**shifts, node: shifts.get(node, 0) + probe}, frozenset(), node)
    unit = (probed.releases[place].value - theirs.value) / probe
    shift = round((mine.value - theirs.value) / unit) if unit else 0
    if node in shifts or shift == 0:
        return f"{told} cannot be made equal by a shift of its noise in whole units"
    if abs(abs(unit) * other.nodes[node] / mine.scale - 1.0) > _NEAR:
        scale = abs(unit) * other.nodes[node]
        return f"{told} says that its noise has scale {mine.scale:.9g}, and it was drawn with {scale:.9g}"
    if len(shifts) == MOST:
        return f"more than {MOST} releases differ"
    shifts[node] = shift
    return ""


def node_of(run: Released, place: int) -> str | None:
    """The node of a release: nodes are drawn in the order of the releases that have noise."""
    noisy = [number for number, release in enumerate(run.releases) if release.scale > 0.0]
    if len(noisy) != len(run.nodes) or place not in noisy:
        return None
    return list(run.nodes)[noisy.index(place)]


def _follows_noise(shifts: Mapping[str, int], first: Run, second: Run) -> str:
    """Say where a shift would be another one at other noise of its node; nothing else differs up to there."""
    for node in shifts:
        stretched = frozenset([node])
        one, other = first({}, stretched, node), second(shifts, stretched, node)
        place = _first_difference(one.releases, other.releases)
        if place is not None and node_of(one, place) == node:
            release = one.releases[place]
            return (
                f"the shift of {node} depends on its noise: {release.name} of {release.group!r} in round "
                f"{release.round} agrees for one draw and not for another"
            )
    return ""
