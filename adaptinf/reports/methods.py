"""The paragraph on methods, ready to paste, with its references."""

from __future__ import annotations

import platform
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from adaptinf.claims import said
from adaptinf.claims.reports import methods as claims
from adaptinf.inference.sequences.laws import SequenceReference
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.winners.results import WinnerResults
from adaptinf.reports.collection import design_told
from adaptinf.reports.references import ESTIMATORS, REFERENCES, cited

if TYPE_CHECKING:
    from adaptinf.inference.results.base import Results
    from adaptinf.log import AdaptiveLog
    from adaptinf.sums import Sums

_PACKAGES = ("numpy", "scipy", "pandas")
_SHOWN = 8
"""Arms that are named."""


def versions() -> str:
    """The package, Python, and what the numbers rest on."""
    from adaptinf import __version__

    parts = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]
    return f"adaptinf {__version__} ({', '.join(parts)})"


def methods_told(results: Results, log: AdaptiveLog | Sums | None, alpha: float) -> tuple[str, list[str]]:
    """A paragraph on collection, estimation and software, and the references that it cites."""
    facts = _Facts(results, log, alpha)
    keys = {key for part in facts.cited for key in part}
    return " ".join(said(claims.PARAGRAPH, facts)), [REFERENCES[key] for key in sorted(keys)]


class _Facts:
    """What the paragraph's claims ask of a result, and of its log where it is there."""

    def __init__(self, results: Results, log: AdaptiveLog | Sums | None, alpha: float) -> None:
        self.results, self.log, self.alpha = results, log, alpha
        self.cited = cited(results)

    @property
    def collected(self) -> dict[str, Any]:
        if self.log is not None:
            return {}
        facts = self.results.facts
        return {"rounds": facts.n_rounds, "rule": facts.design or "an unnamed design"}

    @property
    def allocated(self) -> dict[str, Any]:
        log = self.log
        if log is None:
            return {}
        labels = [*map(str, log.arms[:_SHOWN]), *(["..."] if log.n_arms > _SHOWN else [])]
        rule = "an unnamed design" if log.design is None else design_told(log)
        return {"rounds": log.n_rounds, "arms": log.n_arms, "labels": ", ".join(labels), "rule": rule}

    @property
    def _logged_propensities(self) -> bool:
        return self.log is not None and self.log.propensity_status == "exact"

    @property
    def contradicted_propensities(self) -> bool:
        """Whether arms were not chosen by the logged propensities."""
        if self.log is None or not self._logged_propensities:
            return False
        profile = profile_of(self.log)
        found = profile.propensities_found
        return profile.never_random or (found is not None and found.contradicted)

    @property
    def exact_propensities(self) -> bool:
        return self._logged_propensities and not self.contradicted_propensities

    @property
    def estimated_propensities(self) -> bool:
        return self.log is not None and self.log.propensity_status == "estimated"

    @property
    def estimated(self) -> dict[str, str]:
        results = self.results
        kinds = dict.fromkeys(one.kind for one in results.estimands)
        named = [claims.TARGETS[kind]() if kind in claims.TARGETS else kind for kind in kinds]
        return {
            "target": " and ".join([named[0], *(name[:1].lower() + name[1:] for name in named[1:])]),
            "estimator": ESTIMATORS.get(results.estimator, (results.estimator, ()))[0],
            "weights": f" with {results.weights} weights" if results.weights else "",
            "cited": _cite(self.cited[0]),
        }

    @property
    def law(self) -> dict[str, Any]:
        reference = self.results.reference
        sequence = isinstance(reference, SequenceReference)
        return {
            "null": self.results.null,
            "level": f"{100.0 * (1.0 - self.alpha):g}%",
            "intervals": "confidence sequences" if sequence else "confidence intervals",
            "name": reference.name,
            "cited": _cite(self.cited[1]),
        }

    @property
    def selected(self) -> bool:
        return isinstance(self.results, WinnerResults)

    @property
    def exact(self) -> bool:
        return self.results.validity == "exact"

    @property
    def anytime(self) -> bool:
        return self.results.validity == "anytime"

    @property
    def asymptotic(self) -> bool:
        return self.results.validity == "asymptotic"

    @property
    def not_valid(self) -> bool:
        return self.results.validity == "not valid"

    @property
    def corrected(self) -> dict[str, str]:
        correction = self.results.correction
        if correction is None:
            return {}
        return {"cited": _cite(self.cited[2]), "correction": correction.describe(self.alpha)}

    @property
    def several_terms(self) -> bool:
        return len(self.results.terms) > 1

    @property
    def software(self) -> dict[str, str]:
        return {"versions": versions()}


def _cite(keys: tuple[str, ...]) -> str:
    return f" ({'; '.join(keys)})" if keys else ""
