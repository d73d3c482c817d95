"""Checks of a log: correct propensities, constant arms, and enough rewards for weighting.

References
----------
Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
"Confidence intervals for policy evaluation in adaptive experiments". Lindon, Malek (2022), "Anytime-valid
inference for multinomial count data". Fabijan et al. (2019), "Diagnosing sample ratio mismatch in online
controlled experiments".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from adaptinf.claims import diagnosis as claims
from adaptinf.claims import propensities, said
from adaptinf.errors import InvalidForLog, ParameterError
from adaptinf.inference.arms.data.covariate_adjustment import control_test
from adaptinf.inference.diagnostics import sums_checks
from adaptinf.inference.diagnostics.arm_checks import (
    MIN_ROUNDS,
    Decay,
    Scored,
    arm_checks,
    fitted_chosen_decay,
    fitted_decay,
    missed_checks,
    nothing_scored,
    score_checks,
    scored_rows,
)
from adaptinf.inference.diagnostics.choice_checks import choice_checks, every_propensity
from adaptinf.inference.diagnostics.diagnosis_results import (
    CAUTION,
    FINE,
    Check,
    Diagnosis,
    NotesFacts,
    judged,
    tests_among,
)
from adaptinf.inference.diagnostics.missing_checks import missing_checks
from adaptinf.inference.inputs.arguments import labels, require_log
from adaptinf.inference.validity.profile import LogProfile, profile_of
from adaptinf.log import AdaptiveLog
from adaptinf.parameters import check_alpha, number_array, refuse
from adaptinf.sums import NEEDS_ROWS, Sums
from adaptinf.texts import absent, listed
from adaptinf.typing import FloatArray

# With a smaller propensity, one reward counts more than a thousand times and can determine the estimate
# alone.
_TINY = 1e-3


def diagnose(
    log: AdaptiveLog | Sums, *, expected: Any = None, negative_control: Any = None, alpha: float = 0.05
) -> Diagnosis:
    """Check the assumptions of an analysis, as far as a log allows.

    Parameters
    ----------
    log : AdaptiveLog or Sums
        The data.
    expected : array_like of shape (K,) or mapping of label to float, optional
        For a design with a fixed allocation, the intended share of the rounds for each arm, in the order of
        ``log.arms`` or by label; shares are scaled to sum to 1. Counts are compared with these shares instead
        of the propensities.
    negative_control : str or sequence of str, optional
        Context columns that arms cannot have affected, such as measurements taken before the choice. Arms
        should not differ in them by more than their propensities explain.
    alpha : float
        Joint level of all tests in the table, between 0 and 0.5.

    Returns
    -------
    Diagnosis
        A table with one row per check and arm. If a check does not apply, the table gives the reason.

    Raises
    ------
    ParameterError
        If `log` is not a log, `expected` is not one positive share per arm, `negative_control` names columns
        that are not contexts of the log, or alpha is out of range.
    InvalidForLog
        If `negative_control` is given for sums.

    Notes
    -----
    Calibration and sample ratio: if e(a) is the probability of arm a given the past, then sums of 1{A = a} -
    e(a) over rounds that are selected by the past are martingales, whatever the design and the rewards, and
    their predictable variance is the sum of e (1 - e). The anytime version is exact, because it is a test
    martingale.

    Negative controls: if x was determined before the choice, the sum of (x - mean x) (1{A = a} - e(a)) is
    also a martingale. Ranks are used in place of x. The row shows the arm with the largest standardised sum,
    whose p-value is multiplied by the number of arms (two arms count as one comparison).

    Drift: given the past, the expectation of an AIPW score is the arm's mean, so the regression of scores on
    time has slope 0 if the arm's mean is constant. The slope of each arm is estimated by least squares with
    the weights of its scores. The common slope of all arms, in which the slopes are weighted by their inverse
    variances, is the first to show common drift, such as a season. With weights that stabilise the variance
    of the scores, the sums on which a slope is based are jointly normal, however the propensities change. The
    slope itself is normal if the propensities settle. For each test, the table gives the smallest drift that
    is detected with probability 80% at the level of Holm's first step, in standard deviations of the arm's
    rewards. If there are contexts, the test also assumes that their distribution is constant over time.

    Sample mean versus AIPW: the standard error is based on the contribution of each round to the difference.
    The textbook formula, a difference of two variances, is not valid under adaptive collection. The test has
    the correct level for designs with stable arm counts (``audit.stability``). A rejection indicates that
    adaptivity, drift or contexts affected the sample mean. Without a rejection, the sample mean may still be
    biased (see ``audit.simulate_bias``).

    The same checks are available for sums by batch. Scores then use the arm's mean over earlier batches and
    one weight for each batch, the time of a batch is that of its middle, and the bets of the anytime version
    are placed at the start of a batch. If propensities vary within batches, they are replaced by their mean
    over the batch, and a check that needs the product of two arms' propensities says so.

    If rewards are missing, the checks of means and drift are omitted, and the table says so. Instead,
    chi-squared tests examine whether the share of missing rewards depends on the arm, or changes over time
    within arms. If the expected count of a cell is small, each cell is tested exactly, given the margins.

    References
    ----------
    Hausman (1978), "Specification tests in econometrics". Hadad, Hirshberg, Zhan, Wager, Athey (2021),
    "Confidence intervals for policy evaluation in adaptive experiments". Lindon, Malek (2022), "Anytime-valid
    inference for multinomial count data".

    Examples
    --------
    >>> import adaptinf as ai
    >>> design = ai.designs.EpsilonGreedy(exploration=0.3)
    >>> log = design.run(ai.environments.BernoulliArms([0.4, 0.6]), horizon=2000, rng=1)
    >>> ai.diagnose(log).concerns
    ()
    >>> arms = ai.environments.BernoulliArms([0.4, 0.6])
    >>> found = ai.diagnose(ai.designs.UCB().run(arms, horizon=200, rng=1))
    >>> found.check("propensity calibration")[0].advice
    'all known propensities are 0 or 1, so there is no randomisation to check'
    """
    if not isinstance(log, Sums):
        require_log("diagnose", log, incomplete=True)
    check_alpha("diagnose", alpha)
    shares = _shares(log, expected)
    controls = controls_of(log, negative_control)
    tables: dict[str, pd.DataFrame] = {}
    with np.errstate(under="ignore"):
        if isinstance(log, Sums):
            checks = _checks_of_sums(log, shares, alpha, tables)
        else:
            checks = _checks_of_rows(log, shares, controls, alpha, tables)
    notes = said(claims.NOTES, NotesFacts(profile_of(log), checks, tables, float(alpha)))
    names = {check.name for check in checks}
    questions = claims.QUESTIONS | {name: text for name, text in claims.OCCASIONAL.items() if name in names}
    return Diagnosis(judged(checks, alpha), questions, float(alpha), tables, tuple(notes))


def _checks_of_rows(
    log: AdaptiveLog,
    shares: FloatArray | None,
    controls: tuple[str, ...],
    alpha: float,
    tables: dict[str, pd.DataFrame],
) -> list[Check]:
    every = every_propensity(log)
    choices = [
        *choice_checks(log, every, shares, tables),
        *control_checks(log, controls),
        *missing_checks(log),
    ]
    observed = log.arrays.observed
    if observed is not None:
        lost = int(np.count_nonzero(~observed))
        reason = claims.NEEDS_REWARDS(missing=lost, rounds=log.n_rounds)
        scored = nothing_scored({"all arms": reason})
    else:
        scored = scored_rows(log)
    arms = partial(arm_checks, log, every, tables)
    return _with_missed(log, choices, scored, _decay_of_rows(log, every), arms, alpha, tables)


def _checks_of_sums(
    sums: Sums, shares: FloatArray | None, alpha: float, tables: dict[str, pd.DataFrame]
) -> list[Check]:
    choices = sums_checks.choice_checks_of_sums(sums, shares, tables)
    scored, decay = sums_checks.scored_sums(sums), sums_checks.fitted_batch_decay(sums.cells)
    arms = partial(sums_checks.arm_checks_of_sums, sums, tables)
    return _with_missed(sums, choices, scored, decay, arms, alpha, tables)


def _with_missed(
    log: AdaptiveLog | Sums,
    choices: list[Check],
    scored: Scored,
    decay: Decay | None,
    arms: Callable[[], list[Check]],
    alpha: float,
    tables: dict[str, pd.DataFrame],
) -> list[Check]:
    """All checks in the order of the table, including the rows on the drift that its tests could miss."""
    scores = score_checks(log, scored, tables)
    after = [*decay_checks(log, decay, tables), *arms()]
    # Holm's first step divides alpha by the number of all tests in the table, so this row needs all others,
    # although it comes before some of them.
    level = alpha / max(1, tests_among([*choices, *scores, *after]))
    return [*choices, *scores, *missed_checks(log, scored, tables, level), *after]


def _shares(log: AdaptiveLog | Sums, expected: Any) -> FloatArray | None:
    if expected is None:
        return None
    if isinstance(expected, Mapping):
        problems = [f"expected has no share for arm {arm!r}" for arm in log.arms if arm not in expected]
        problems += [
            f"expected: {absent('arm', arm, log.arms, 'the log has')}"
            for arm in expected
            if arm not in log.arms
        ]
        refuse("diagnose", problems)
        array = number_array([expected[arm] for arm in log.arms])
    else:
        array = number_array(expected)
    if array is None or array.shape != (log.n_arms,) or not (np.isfinite(array) & (array > 0.0)).all():
        problem = (
            f"expected must be one positive share for each of the {log.n_arms} arms, got {expected!r:.60}"
        )
        raise ParameterError("diagnose", [problem])
    return np.asarray(array / array.sum(), dtype=np.float64)


def _decay_of_rows(log: AdaptiveLog, every: FloatArray | None) -> Decay | None:
    """The rate at which the smallest propensities decrease; None if there are no propensities."""
    arrays = log.arrays
    if arrays.propensity is None:
        return None
    if every is None:
        return fitted_chosen_decay(arrays.action, arrays.propensity, log.n_arms)
    return fitted_decay(every)


def decay_checks(
    log: AdaptiveLog | Sums, decay: Decay | None, tables: dict[str, pd.DataFrame]
) -> list[Check]:
    """Rows on the smallest propensities, and on the rate at which they decrease."""
    name = "decay of propensities"
    if decay is None:
        return [Check(name, "all arms", claims=(propensities.NONE(),))]
    own = {f"smallest_{arm}": decay.smallest[:, code] for code, arm in enumerate(log.arms)}
    tables["decay"] = pd.DataFrame({"first_round": decay.first, "last_round": decay.last, **own})
    smallest = float(np.nanmin(decay.smallest))
    low = Check(name, "all arms", "smallest above 0", smallest, verdict=FINE)
    if smallest < _TINY:
        low = replace(low, verdict=CAUTION, claims=(claims.SMALL_PROPENSITY(), claims.SEE_SIZES()))
    if math.isnan(decay.exponent):
        few = claims.FEW_ROUNDS(fewest=MIN_ROUNDS)
        return [low, Check(name, "all arms", "fitted exponent", claims=(few,))]
    verdict = CAUTION if decay.exponent >= 1.0 else FINE
    figures = "fitted exponent", decay.exponent, math.nan
    return [low, Check(name, "all arms", *figures, verdict, (claims.EXPONENT_TO_LOOK_AT(),))]


CONTROL = "negative control"
_OPTION = "negative_control"


def controls_of(log: AdaptiveLog | Sums, named: Any) -> tuple[str, ...]:
    """The context columns that the user named as negative controls; none by default."""
    if named is None:
        return ()
    if isinstance(log, Sums):
        raise InvalidForLog(
            f"diagnose({_OPTION}=)", NEEDS_ROWS, ["diagnose, applied to an AdaptiveLog of the rows"]
        )
    names, problems = ((named,), []) if isinstance(named, str) else labels(_OPTION, named)
    refuse("diagnose", problems)
    columns = log.columns
    problems = [
        f"{_OPTION} {name!r} is not a context of the log, whose contexts are {listed(log.context)}: name "
        f"the column in context= when creating the log"
        for name in names
        if columns.get(name, name) not in log.context
    ]
    if not names:
        problems.append(f"{_OPTION} names no column")
    if len(set(names)) < len(names):
        problems.append(f"{_OPTION} names a column more than once")
    refuse("diagnose", problems)
    return tuple(str(columns.get(name, name)) for name in names)


def control_checks(log: AdaptiveLog, names: tuple[str, ...]) -> list[Check]:
    """One row for each control, on the arm with the largest deviation; adjusted for the number of arms."""
    profile = profile_of(log)
    if reason := _untestable(profile):
        return [Check(CONTROL, name, claims=(reason,)) for name in names]
    checks = []
    for name in names:
        found = control_test(profile, name)
        if found is None:
            checks.append(Check(CONTROL, name, claims=(claims.CONTROL_UNTESTED(),)))
            continue
        arm = log.arms[found.code]
        reasons = claims.CONTROL_DIFFERS(name=name, arm=arm), claims.CONTROL_CAUSES(name=name)
        checks.append(Check(CONTROL, name, f"z of ranks, {arm}", found.z, found.log_pvalue, "", reasons))
    return checks


def _untestable(profile: LogProfile) -> str:
    """The reason why no controls can be compared; empty if they can."""
    if not profile.knows_propensities:
        return propensities.NONE()
    if profile.estimated:
        return claims.CONTROL_CIRCULAR()
    return claims.CONTROL_ONE_DRAW() if profile.one_draw_a_unit else ""
