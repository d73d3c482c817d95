"""The methods paragraph of a report, ready to paste, with its references."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from adaptinf.claims import Said, said
from adaptinf.claims.arms.arm_fits import CHOSEN
from adaptinf.claims.reports import methods as claims
from adaptinf.claims.tables import AT_ONCE, BH, HOLM, OWN_NUMBERS, OWN_REFERENCE
from adaptinf.inference.distributions.event_sums import EventSumReference
from adaptinf.inference.distributions.ratio import AndersonRubinReference
from adaptinf.inference.distributions.references import (
    BinomialReference,
    EndsReference,
    JoinedReference,
    PartialReference,
    RecodedReference,
)
from adaptinf.inference.distributions.skewed import SkewedReference, SkewedSumReference
from adaptinf.inference.distributions.two_samples import DifferenceReference
from adaptinf.inference.results.explanation import estimator_name
from adaptinf.inference.sequences.sequence_methods import METHODS as SEQUENCES
from adaptinf.inference.sequences.tracks import SequenceReference
from adaptinf.inference.validity.profile import profile_of
from adaptinf.inference.winners.winner_law import WinnerLaw
from adaptinf.inference.winners.winner_results import WinnerResults
from adaptinf.log import AdaptiveLog
from adaptinf.reports.collection_facts import design_told
from adaptinf.sums import Sums
from adaptinf.version import __version__

if TYPE_CHECKING:
    from adaptinf.inference.distributions.references import Reference
    from adaptinf.inference.results.fit_results import Results
    from adaptinf.reports.shown_numbers import Shown


REFERENCES: Mapping[str, str] = MappingProxyType(
    {
        "Abbasi-Yadkori 2011": "Abbasi-Yadkori Y, Pál D, Szepesvári C (2011). Improved algorithms for "
        "linear stochastic bandits. NeurIPS.",
        "Agresti 2000": "Agresti A, Caffo B (2000). Simple and effective confidence intervals for "
        "proportions and differences of proportions result from adding two successes and two failures. The "
        "American Statistician 54.",
        "Anderson 1949": "Anderson TW, Rubin H (1949). Estimation of the parameters of a single equation in "
        "a complete system of stochastic equations. Annals of Mathematical Statistics 20.",
        "Andrews 2024": "Andrews I, Kitagawa T, McCloskey A (2024). Inference on winners. Quarterly Journal "
        "of Economics 139.",
        "Bibaut 2021": "Bibaut A, Dimakopoulou M, Kallus N, Chambaz A, van der Laan M (2021). "
        "Post-contextual-bandit inference. NeurIPS.",
        "Clopper 1934": "Clopper CJ, Pearson ES (1934). The use of confidence or fiducial limits illustrated "
        "in the case of the binomial. Biometrika 26.",
        "Deshpande 2018": "Deshpande Y, Mackey L, Syrgkanis V, Taddy M (2018). Accurate inference for "
        "adaptive linear models. ICML.",
        "Fay 1997": "Fay MP, Feuer EJ (1997). Confidence intervals for directly standardized rates: a method "
        "based on the gamma distribution. Statistics in Medicine 16.",
        "Hadad 2021": "Hadad V, Hirshberg DA, Zhan R, Wager S, Athey S (2021). Confidence intervals for "
        "policy evaluation in adaptive experiments. PNAS 118.",
        "Hall 1992": "Hall P (1992). On the removal of skewness by transformation. Journal of the Royal "
        "Statistical Society B 54.",
        "Horvitz 1952": "Horvitz DG, Thompson DJ (1952). A generalization of sampling without replacement "
        "from a finite universe. Journal of the American Statistical Association 47.",
        "Howard 2021": "Howard SR, Ramdas A, McAuliffe J, Sekhon J (2021). Time-uniform, nonparametric, "
        "nonasymptotic confidence sequences. Annals of Statistics 49.",
        "Li 2024": "Li J, Shi K, Simchi-Levi D (2024). Privacy preserving adaptive experiment design. ICML.",
        "Lindon 2022": "Lindon M, Ham DW, Tingley M, Bojinov I (2022). Anytime-valid linear models and "
        "regression adjusted causal inference in randomized experiments. arXiv:2210.08589.",
        "Neel 2018": "Neel S, Roth A (2018). Mitigating bias in adaptive data gathering via differential "
        "privacy. ICML.",
        "Robbins 1970": "Robbins H (1970). Statistical methods related to the law of the iterated logarithm. "
        "Annals of Mathematical Statistics 41.",
        "Rogers 2016": "Rogers R, Roth A, Smith A, Thakkar O (2016). Max-information, differential privacy, "
        "and post-selection hypothesis testing. FOCS.",
        "Waudby-Smith 2024a": "Waudby-Smith I, Ramdas A (2024). Estimating means of bounded random variables "
        "by betting. Journal of the Royal Statistical Society B 86.",
        "Waudby-Smith 2024b": "Waudby-Smith I, Wu L, Ramdas A, Karampatziakis N, Mineiro P (2024). "
        "Anytime-valid off-policy inference for contextual bandits. ACM/IMS Journal of Data Science 1.",
        "Waudby-Smith 2024c": "Waudby-Smith I, Arbour D, Sinha R, Kennedy EH, Ramdas A (2024). Time-uniform "
        "central limit theory and asymptotic confidence sequences. Annals of Statistics 52.",
        "Welch 1947": "Welch BL (1947). The generalization of 'Student's' problem when several different "
        "population variances are involved. Biometrika 34.",
        "Ying 2023": "Ying M, Khamaru K, Zhang CH (2023). Adaptive linear estimating equations. NeurIPS.",
        "Zhan 2021": "Zhan R, Hadad V, Hirshberg DA, Athey S (2021). Off-policy evaluation via adaptive "
        "weighting with data from contextual bandits. KDD.",
        "Zhang 2020": "Zhang KW, Janson L, Murphy SA (2020). Inference for batched bandits. NeurIPS.",
        "Zhang 2021": "Zhang KW, Janson L, Murphy SA (2021). Statistical inference with M-estimators on "
        "adaptively collected data. NeurIPS.",
        "Zou 2008": "Zou GY, Donner A (2008). Construction of confidence limits about effect measures: a "
        "general approach. Statistics in Medicine 27.",
    }
)
_ESTIMATORS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "ipw": ("Horvitz 1952",),
        "aipw": ("Hadad 2021",),
        "alee": ("Ying 2023",),
        "batched": ("Zhang 2020",),
        "released": ("Li 2024",),
        "difference-in-means": ("Li 2024",),
        "cadr": ("Bibaut 2021",),
        "w-decorrelated": ("Deshpande 2018",),
        "weighted": ("Hadad 2021", "Zhang 2021"),
        "ridge": ("Abbasi-Yadkori 2011",),
    }
)
_KINDS = {"policy-value": ("Zhan 2021",), "policy-contrast": ("Zhan 2021",)}
_SEQUENCES = {
    "betting": ("Waudby-Smith 2024a", "Waudby-Smith 2024b"),
    "empirical-bernstein": ("Howard 2021", "Waudby-Smith 2024b"),
    "beta-binomial": ("Howard 2021",),
    "gamma-exponential": ("Howard 2021",),
    "normal-mixture": ("Robbins 1970", "Howard 2021"),
    "asymptotic": ("Waudby-Smith 2024c",),
}
_LAWS = (
    (SkewedReference, ("Hall 1992",)),
    (SkewedSumReference, ("Hall 1992", "Zou 2008")),
    (EventSumReference, ("Fay 1997", "Zou 2008")),
    (BinomialReference, ("Clopper 1934",)),
    (AndersonRubinReference, ("Anderson 1949",)),
    (WinnerLaw, ("Andrews 2024",)),
)


def cited(results: Results) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Keys of references for the estimator, the distribution of p-values and intervals, and corrections."""
    estimator = _ESTIMATORS.get(results.estimator, ())
    kinds = dict.fromkeys(key for one in results.estimands for key in _KINDS.get(one.kind, ()))
    correction = () if results.correction is None else ("Neel 2018", "Rogers 2016")
    anytime = ("Lindon 2022",) if results.estimator == "ols" and results.validity == "anytime" else ()
    law = (*anytime, *_law(results.reference))
    return tuple(dict.fromkeys([*estimator, *kinds])), law, correction


