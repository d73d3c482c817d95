"""Critical values for repeated looks at a trial, and the properties of tests that use them.

References
----------
Jennison, Turnbull (2000), "Group Sequential Methods with Applications to Clinical Trials". Pampallona,
Tsiatis (1994), "Group sequential designs for one-sided and two-sided hypothesis testing with provision for
early stopping in favor of the null hypothesis" (futility).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, special

from adaptinf.inference.group_sequential.crossing import Walk, crossing
from adaptinf.inference.group_sequential.spending import SHAPES, SPENDING
from adaptinf.parameters import FINITE, POSITIVE, Is, OneOf, alpha_problems, number_array, problems_of, refuse
from adaptinf.typing import FloatArray

# The search for critical values ends here, because a normal variable exceeds this with probability 1e-299.
_LARGEST = 37.0
_EXACT = 1e-13


def spending_bounds(
    fractions: ArrayLike,
    alpha: float = 0.05,
    sides: int = 2,
    spending: str = "lan-demets-obrien-fleming",
    *,
    gamma: float = -4.0,
    rho: float = 2.0,
) -> FloatArray:
    """Critical values of z for each look, for which a true null is rejected with overall probability alpha.

    Parameters
    ----------
    fractions : array_like of float, shape (k,)
        Information at each look divided by the information planned for the last look: ascending numbers in
        (0, 1]. For a fixed allocation, these are shares of the participants.
    alpha : float
        Level of the test, between 0 and 0.5.
    sides : {2, 1}
        Whether the test is two-sided, with alpha / 2 on either side, or one-sided.
    spending : {"lan-demets-obrien-fleming", "lan-demets-pocock", "hwang-shih-decani", "power", \
"obrien-fleming", "pocock"}
        How alpha is spent. The last two are the classical designs, with critical values that are proportional
        to 1 / sqrt(fraction) and constant, respectively. The classical designs require the fractions of all
        looks, whereas the others require only those of the looks so far.
    gamma : float
        Parameter of the Hwang-Shih-DeCani family. Negative values spend little alpha at early looks; -4 is
        close to O'Brien and Fleming's design, and 1 to Pocock's.
    rho : float
        Exponent of the power family, above 0.

    Returns
    -------
    ndarray of shape (k,)
        The null is rejected at a look if z, or for two-sided tests its absolute value, exceeds the entry. An
        entry is infinite if no alpha can be spent at that look.

    Raises
    ------
    ParameterError
        If arguments are invalid; the message lists every problem.

    Notes
    -----
    The z statistics of a trial with independent increments, such as those of `Plan`, are jointly normal with
    correlations sqrt(fraction of the earlier look over that of the later look).

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.spending_bounds([0.2, 0.4, 0.6, 0.8, 1.0]).round(4).tolist()
    [4.8769, 3.357, 2.6803, 2.2898, 2.031]
    >>> ai.spending_bounds([0.5, 1.0], spending="pocock").round(4).tolist()
    [2.1783, 2.1783]
    """
    known = number_array(fractions)
    problems = [*alpha_problems(alpha), *fraction_problems(known, fractions)]
    problems += problems_of(
        sides=(sides, Is(lambda sides: sides in (1, 2), "1 or 2")),
        spending=(spending, OneOf(*SPENDING, *SHAPES)),
        gamma=(gamma, FINITE),
        rho=(rho, POSITIVE),
    )
    refuse("spending_bounds", problems)
    assert known is not None
    level = alpha / sides
    if spending in SHAPES:
        return classical_bounds(known, level, sides, SHAPES[spending])
    spent = SPENDING[spending](known, level, gamma if spending == "hwang-shih-decani" else rho)
    return bounds_of_spent(known, np.diff(spent, prepend=0.0), sides)


def fraction_problems(known: FloatArray | None, given: Any) -> list[str]:
    """Problems with the fractions of looks."""
    if known is None or known.ndim != 1 or not len(known) or not np.all(np.isfinite(known)):
        return [f"fractions must be numbers, one for each look, got {given!r:.80}"]
    if known[0] <= 0.0 or np.any(np.diff(known) <= 0.0) or known[-1] > 1.0:
        return [f"fractions must be increasing numbers above 0 and at most 1, got {given!r:.80}"]
    return []


def bounds_of_spent(
    information: FloatArray, spent: FloatArray, sides: int, lower: FloatArray | None = None
) -> FloatArray:
    """Upper critical values for which each look spends its share; all arrays have shape (k,).

    In two-sided tests, the continuation region extends down to minus the critical value. In one-sided tests,
    it extends down to `lower`, or has no lower limit if `lower` is None.
    """
    walk, found = Walk(), np.full(len(spent), np.inf)
    for look, (size, may) in enumerate(zip(information.tolist(), spent.tolist(), strict=True)):
        root = math.sqrt(size)
        if may > 0.0:
            found[look] = critical_value(walk.above, size, may)
        low = -np.inf if lower is None else lower[look]
        walk.proceed(size, root * (-found[look] if sides == 2 else low), root * found[look])
    return found


def critical_value(tail: Callable[[float, float], float], size: float, probability: float) -> float:
    """Critical value that z exceeds at a look with this probability; infinite if it is too small."""
    if probability <= 0.0:
        return math.inf
    root, aim = math.sqrt(size), math.log(probability)

    @cache
    def excess(bound: float) -> float:
        return math.log(max(tail(size, bound * root), 1e-320)) - aim

    # Without drift, z alone exceeds the critical value with at least this probability.
    most = -float(special.ndtri(probability))
    if math.isfinite(most) and excess(most) <= 0.0 <= excess(most - 0.5):
        return float(optimize.brentq(excess, most - 0.5, most, xtol=_EXACT))
    if excess(_LARGEST) > 0.0 or excess(-_LARGEST) < 0.0:
        return math.inf if excess(_LARGEST) > 0.0 else -math.inf
    return float(optimize.brentq(excess, -_LARGEST, _LARGEST, xtol=_EXACT))


def classical_bounds(information: FloatArray, level: float, sides: int, exponent: float) -> FloatArray:
    """Critical values that are proportional to a power of the information; information and result (k,)."""
    shape = (information / information[-1]) ** exponent
    none = np.full(len(shape), -np.inf)

    def excess(constant: float) -> float:
        upper = constant * shape
        return float(crossing(-upper if sides == 2 else none, upper, information)[1].sum()) - level

    # The constant is at least that of a single look and at most Bonferroni's at the smallest entry of the
    # shape, so these bracket the root.
    low, high = -special.ndtri(level) / shape.max(), -special.ndtri(level / len(shape)) / shape.min()
    return np.asarray(optimize.brentq(excess, low - 1e-9, high + 1e-9, xtol=_EXACT) * shape)


@dataclass(frozen=True, slots=True, eq=False)
class Boundary:
    """A test with several looks; information, lower and upper have shape (k,).

    The null is rejected above the upper critical values of z and, if the test is two-sided, below the lower
    critical values. In a one-sided test, the lower critical values are for futility. Unless they are binding,
    a trial may continue below them, and levels and p-values do not depend on them.
    """

    information: FloatArray
    lower: FloatArray
    upper: FloatArray
    sides: int
    binding: bool = True

    def crossing(self, drift: float) -> tuple[FloatArray, FloatArray]:
        """Probabilities of stopping below and above at each look, shape (k,), if the score has this drift."""
        return crossing(self.lower, self.upper, self.information, drift)

    def rejection(self, drift: float) -> float:
        """Probability of rejecting the null."""
        below, above = self.crossing(drift)
        return float(above.sum() + (below.sum() if self.sides == 2 else 0.0))

    def stopping(self, drift: float) -> FloatArray:
        """Probability that each look is the last, shape (k,)."""
        below, above = self.crossing(drift)
        stops = below + above
        stops[-1] = 1.0 - stops[:-1].sum()
        return stops

    def expected_information(self, drift: float) -> float:
        """Expected information at the end of the trial."""
        return float(self.stopping(drift) @ self.information)

    def drift_of_power(self, power: float) -> float:
        """Positive drift at which the null is rejected with this probability."""
        high = (special.ndtri(power) + 10.0) / math.sqrt(self.information[-1])
        return float(optimize.brentq(lambda drift: self.rejection(drift) - power, 0.0, high, xtol=_EXACT))


def futility_bounds(
    information: FloatArray, upper: FloatArray, spent: FloatArray, binding_level: FloatArray | None = None
) -> tuple[FloatArray, FloatArray, float]:
    """Lower and upper critical values, and the drift at which a one-sided test has the planned power.

    Parameters
    ----------
    information, upper : ndarray of shape (k,)
        Values for each look: the information and, if futility is not binding, the upper critical values.
    spent : ndarray of shape (k,)
        Type II error that each look may spend.
    binding_level : ndarray of shape (k,), optional
        Level that each look may spend if futility is binding; upper critical values are then recalculated.

    Returns
    -------
    lower, upper : ndarray of shape (k,)
        Critical values, which are equal at the last look.
    drift : float

    Examples
    --------
    >>> import numpy as np
    >>> from adaptinf.inference.group_sequential import futility_bounds, spending_bounds
    >>> looks = np.array([0.5, 1.0])
    >>> upper = spending_bounds(looks, 0.025, 1)
    >>> lower, _, drift = futility_bounds(looks, upper, np.array([0.05, 0.15]))
    >>> lower.round(3).tolist(), upper.round(3).tolist(), round(drift, 3)
    ([0.368, 1.969], [2.963, 1.969], 2.847)
    """

    def bounds(drift: float) -> tuple[FloatArray, FloatArray]:
        return _both(information, upper, spent, binding_level, drift)

    def gap(drift: float) -> float:
        lower, above = bounds(drift)
        return float(above[-1] - lower[-1])

    least = special.ndtri(1.0 - spent.sum()) / math.sqrt(information[-1])
    drift = float(
        optimize.brentq(gap, max(least, 0.0), least + 12.0 / math.sqrt(information[-1]), xtol=_EXACT)
    )
    lower, above = bounds(drift)
    lower[-1] = above[-1]
    return lower, above, drift


def _mirrored(walk: Walk, size: float, bound: float) -> float:
    return walk.below(size, -bound)


def _both(
    information: FloatArray,
    upper: FloatArray,
    spent: FloatArray,
    level: FloatArray | None,
    drift: float,
) -> tuple[FloatArray, FloatArray]:
    """Critical values that spend the type II error at this drift, and the level without drift."""
    at_drift, at_null = Walk(drift), Walk()
    lower, above = np.full(len(spent), -np.inf), upper.copy()
    for look, size in enumerate(information.tolist()):
        root = math.sqrt(size)
        if level is not None:
            above[look] = critical_value(at_null.above, size, level[look])
        if spent[look] > 0.0:
            lower[look] = -critical_value(partial(_mirrored, at_drift), size, spent[look])
        lower[look] = min(lower[look], above[look]) if look < len(spent) - 1 else lower[look]
        for walk in (at_drift, at_null):
            walk.proceed(size, lower[look] * root, above[look] * root)
    return lower, above
