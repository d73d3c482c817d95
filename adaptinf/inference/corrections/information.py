"""P-values and levels corrected for adaptive collection using its max-information.

The actions of an epsilon-differentially private design depend only weakly on the rewards. P-values computed
as if the actions had been fixed therefore need only a bounded correction. Information is reported in bits;
the arithmetic uses natural logarithms. For n rounds of epsilon-differentially private collection, let c =
epsilon sqrt(n / 2) and s = sqrt(ln(2 / beta)). The max-information is at most min(epsilon n, c (c + s)) nats,
and a p-value p becomes the minimum over beta of exp(information) p + beta.

References
----------
Dwork, C., Feldman, V., Hardt, M., Pitassi, T., Reingold, O. and Roth, A. (2015). Generalization in
adaptive data analysis and holdout reuse.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from adaptinf.claims.privacy import max_information as claims
from adaptinf.errors import AdaptinfWarning, ParameterError
from adaptinf.guarantee import PrivacyGuarantee
from adaptinf.parameters import Is, OneOf, check
from adaptinf.typing import FloatArray

Bound: TypeAlias = Literal["max-information", "moment"]

_LN2 = math.log(2.0)
_LN4 = math.log(4.0)
_S_AT_BETA_ONE = math.sqrt(_LN2)
# Newton's method on a convex function converges long before this; the bound only prevents an endless loop.
_NEWTON_STEPS = 60
_TOLERANCE = 1e-12


def information(epsilon: float, n: int, beta: float) -> float:
    """Bound on the max-information in nats; for beta = 0, the only bound is epsilon n."""
    cap = epsilon * n
    if beta == 0.0:
        return cap
    c = epsilon * math.sqrt(0.5 * n)
    return min(cap, c * (c + math.sqrt(_LN2 - math.log(beta))))


def log_corrected(log_p: FloatArray, epsilon: float, n: int, bound: Bound) -> FloatArray:
    """Logarithm of the smallest possible corrected p-value."""
    c = epsilon * math.sqrt(0.5 * n)
    if c == 0.0:
        return log_p.copy()
    optimum = _log_moment(log_p, c) if bound == "moment" else _log_smallest_over_beta(log_p, c)
    return np.maximum(log_p, np.minimum(optimum, np.minimum(0.0, epsilon * n + log_p)))


def log_level(log_alpha: float, epsilon: float, n: int, bound: Bound) -> tuple[float, float]:
    """Logarithm of the corrected level, and the share of alpha that is spent on beta."""
    c = epsilon * math.sqrt(0.5 * n)
    capped = log_alpha - epsilon * n
    if c == 0.0 or math.isinf(log_alpha):
        return capped, 0.0
    if bound == "moment":
        root = 0.5 * (c + math.sqrt(c * c - 4.0 * log_alpha))
        return max(capped, -root * root), 0.0
    s = _best_s(log_alpha, c)
    level = log_alpha - math.log1p(0.5 * c / s) - c * (c + s)
    return (level, c / (c + 2.0 * s)) if level > capped else (capped, 0.0)


def _log_moment(log_p: FloatArray, c: float) -> FloatArray:
    """Logarithm of min(1, exp(-l + c sqrt(l))), l = -ln p."""
    root = np.sqrt(-log_p)
    return np.where(np.isinf(root), -np.inf, np.minimum(0.0, root * (c - root)))


def _log_smallest_over_beta(log_p: FloatArray, c: float) -> FloatArray:
    """Logarithm of min over 0 < beta < 1 of exp(c (c + s)) p + beta; 0 if no beta brings it below 1."""
    offset = c * c + log_p + math.log(c) - _LN4
    useful = np.isfinite(offset) & (_stationarity(_S_AT_BETA_ONE, c, offset) < 0.0)
    s = _largest_root(c, offset[useful])
    result = np.where(np.isnan(log_p), np.nan, 0.0)
    result[useful] = np.minimum(0.0, np.logaddexp(c * (c + s) + log_p[useful], _LN2 - s * s))
    return result


def _stationarity(s: FloatArray | float, c: float, offset: FloatArray) -> FloatArray:
    """s^2 + c s - ln s + offset, whose sign is that of the slope of exp(c (c + s)) p + 2 exp(-s^2)."""
    return s * (s + c) - np.log(s) + offset


def _largest_root(c: float, offset: FloatArray) -> FloatArray:
    """Root of `_stationarity` where beta < 1, by Newton's method; it is convex and increasing there."""
    # Since -ln s >= -s / e, `_stationarity` is not negative at the root of s^2 + (c - 1 / e) s + offset, so
    # Newton's method can start there.
    half = 0.5 * (c - math.exp(-1.0))
    spread = np.sqrt(half * half - offset)
    s = spread - half if half < 0.0 else -offset / (half + spread)
    s = np.maximum(s, _S_AT_BETA_ONE)
    for _ in range(_NEWTON_STEPS):
        step = _stationarity(s, c, offset) / (2.0 * s + c - 1.0 / s)
        s = s - step
        if not np.any(np.abs(step) > _TOLERANCE * s):
            break
    return s


