"""Results from user-defined estimators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from adaptinf.claims.tables import OWN_ASSUMPTION, OWN_NUMBERS, OWN_REFERENCE
from adaptinf.inference.distributions.references import NormalReference, Reference, StudentReference
from adaptinf.inference.inputs.arguments import label_problems
from adaptinf.inference.results.estimand import Estimand
from adaptinf.inference.results.fit_results import Results
from adaptinf.inference.results.log_facts import LogFacts
from adaptinf.parameters import FINITE, Is, OneOf, number_array, problems_of, refuse
from adaptinf.texts import absent
from adaptinf.typing import VALIDITY_LABELS, FloatArray, Validity

if TYPE_CHECKING:
    from adaptinf.log import AdaptiveLog

_SUBJECT = "result"
_SAME = 1e-9


def result(
    estimate: Any,
    std_error: Any = None,
    *,
    covariance: Any = None,
    terms: Sequence[Any] | None = None,
    df: Any = None,
    label: str = "own",
    log: AdaptiveLog | None = None,
    validity: Validity = "asymptotic",
    null: float = 0.0,
    notes: Sequence[str] = (),
    assumptions: Sequence[str] = (),
    references: Sequence[str] = (),
) -> Results:
    """Turn your own estimates into a result, with the tables, tests and plots of a fit.

    The result can be used like that of a fit: in `compare`, in plots, and as an analysis in `audit.coverage`,
    `audit.power` and `audit.study`.

    Parameters
    ----------
    estimate : mapping or Series of term to float, or array_like of shape (k,), or float
        The estimates. A term that is an arm denotes the arm's mean, and a pair ``(treatment, control)``
        denotes the difference between the two means. Simulations know the true values of these; for other
        terms, they need `truth=`. NaN means that there is no estimate.
    std_error : as `estimate`, optional
        Standard errors, which may be omitted if there is a covariance.
    covariance : array_like of shape (k, k), or DataFrame by term, optional
        Covariance of the estimates, for joint tests and simultaneous intervals.
    terms : sequence of k labels or pairs, optional
        Names of the terms, if `estimate` has no labels.
    df : float, or as `estimate`, optional
        Degrees of freedom of Student's t. Without these, tests and intervals are normal.
    label : str
        Name of the estimator, as shown in tables and simulations.
    log : AdaptiveLog, optional
        The log from which the estimates were computed. If it is given, tables show its rounds, design and
        guarantee, and terms must be its arms.
    validity : {"asymptotic", "exact", "anytime", "not valid"}
        The validity that you claim for the results, which is shown as your claim.
    null : float
        Value of the terms under the null hypothesis.
    notes : sequence of str
        Sentences for the table.
    assumptions : sequence of str
        The estimator's assumptions, each as a clause such as ``"outcomes are independent"``. They are shown
        below the table, in `explain` and in reports, as not checked.
    references : sequence of str
        Publications on the estimator, formatted as citations, which are shown in `explain` and below the
        methods in a report.

    Returns
    -------
    Results
        Results with one term per estimate.

    Raises
    ------
    ParameterError
        If arguments are inconsistent; the message lists every problem. Examples are different lengths,
        unmatched terms, unknown arms, negative standard errors, and a covariance that is invalid or
        contradicts the standard errors.

    Examples
    --------
    Medians, compared by simulation like any other analysis:

    >>> import adaptinf as ai
    >>> import numpy as np
    >>> def medians(log):
    ...     arms = log.frame.groupby("action")["reward"]
    ...     return ai.result(arms.median(), 1.2533 * arms.std() / np.sqrt(arms.size()), label="median")
    >>> env = ai.environments.NormalArms([0.0, 0.5])
    >>> log = ai.designs.EpsilonGreedy(exploration=0.2).run(env, horizon=400, rng=1)
    >>> medians(log).conf_int().round(2)
        low  high
    0 -0.50  0.43
    1  0.32  0.57
    """
    problems = problems_of(
        null=(null, FINITE), validity=(validity, OneOf(*VALIDITY_LABELS)), label=(label, Is(str, "a name"))
    )
    listed = {"notes": notes, "assumptions": assumptions, "references": references}
    problems += [
        f"{name} must be a list of strings, got {given!r:.60}"
        for name, given in listed.items()
        if not isinstance(given, (list, tuple)) or not all(isinstance(text, str) for text in given)
    ]
    names, values = _labelled(estimate, terms, problems)
    refuse(_SUBJECT, problems)
    problems += _term_problems(names, log)
    if std_error is None and covariance is None:
        problems.append("give std_error= or covariance=")
    size = None if std_error is None else _matched("std_error", std_error, names, problems)
    spread = None if covariance is None else _square(covariance, names, problems)
    freedom = None if df is None else _matched("df", df, names, problems)
    size = _settled(size, spread, problems)
    if freedom is not None and not np.all((freedom > 0.0) | np.isnan(values)):
        problems.append(f"df must be positive, got {freedom.tolist()}")
    refuse(_SUBJECT, problems)
    assert size is not None
    size = np.where(np.isnan(values), np.nan, size)
    reference: Reference = (
        NormalReference(values, size) if freedom is None else StudentReference(values, size, freedom)
    )
    return Results(
        model=label,
        estimands=tuple(map(_estimand, names)),
        terms=tuple(map(_shown, names)),
        estimate=values,
        std_error=size,
        covariance=spread,
        reference=reference,
        estimator=label,
        facts=LogFacts(n_rounds=0) if log is None else LogFacts.of(log),
        validity=validity,
        null=float(null),
        notes=(
            OWN_NUMBERS(validity=validity),
            *(OWN_ASSUMPTION(assumption=text.rstrip(".")) for text in assumptions),
            *notes,
            *(OWN_REFERENCE(reference=text.rstrip(".")) for text in references),
        ),
    )


def _labelled(
    estimate: Any, terms: Sequence[Any] | None, problems: list[str]
) -> tuple[tuple[Any, ...], FloatArray]:
    """The terms, and the estimates as an array of shape (k,)."""
    keyed = isinstance(estimate, (Mapping, pd.Series))
    if keyed and terms is not None:
        problems.append("terms= applies to estimates without labels, but these have labels: omit it")
    values = number_array(list(estimate.values()) if isinstance(estimate, Mapping) else estimate)
    values = None if values is None else np.atleast_1d(values)
    if values is None or values.ndim != 1 or values.size == 0 or np.any(np.isinf(values)):
        problems.append(
            f"estimate must be numbers, one per term, got {type(estimate).__name__} {estimate!r:.60}"
        )
        return (), np.zeros(0)
    if keyed:
        return tuple(_plain(key) for key in estimate.keys()), values  # noqa: SIM118 (a Series has values)
    if terms is None or isinstance(terms, str):
        problems.append(
            f"terms= must be a list of {len(values)} names, one per estimate; or give the "
            f"estimates as a mapping"
        )
        return (), values
    if len(terms) != len(values):
        problems.append(f"terms= must name {len(values)} estimates, got {len(terms)}")
    return tuple(map(_plain, terms)), values


def _plain(term: Any) -> Any:
    """A label as a Python object instead of a NumPy scalar."""
    if isinstance(term, tuple):
        return tuple(map(_plain, term))
    return term.item() if isinstance(term, np.generic) else term


def _term_problems(names: Sequence[Any], log: AdaptiveLog | None) -> list[str]:
    """Problems with terms: values that are not labels, incomplete pairs, duplicates, and unknown arms."""
    problems = []
    for name in names:
        parts = name if isinstance(name, tuple) else (name,)
        if isinstance(name, tuple) and len(name) != 2:
            problems.append(f"a term must be a label or a pair (treatment, control), got {name!r:.60}")
        problems += label_problems("a term", parts)
        if log is not None:
            problems += [
                absent("arm", part, log.arms, "the log has") for part in parts if part not in log.arms
            ]
    shown = list(map(_shown, names))
    if len(set(shown)) < len(shown):
        problems.append(f"terms must be distinct, got {', '.join(shown)}")
    return problems


def _shown(name: Any) -> str:
    return f"{name[0]} - {name[1]}" if isinstance(name, tuple) else str(name)


def _estimand(name: Any) -> Estimand:
    if isinstance(name, tuple):
        return Estimand("contrast", treatment=name[0], control=name[1])
    return Estimand("arm-mean", arm=name)


def _matched(what: str, given: Any, names: Sequence[Any], problems: list[str]) -> FloatArray | None:
    """Numbers in the order of the terms, shape (k,), from a mapping, a sequence or a single number."""
    if isinstance(given, (Mapping, pd.Series)):
        found = {_plain(key): value for key, value in given.items()}
        missing = [name for name in names if name not in found]
        unknown = [key for key in found if key not in names]
        if missing or unknown:
            wrong = [f"lacks {', '.join(map(repr, missing))}"] if missing else []
            wrong += [f"has {', '.join(map(repr, unknown))} beyond the estimates"] if unknown else []
            problems.append(f"{what} {' and '.join(wrong)}")
            return None
        given = [found[name] for name in names]
    values = number_array(given)
    if values is not None and values.ndim == 0:
        values = np.full(len(names), float(values))
    if values is None or values.shape != (len(names),):
        problems.append(f"{what} must be {len(names)} numbers, one per term, got {given!r:.60}")
        return None
    return values


def _square(given: Any, names: Sequence[Any], problems: list[str]) -> FloatArray | None:
    """A covariance in the order of the terms, shape (k, k)."""
    if isinstance(given, pd.DataFrame):
        rows, columns = list(map(_plain, given.index)), list(map(_plain, given.columns))
        if set(rows) != set(names) or set(columns) != set(names) or len(rows) != len(names):
            problems.append(
                f"covariance must have a row and a column for each of {', '.join(map(_shown, names))}"
            )
            return None
        given = given.to_numpy()[np.ix_([rows.index(n) for n in names], [columns.index(n) for n in names])]
    values = number_array(given)
    if values is None or values.shape != (len(names), len(names)):
        problems.append(f"covariance must have shape {(len(names),) * 2}, got {np.shape(given)}")
        return None
    size = np.nan_to_num(np.abs(values)).max(initial=0.0)
    if not np.allclose(values, values.T, rtol=_SAME, atol=_SAME * size, equal_nan=True):
        problems.append("covariance must be symmetric")
    if np.any(np.linalg.eigvalsh(np.nan_to_num((values + values.T) / 2.0)) < -_SAME * size):
        problems.append("covariance must have no negative eigenvalue")
    return values


def _settled(size: FloatArray | None, spread: FloatArray | None, problems: list[str]) -> FloatArray | None:
    """Standard errors, shape (k,), after a check against the covariance."""
    if size is not None and np.any(size < 0.0):
        problems.append(f"std_error must not be negative, got {size.tolist()}")
    if spread is None or problems:
        return size
    own = np.sqrt(np.diag(spread))
    if size is not None and not np.allclose(size, own, rtol=1e-6, equal_nan=True):
        problems.append("std_error contradicts the covariance: omit one of them")
    return own
