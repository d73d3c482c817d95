"""Decisions of a plan with several treatments and one control: closed tests at each look.

A hypothesis states that certain treatments have no effect. Each hypothesis has its own test: at every look,
the largest standardised score of its treatments is compared with the critical value at which their joint law
spends the level of the look. A treatment is rejected once the tests of all hypotheses that contain it have
rejected, so that the probability of rejecting any treatment without effect is at most alpha.

A treatment that was dropped is no longer tested, but enters the critical values of the others as if it had
continued. The critical values are therefore valid regardless of why it was dropped.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from adaptinf.inference.group_sequential.joint_crossing import JointWalk, limits
from adaptinf.inference.group_sequential.score_process import ScoreProcesses
from adaptinf.plans.decisions import Decision, Rule, no_ends, normal_score
from adaptinf.typing import BoolArray, FloatArray, IntArray

_CLOSE = 1e-6
"""Margin for rounding errors of critical values."""
_NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """The quantities that the tests need at k looks.

    Shapes: z (k, J), scores as quantiles of the normal distribution; counted (k, J), whether a treatment
    takes part in the critical value, and tested (k, J), whether it can also be rejected; products (k, J, J),
    sums of products of the steps, continued for treatments that have left.
    """

    z: FloatArray
    counted: BoolArray
    tested: BoolArray
    products: FloatArray

    @property
    def many(self) -> int:
        """Number of treatments."""
        return int(self.z.shape[1])


class ClosedTests:
    """The tests of all hypotheses about J treatments; each is computed up to the requested look."""

    def __init__(self, scores: Scores, spent: FloatArray, sides: int) -> None:
        self.scores, self.spent, self.sides = scores, spent, sides
        self._tests: dict[tuple[int, ...], _Test] = {}

    def excess(self, members: tuple[int, ...], look: int) -> float:
        """Largest difference of score and critical value up to a look; the test rejects from 0."""
        return self._test(members).until(look)[1]

    def least(self, look: int) -> float:
        """A value below the critical values of all hypotheses at a look, which need not be computed for it.

        The probability of a score at least as large as the critical value of a look is at most the level
        spent by then.
        """
        return -float(special.ndtri(self.spent[: look + 1].sum())) - _CLOSE

    def bound(self, members: tuple[int, ...], look: int) -> float:
        """Critical value of a hypothesis at a look; infinite if it makes no test."""
        return self._test(members).until(look)[0]

    def rejected(self, j: int, look: int) -> float:
        """Smallest excess over hypotheses that contain a treatment; at least 0 means that it is rejected."""
        others = [one for one in range(self.scores.many) if one != j]
        least = math.inf
        for size in range(len(others), -1, -1):
            for some in itertools.combinations(others, size):
                least = min(least, self.excess(tuple(sorted((j, *some))), look))
                if least < 0.0:
                    return least
        return least

    def _test(self, members: tuple[int, ...]) -> _Test:
        if members not in self._tests:
            self._tests[members] = _Test(self.scores, members, self.spent, self.sides)
        return self._tests[members]


class _Test:
    """The test of one hypothesis from look to look; alpha of a look without a test is carried over."""

    def __init__(self, scores: Scores, members: tuple[int, ...], spent: FloatArray, sides: int) -> None:
        self._scores, self._spent, self._sides = scores, sides * spent, sides
        self._members = np.array(members)
        self._walk, self._carried = JointWalk(len(members)), 0.0
        self._found: list[tuple[float, float]] = []

    def until(self, look: int) -> tuple[float, float]:
        """Critical value at a look, and the largest excess up to it."""
        while len(self._found) <= look:
            self._proceed(len(self._found))
        return self._found[look]

    def _proceed(self, look: int) -> None:
        scores, members = self._scores, self._members
        most = self._found[-1][1] if self._found else -math.inf
        self._carried += float(self._spent[look])
        products = scores.products[look][np.ix_(members, members)]
        counted = scores.counted[look, members].astype(np.float64)
        if not counted.any() or not np.all(np.diag(products - self._walk.products) > 0.0):
            self._found.append((math.inf, most))
            return
        bound = self._walk.critical_value(products, counted, self._sides, self._carried)
        self._walk.proceed(products, *limits(products, counted, self._sides, bound))
        self._carried = 0.0
        z = scores.z[look, members][scores.tested[look, members]]
        size = float((np.abs(z) if self._sides == 2 else z).max(initial=-math.inf))
        self._found.append((bound, max(most, size - bound)))


@dataclass(frozen=True, slots=True, eq=False)
class SeveralCourse:
    """A trial of several treatments up to its last look so far, counted from 0.

    Shapes (J,): rejected; gone, the first look without the treatment; at, the last look at which it was
    tested, or -1. `ends` (k,) are the rounds up to each look.
    """

    decision: Decision
    look: int
    rejected: BoolArray
    gone: IntArray
    at: IntArray
    closed: ClosedTests
    ends: IntArray = field(default_factory=no_ends)

    @property
    def rounds(self) -> int:
        """Rounds up to the look."""
        return int(self.ends[self.look])

    @property
    def tests(self) -> tuple[int, ...]:
        """The looks that tested something."""
        return tuple(np.flatnonzero(self.closed.scores.tested[: self.look + 1].any(axis=1)).tolist())

    @property
    def every(self) -> tuple[int, ...]:
        """The hypothesis that no treatment has an effect."""
        return tuple(range(len(self.gone)))

    @property
    def leading(self) -> int | None:
        """The treatment with the largest score at the look, or None if no treatment was tested."""
        scores = self.closed.scores
        size = np.abs(scores.z[self.look]) if self.closed.sides == 2 else scores.z[self.look]
        tested = scores.tested[self.look]
        return int(np.where(tested, size, -math.inf).argmax()) if tested.any() else None


def left(propensities: FloatArray, codes: tuple[int, ...], looks: IntArray) -> IntArray:
    """The first look without each treatment, by its last positive propensity; propensities (T, K)."""
    starts = np.array([0, *looks[:-1]])
    possible = propensities[: looks[-1], list(codes[:-1])] > 0.0
    last = np.where(possible.any(axis=0), len(possible) - possible[::-1].argmax(axis=0), 0)
    found = np.searchsorted(starts, last, side="left")
    return np.where(found < len(looks), found, _NEVER)


class Following:
    """A trial from look to look. It stops once a look rejects a treatment, or none is left.

    `gone` (J,) is the first look without each treatment.
    """

    def __init__(self, many: int, rule: Rule) -> None:
        size = len(rule.spent), many
        none = np.zeros(size, dtype=bool)
        self._rule, self._scores = rule, Scores(np.zeros(size), none, none.copy(), np.zeros((*size, many)))
        self._tests = ClosedTests(self._scores, rule.spent, rule.sides)
        self._look, self._rejected = -1, np.zeros(many, dtype=bool)
        self._leaves: IntArray = np.full(many, _NEVER)
        self.gone = self._leaves
        self.decision: Decision = "continue"

    def proceed(self, processes: ScoreProcesses, absent: IntArray) -> None:
        """Proceed to the next look; absent (J,) is the first look without each treatment, by the log."""
        self._look += 1
        look, scores, rule = self._look, self._scores, self._rule
        self.gone = np.where(self._leaves < _NEVER, self._leaves, absent)
        self._enter(processes)
        tested = scores.tested[look]
        if self._may_reject() and self._tests.excess(tuple(range(scores.many)), look) >= 0.0:
            self._rejected = tested & np.array(
                [self._tests.rejected(j, look) >= 0.0 for j in range(scores.many)]
            )
        if self._rejected.any():
            self.decision = "reject"
        elif look < len(rule.spent) - 1:
            self._leaves[tested & (scores.z[look] <= rule.drop[look])] = look + 1
            self.gone = np.where(self._leaves < _NEVER, self._leaves, absent)
            self.decision = _futile(scores, self.gone, look, rule)
        else:
            self.decision = "no rejection" if tested.any() else "too few data"

    def _may_reject(self) -> bool:
        """Whether some score is large enough for a rejection at this look."""
        z = self._scores.z[self._look, self._scores.tested[self._look]]
        size = np.abs(z) if self._rule.sides == 2 else z
        return bool(size.max(initial=-math.inf) >= self._tests.least(self._look))

    def _enter(self, processes: ScoreProcesses) -> None:
        """The quantities that the tests need at one look."""
        look, scores = self._look, self._scores
        for j, process in enumerate(processes.each):
            size = min(float(process.effective[look]), float(process.events[look]))
            scores.counted[look, j] = size >= self._rule.least and process.clock[look] > 0.0
            if scores.counted[look, j]:
                score = process.score[look] / math.sqrt(process.clock[look])
                scores.z[look, j] = normal_score(float(score), float(process.effective[look]) - 1.0)
        scores.tested[look] = scores.counted[look] & (look < self.gone)
        found = scores.products[look]
        found[:] = processes.products[look]
        left, stay = np.flatnonzero(self.gone <= look), np.flatnonzero(self.gone > look)
        if look == 0 or not len(left) or not len(stay):
            return
        before = processes.products[look - 1, stay, stay].sum()
        growth = found[stay, stay].sum() / before if before > 0.0 else 1.0
        for j in left.tolist():
            # Its steps are as large as before, relative to those of the others, and as correlated.
            found[j, :] = found[:, j] = growth * scores.products[look - 1, j, :]

    def course(self) -> SeveralCourse:
        """The trial so far."""
        tested = self._scores.tested[: self._look + 1]
        at = np.array([_last(tested[:, j]) for j in range(self._scores.many)])
        return SeveralCourse(self.decision, self._look, self._rejected, self.gone, at, self._tests)


def follow_several(processes: ScoreProcesses, gone: IntArray, rule: Rule) -> SeveralCourse:
    """The course over the looks that a trial has reached; gone (J,), as stated in its log."""
    following = Following(processes.products.shape[1], rule)
    for _ in range(len(processes.products)):
        following.proceed(processes, gone)
        if following.decision != "continue":
            break
    return following.course()


def _futile(scores: Scores, gone: IntArray, look: int, rule: Rule) -> Decision:
    """Whether every treatment has been dropped, or has a score that is futile."""
    stay = gone > look + 1
    size = np.abs(scores.z[look]) if rule.sides == 2 else scores.z[look]
    on = stay & ~(scores.tested[look] & (size <= rule.futility[look]))
    return "continue" if on.any() else "futility"


def _last(tested: BoolArray) -> int:
    """The last look at which a test was made, or -1."""
    return int(np.flatnonzero(tested)[-1]) if tested.any() else -1