def _best_s(log_alpha: float, c: float) -> float:
    """Root s of s^2 = ln(2 / alpha) + ln(1 + 2 s / c), by Newton's method on a convex function.

    The root maximises (alpha - beta) exp(-c (c + s)), whose derivative vanishes if 2 s beta = c (alpha -
    beta).
    """
    goal = _LN2 - log_alpha
    # The start is to the right of the root, because 1 + 2 s / c <= (1 + 2 / c) max(1, s) and ln s <= s / e.
    half = 0.5 * math.exp(-1.0)
    s = half + math.sqrt(half * half + goal + math.log1p(2.0 / c))
    for _ in range(_NEWTON_STEPS):
        step = (s * s - goal - math.log1p(2.0 * s / c)) / (2.0 * s - 2.0 / (c + 2.0 * s))
        s -= step
        if abs(step) <= _TOLERANCE * s:
            break
    return s


def _is_rounds(value: Any, least: int) -> bool:
    return _is_number(value) and least <= value < math.inf and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


EPSILON = Is(lambda value: _is_number(value) and 0.0 <= value < math.inf, "a finite number, 0 or more")
ROUNDS = Is(lambda value: _is_rounds(value, 0), "a whole number of rounds, 0 or more")
SOME_ROUNDS = Is(lambda value: _is_rounds(value, 1), "a whole number of rounds, 1 or more")
BETA = Is(lambda value: _is_number(value) and 0.0 <= value <= 1.0, "in [0, 1]")
_BETA_BELOW_ONE = Is(lambda value: _is_number(value) and 0.0 <= value < 1.0, "in [0, 1)")
_OPEN_LEVEL = Is(lambda value: _is_number(value) and 0.0 < value < 1.0, "strictly between 0 and 1")
LEVEL = Is(
    lambda value: _is_number(value) and 0.0 <= value < 0.5,
    "between 0 and 0.5 (0.05 for significance at 5%)",
)


def log_of_level(subject: str, alpha: float) -> float:
    """Natural logarithm of a level strictly between 0 and 1."""
    check(subject, alpha=(alpha, _OPEN_LEVEL))
    return math.log(alpha)


def bound_problems(bound: str, beta: float | str = "optimal") -> list[str]:
    """Problems with the name of a bound, and with the value of beta."""
    problems = []
    if bound not in ("max-information", "moment"):
        problems.append(f"bound must be 'max-information' or 'moment', got {bound!r}")
    if beta == "optimal":
        return problems
    if isinstance(beta, str):
        return [*problems, f"beta must be 'optimal' or a number in [0, 1), got {beta!r}"]
    if bound == "moment":
        problems.append("the moment bound has no beta: leave beta at 'optimal'")
    return problems + _BETA_BELOW_ONE("beta", beta)


def pvalue_problems(name: str, values: FloatArray, low: float, high: float) -> list[str]:
    """The problem that p-values, or their logarithms, lie outside [low, high], if some do; NaN is allowed."""
    bad = (values < low) | (values > high)
    count = int(np.sum(bad))
    if count == 0:
        return []
    first = float(values[bad].flat[0])
    return [f"{name} must lie in [{low:g}, {high:g}]; {count} of {values.size} do not (first: {first:g})"]


_LN10 = math.log(10.0)
_LOG_SMALLEST_DOUBLE = math.log(5e-324)
_USUAL_ALPHA = 0.05

ChosenFrom: TypeAlias = Literal["actions", "releases"]
CountedUnit: TypeAlias = Literal["round", "person"]
CHOSEN_FROM, COUNTED_UNIT = OneOf("actions", "releases"), OneOf("round", "person")
"""What the choice of a test may be based on, and which units a correction may count."""


class VacuousCorrectionWarning(AdaptinfWarning):
    """Warning that no p-value that a double can represent would be significant after the correction."""