def _law(law: Reference) -> tuple[str, ...]:
    """References for a distribution; for a combined one, those of its parts."""
    if isinstance(law, SequenceReference):
        names = {one.title: name for name, one in SEQUENCES.items()}
        return _SEQUENCES[names[law.name]]
    if isinstance(law, DifferenceReference):
        adjusted = law.difference.adjusted
        found = ("Agresti 2000",) if adjusted.any() else ()
        return found if adjusted.all() else ("Welch 1947", *found)
    own = next((keys for kind, keys in _LAWS if isinstance(law, kind)), None)
    if own is not None:
        return own
    parts: tuple[Reference, ...] = ()
    if isinstance(law, (PartialReference, RecodedReference)):
        parts = (law.inner,)
    elif isinstance(law, EndsReference):
        parts = (law.low,)
    elif isinstance(law, JoinedReference):
        parts = law.parts
    return tuple(dict.fromkeys(key for part in parts for key in _law(part)))


_PACKAGES = ("numpy", "scipy", "pandas")
# The paragraph names at most this many arms, because a longer list would be hard to read.
_SHOWN = 8


def versions() -> str:
    """Versions of the package, Python, and the dependencies behind the numbers."""
    parts = [f"Python {platform.python_version()}", *(f"{name} {version(name)}" for name in _PACKAGES)]
    return f"adaptinf {__version__} ({', '.join(parts)})"


