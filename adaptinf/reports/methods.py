"""The paragraph on methods, ready to paste, with its references."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING

from adaptinf.inference.sequences.laws import SequenceReference
from adaptinf.inference.winners.results import WinnerResults
from adaptinf.reports.collection import design_told
from adaptinf.reports.references import ESTIMATORS, REFERENCES, cited

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums

_TARGETS = {
    "arm-mean": "Mean outcomes of arms",
    "contrast": "Differences of mean outcomes between arms",
    "lift": "Relative lifts of mean outcomes over the control",
    "ratio": "Ratios of mean outcomes of arms",
    "ratio-contrast": "Differences between arms of ratios of mean outcomes",
    "ratio-lift": "Relative lifts over the control of ratios of mean outcomes",
    "cate": "Effects within groups",
    "interaction": "Differences of effects between groups",
    "projection": "Projections of the effect on covariates",
    "policy-value": "Policy values",
    "policy-contrast": "Differences of policy values",
    "bin-mean": "Mean outcomes by bin of the context",
    "coefficient": "Coefficients of the regression",
}
_VALIDITY = {
    "exact": "They are exact for data collected in this way.",
    "anytime": "They hold at all rounds together, so that they are valid however the log was stopped.",
    "asymptotic": "They are asymptotically valid under this adaptive collection.",
    "not valid": "Without a correction they are not valid under adaptive collection.",
}
_PACKAGES = ("numpy", "scipy", "pandas")


def versions() -> str:
    """The package, Python, and what the numbers rest on."""
    from adaptinf import __version__

    parts = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]
    return f"adaptinf {__version__} ({', '.join(parts)})"


def methods_told(results: Results, log: AdaptiveLog | Sums | None, alpha: float) -> tuple[str, list[str]]:
    """A paragraph on collection, estimation and software, and the references that it cites."""
    estimator, law, correction = cited(results)
    sentences = [*_collection(results, log), *_estimation(results, estimator, law, alpha)]
    if results.correction is not None:
        sentences.append(
            "P-values and intervals of the corrected columns allow for adaptive collection by the "
            f"max-information under the guarantee{_cite(correction)}: {results.correction.describe(alpha)}."
        )
    if len(results.terms) > 1:
        sentences.append("P-values and intervals are not adjusted for the number of terms.")
    sentences.append(f"Computations used {versions()}.")
    keys = dict.fromkeys([*estimator, *law, *correction])
    return " ".join(sentences), [REFERENCES[key] for key in sorted(keys)]


def _collection(results: Results, log: AdaptiveLog | Sums | None) -> list[str]:
    if log is None:
        design = results.facts.design
        rule = "a rule that is not named" if design is None else design
        return [f"Outcomes of {results.facts.n_rounds:,} rounds were collected by {rule}."]
    rule = "a rule that the log does not name" if log.design is None else design_told(log)
    arms = ", ".join(map(str, log.arms[:8])) + (", ..." if log.n_arms > 8 else "")
    told = [f"{log.n_rounds:,} rounds were allocated among {log.n_arms} arms ({arms}) by {rule}."]
    if log.propensity_status == "exact":
        told.append("The probabilities of assignment are the design's own, logged in every round.")
    elif log.propensity_status == "estimated":
        told.append("The probabilities of assignment were estimated.")
    return told


def _estimation(
    results: Results, estimator: tuple[str, ...], law: tuple[str, ...], alpha: float
) -> list[str]:
    kinds = list(dict.fromkeys(one.kind for one in results.estimands))
    target = " and ".join(_TARGETS.get(kind, kind) for kind in kinds)
    name = ESTIMATORS.get(results.estimator, (results.estimator, ()))[0]
    weights = f" with {results.weights} weights" if results.weights else ""
    told = [f"{target} were estimated by {name}{weights}{_cite(estimator)}."]
    level, reference = f"{100.0 * (1.0 - alpha):g}%", results.reference
    kind = "confidence sequences" if isinstance(reference, SequenceReference) else "confidence intervals"
    told.append(
        f"Two-sided p-values, against {results.null:g}, and {level} {kind} are from one law: "
        f"{reference.name}{_cite(law)}."
    )
    if isinstance(results, WinnerResults):
        told.append("They allow for the choice of the arm by its estimate.")
    return [*told, _VALIDITY[results.validity]]


def _cite(keys: tuple[str, ...]) -> str:
    return f" ({'; '.join(keys)})" if keys else ""