def max_information(epsilon: float, n: int, beta: float) -> float:
    """Bound on the beta-approximate max-information between rewards and actions, in bits.

    Parameters
    ----------
    epsilon : float
        Pure reward-level epsilon of the collection; finite and at least 0.
    n : int
        Number of rounds whose reward can change a later action, given the actions. The total number of rounds
        can always be used.
    beta : float
        Probability, in [0, 1], that the bound fails. If it is 0, the only bound is epsilon * n.

    Returns
    -------
    float
        The bound log2(e) * min(epsilon n, epsilon^2 n / 2 + epsilon sqrt(n ln(2 / beta) / 2)).

    Raises
    ------
    ParameterError
        If a parameter is out of range; the message lists every problem.

    Notes
    -----
    Rounds must be independent, and contexts must not depend on past rewards or actions.

    References
    ----------
    Dwork, C., Feldman, V., Hardt, M., Pitassi, T., Reingold, O. and Roth, A. (2015). Generalization in
    adaptive data analysis and holdout reuse.

    Examples
    --------
    >>> import adaptinf as ai
    >>> round(ai.max_information(0.1, 100, beta=0.01), 3)
    3.07
    >>> round(ai.max_information(0.1, 100, beta=0.0), 3)
    14.427
    """
    check("max_information", epsilon=(epsilon, EPSILON), n=(n, ROUNDS), beta=(beta, BETA))
    return information(epsilon, n, beta) / _LN2


def correct_pvalues(
    p: ArrayLike,
    *,
    epsilon: float,
    n: int,
    beta: float | Literal["optimal"] = "optimal",
    bound: Bound = "max-information",
) -> FloatArray:
    """Correct p-values so that they are valid although the data were collected adaptively.

    Parameters
    ----------
    p : array_like, any shape
        P-values in [0, 1] that are valid for every fixed sequence of actions; NaN remains NaN. A value of 0
        is taken literally and remains 0: use `log_correct_pvalues` for p-values that may have underflowed.
    epsilon : float
        Pure reward-level epsilon of the collection.
    n : int
        Number of rounds whose reward can change a later action, given the actions; at least 1.
    beta : float or "optimal"
        Failure probability in [0, 1); ``"optimal"`` minimises each corrected p-value over beta.
    bound : {"max-information", "moment"}
        The moment bound is never larger and involves no beta.

    Returns
    -------
    ndarray, or a Series if ``p`` is one
        Corrected p-values in the shape of ``p``: min over beta of 2^k(beta) p + beta, at most 1. If the
        correction is vacuous at alpha = 0.05, all are 1, and a warning is issued.

    Raises
    ------
    ParameterError
        If a parameter is out of range; the message lists every problem.

    Warns
    -----
    VacuousCorrectionWarning
        Issued once per call if no p-value that a double can represent would be significant at 0.05.

    Notes
    -----
    Minimising over beta has no cost: the corrected p-value is at most alpha if and only if p is at most
    ``corrected_level(alpha)``, which is a fixed function of alpha. The choice of the test may depend on the
    actions and contexts, but not on the rewards. The choice may also depend on the releases if n counts every
    round whose reward enters a release. To cover all rounds of a person, use the epsilon of a person and let
    n be the number of persons; the test must then be valid under any dependence within a person, and one
    person's rounds must not affect another's. Normal approximations are poor far out in the tails, so exact
    tests are preferable.

    References
    ----------
    Rogers, R., Roth, A., Smith, A. and Thakkar, O. (2016). Max-information, differential privacy, and
    post-selection hypothesis testing.

    Neel, S. and Roth, A. (2018). Mitigating bias in adaptive data gathering via differential privacy.

    Examples
    --------
    >>> import adaptinf as ai
    >>> ai.correct_pvalues([0.2, 1e-3, 1e-9], epsilon=0.1, n=100).round(9)
    array([1.0000000e+00, 1.2486725e-02, 4.3000000e-08])
    """
    values = np.asarray(p, dtype=np.float64)
    problems = bound_problems(bound, beta) + pvalue_problems("p", values, 0.0, 1.0)
    check("correct_pvalues", problems, epsilon=(epsilon, EPSILON), n=(n, SOME_ROUNDS))
    if _usual_level(epsilon, n, beta, bound) < _LOG_SMALLEST_DOUBLE:
        warnings.warn(
            f"no correction is possible at epsilon = {epsilon:g} and n = {int(n)}: every corrected p-value "
            "is 1",
            VacuousCorrectionWarning,
            stacklevel=2,
        )
        return _labelled(p, np.where(np.isnan(values), np.nan, 1.0))
    if beta == "optimal" and epsilon * n == 0.0:
        return _labelled(p, values.copy())
    with np.errstate(divide="ignore"):
        log_p = np.log(values)
    if beta == "optimal":
        corrected = np.exp(log_corrected(log_p, epsilon, n, bound))
    else:
        inflated = np.exp(np.minimum(0.0, information(epsilon, n, beta) + log_p))
        corrected = np.minimum(1.0, inflated + beta)
    # Computation in logarithms may lose the last bits, but a corrected p-value must not be smaller than the
    # p-value itself.
    return _labelled(p, np.maximum(corrected, values))