_TOLD_APART = (CHOSEN, AT_ONCE, HOLM, BH)
"""Claims that the paragraph states elsewhere, or that are not part of a method."""


def made_by(shown: Shown) -> list[str]:
    """How the numbers in a result were computed, apart from their distribution and adjustment."""
    law = shown.results._law_said(shown.alpha)
    notes = [one.text for one in shown.reasons.of("note") if one.text not in law]
    told = {shown.results.efficiency_note}
    return [one for one in notes if one not in told and getattr(one, "claim", None) not in _TOLD_APART]


def cautions_of(shown: Shown) -> list[str]:
    """Evidence against the numbers, and why some are missing."""
    return [one.text for kind in ("caution", "missing") for one in shown.reasons.of(kind)]


def methods_told(
    shown: Shown, log: AdaptiveLog | Sums | None, cautions: Sequence[str]
) -> tuple[str, list[str]]:
    """A paragraph on collection, estimation and software, and its references."""
    facts = _Facts(shown, log, cautions)
    keys = {key for part in facts.cited for key in part}
    notes = [note for note in shown.results.notes if isinstance(note, Said) and note.claim is OWN_REFERENCE]
    own = [note.values["reference"] for note in notes]
    return " ".join(said(claims.PARAGRAPH, facts)), [*(REFERENCES[key] for key in sorted(keys)), *own]


class _Facts:
    """Facts for the paragraph's claims about a result, and about its log if available."""

    def __init__(self, shown: Shown, log: AdaptiveLog | Sums | None, cautions: Sequence[str]) -> None:
        self.shown, self.results, self.log = shown, shown.results, log
        self.cautions, self.cited = cautions, cited(shown.results)

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
        """Whether the choices of arms contradict the logged propensities."""
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
            "estimator": estimator_name(results.estimator),
            "weights": f" with {results.weights} weights" if results.weights else "",
            "cited": _cite(self.cited[0]),
        }

    @property
    def law(self) -> dict[str, Any]:
        reference = self.results.reference
        sequence = isinstance(reference, SequenceReference)
        return {
            "null": self.results.null,
            "level": self.shown.level,
            "intervals": "confidence sequences" if sequence else "confidence intervals",
            "name": reference.name,
            "cited": _cite(self.cited[1]),
        }

    @property
    def selected(self) -> bool:
        return isinstance(self.results, WinnerResults)

    @property
    def valid(self) -> dict[str, str]:
        """Validity of the numbers, and whether a caution is evidence against it."""
        kind = self.results.validity
        if kind == "not valid":
            return {}
        fixed = self.log is not None and self.log.adaptive is False
        return {
            "holds": claims.HOLDS[kind](),
            "declared": claims.AS_DECLARED() if self._is_own else "",
            "under": "" if fixed else claims.UNDER_ADAPTATION(),
            "but": claims.BUT_LIMITED() if self.cautions else "",
        }

    @property
    def _is_own(self) -> bool:
        """Whether the estimator is the user's, who alone is responsible for its validity."""
        notes = self.results.notes
        return any(isinstance(note, Said) and note.claim is OWN_NUMBERS for note in notes)

    @property
    def not_valid(self) -> bool:
        return self.results.validity == "not valid"

    @property
    def corrected(self) -> dict[str, str]:
        correction = self.results.correction
        if correction is None:
            return {}
        return {"cited": _cite(self.cited[2]), "correction": correction.describe(self.shown.alpha)}

    @property
    def multiplicity(self) -> list[str]:
        return [self.shown.multiplicity] if self.shown.multiplicity else []

    @property
    def table_notes(self) -> list[str]:
        return made_by(self.shown)

    @property
    def deviations(self) -> list[str]:
        return [claims.DEVIATIONS(cautions="; ".join(self.cautions))] if self.cautions else []

    @property
    def software(self) -> dict[str, str]:
        return {"versions": versions()}


def _cite(keys: tuple[str, ...]) -> str:
    return f" ({'; '.join(keys)})" if keys else ""