def _labelled(given: ArrayLike, values: FloatArray) -> FloatArray:
    """The values, with the index of the input if it is a Series."""
    if isinstance(given, pd.Series):
        return cast("FloatArray", pd.Series(values, index=given.index, name=given.name))
    return values[()]


def log_correct_pvalues(
    log_p: ArrayLike, *, epsilon: float, n: int, bound: Bound = "max-information"
) -> FloatArray:
    """Natural logarithms of corrected p-values, for p-values that are too small for a double."""
    values = np.asarray(log_p, dtype=np.float64)
    problems = bound_problems(bound) + pvalue_problems("log_p", values, -math.inf, 0.0)
    check("log_correct_pvalues", problems, epsilon=(epsilon, EPSILON), n=(n, ROUNDS))
    return _labelled(log_p, log_corrected(values, epsilon, n, bound))


def corrected_level(alpha: float, *, epsilon: float, n: int, bound: Bound = "max-information") -> float:
    """Level at which an uncorrected p-value is significant at alpha after the correction.

    Parameters
    ----------
    alpha : float
        Desired level (not the confidence level), in [0, 0.5).
    epsilon, n, bound
        As in `correct_pvalues`.

    Returns
    -------
    float
        The supremum over beta of (alpha - beta) / 2^k(beta). A corrected p-value is at most alpha if and only
        if the uncorrected p-value is at most this level. If a double cannot represent the level, it is 0: see
        `log_corrected_level`.

    Raises
    ------
    ParameterError
        If a parameter is out of range; the message lists every problem.

    Examples
    --------
    >>> import adaptinf as ai
    >>> round(ai.corrected_level(0.05, epsilon=0.1, n=100), 5)
    0.00486
    >>> round(ai.corrected_level(0.05, epsilon=0.1, n=1000), 8)
    1.69e-06
    """
    problems = bound_problems(bound) + LEVEL("alpha", alpha)
    check("corrected_level", problems, epsilon=(epsilon, EPSILON), n=(n, SOME_ROUNDS))
    if alpha == 0.0 or epsilon * n == 0.0:
        return float(alpha)
    return min(alpha, math.exp(log_level(math.log(alpha), epsilon, n, bound)[0]))


def log_corrected_level(
    log_alpha: float, *, epsilon: float, n: int, bound: Bound = "max-information"
) -> float:
    """Natural logarithm of `corrected_level`, as a function of the logarithm of alpha."""
    problems = [] if log_alpha < 0.0 else [f"log_alpha must be below 0, got {log_alpha!r}"]
    check("log_corrected_level", bound_problems(bound) + problems, epsilon=(epsilon, EPSILON), n=(n, ROUNDS))
    return log_level(log_alpha, epsilon, n, bound)[0]


@dataclass(frozen=True, slots=True)
class Correction:
    """The max-information correction that a log's privacy guarantee permits.

    Parameters
    ----------
    epsilon : float
        Pure reward-level epsilon of the collection.
    n : int
        Number of rounds whose reward can change a later action.
    guarantee : PrivacyGuarantee
        The reward-level guarantee on which epsilon is based.
    bound : {"max-information", "moment"}
        As in `correct_pvalues`.
    chosen_from : {"actions", "releases"}
        Information, apart from contexts, on which the choice of a test may depend: the actions only, or also
        the releases. This determines the rounds that `n` counts.
    unit : {"round", "person"}
        The unit that `n` counts: rounds, or persons with all of their rounds.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or epsilon is below that of the guarantee.

    Examples
    --------
    >>> import adaptinf as ai
    >>> from adaptinf.inference.corrections import Correction
    >>> correction = Correction(0.1, 1000, ai.PrivacyGuarantee(epsilon=0.1))
    >>> print(correction.describe(0.05))
    max-information of at most 14.3 bits (epsilon = 0.1, n = 1000, beta = 1.7e-02 at alpha = 0.05):
    significance requires a p-value of at most 1.6e-06
    """

    epsilon: float
    n: int
    guarantee: PrivacyGuarantee
    bound: Bound = "max-information"
    chosen_from: ChosenFrom = "actions"
    unit: CountedUnit = "round"

    def __post_init__(self) -> None:
        check(
            "Correction",
            bound_problems(self.bound),
            epsilon=(self.epsilon, EPSILON),
            n=(self.n, ROUNDS),
            chosen_from=(self.chosen_from, CHOSEN_FROM),
            unit=(self.unit, COUNTED_UNIT),
        )
        least = self.guarantee.epsilon
        if reason := guarantee_refusal(self.guarantee):
            raise ParameterError("Correction", [reason])
        if self.epsilon < least:
            problem = f"epsilon = {self.epsilon:g} is below the guarantee's {least:g}"
            raise ParameterError("Correction", [problem])
        object.__setattr__(self, "n", int(self.n))

    def bits(self, beta: float) -> float:
        """Max-information in bits for this beta: see `max_information`."""
        return max_information(self.epsilon, self.n, beta)

    def beta(self, alpha: float = _USUAL_ALPHA) -> float:
        """The beta that attains the level at alpha; 0 if the better bound is epsilon n, which has no beta."""
        return alpha * log_level(log_of_level("Correction.beta", alpha), self.epsilon, self.n, self.bound)[1]

    def apply(self, log_p: ArrayLike) -> FloatArray:
        """Natural logarithms of the corrected p-values: see `log_correct_pvalues`."""
        return log_correct_pvalues(log_p, epsilon=self.epsilon, n=self.n, bound=self.bound)

    def level(self, log_alpha: float) -> float:
        """Natural logarithm of the corrected level: see `log_corrected_level`."""
        return log_corrected_level(log_alpha, epsilon=self.epsilon, n=self.n, bound=self.bound)

    def vacuous(self, alpha: float = _USUAL_ALPHA) -> bool:
        """Whether the corrected level at alpha is below the smallest positive double."""
        return self.level(log_of_level("Correction.vacuous", alpha)) < _LOG_SMALLEST_DOUBLE

    def describe(self, alpha: float = _USUAL_ALPHA) -> str:
        """A sentence that states the information, its parameters, and the p-value that is required."""
        level = self.level(log_of_level("Correction.describe", alpha))
        setting = f"epsilon = {self.epsilon:g}, n = {self.n}{' persons' if self.unit == 'person' else ''}"
        if self.bound == "moment":
            bound = claims.MOMENTS(setting=setting, alpha=alpha)
        else:
            beta = self.beta(alpha)
            shown = "0" if beta == 0.0 else f"{beta:.1e}"
            bound = claims.BITS(bits=self.bits(beta), setting=setting, beta=shown, alpha=alpha)
        if self.vacuous(alpha):
            return claims.IMPOSSIBLE(bound=bound)
        return claims.REQUIRED(bound=bound, level=_scientific(level))

    @property
    def coverage(self) -> str:
        """The choices of a test that the correction covers."""
        return claims.COVERS_RELEASES() if self.chosen_from == "releases" else claims.COVERS_ACTIONS()


def guarantee_refusal(guarantee: PrivacyGuarantee) -> str:
    """The reason why a guarantee permits no correction; empty if it permits one."""
    if guarantee.reward_level() is None:
        return claims.ANTICIPATING()
    if math.isinf(guarantee.epsilon):
        return claims.INFINITE()
    if guarantee.delta > 0.0:
        return claims.APPROXIMATE(delta=guarantee.delta)
    return ""


def _usual_level(epsilon: float, n: int, beta: float | Literal["optimal"], bound: Bound) -> float:
    """Logarithm of the largest p-value that is significant at the usual alpha; -inf if none is."""
    if beta == "optimal":
        return log_level(math.log(_USUAL_ALPHA), epsilon, n, bound)[0]
    remaining = _USUAL_ALPHA - beta
    return math.log(remaining) - information(epsilon, n, beta) if remaining > 0.0 else -math.inf


def _scientific(log_value: float) -> str:
    """exp(log_value), rounded down to two digits, even if it is far below the smallest double."""
    exponent = math.floor(log_value / _LN10)
    mantissa = math.floor(10.0 * math.exp(log_value - exponent * _LN10)) / 10.0
    return f"{mantissa:.1f}e{exponent:+03d}"
