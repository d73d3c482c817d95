"""Valid inference for adaptively collected data, with or without differential privacy.

Public names are imported on first use, so ``import adaptinf`` is fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from adaptinf.version import __version__

if TYPE_CHECKING:
    from adaptinf import audit, datasets, designs, errors, formats, plots, privacy, theory
    from adaptinf.guarantee import PrivacyGuarantee
    from adaptinf.inference.arms import ArmMeans, Contrast
    from adaptinf.inference.contrasts import Contrasts
    from adaptinf.inference.corrections import (
        bias_bound,
        correct_pvalues,
        corrected_level,
        correction_for,
        linear_bias,
        linear_bias_bound,
        max_information,
    )
    from adaptinf.inference.diagnostics import diagnose
    from adaptinf.inference.effects import CATE
    from adaptinf.inference.group_sequential import spending_bounds
    from adaptinf.inference.policies import PolicyContrast, PolicyValue
    from adaptinf.inference.recommend import recommend
    from adaptinf.inference.regression import AdaptiveOLS
    from adaptinf.inference.released import BinMeans
    from adaptinf.inference.results import compare, result
    from adaptinf.inference.sequences import ConfidenceSequence
    from adaptinf.inference.validity import PolicySnapshots
    from adaptinf.inference.winners import Winner, winner_interval
    from adaptinf.log import AdaptiveLog, read_log
    from adaptinf.plans import Plan, calibrate
    from adaptinf.reports import report
    from adaptinf.simulation import environments
    from adaptinf.sums import Sums, aggregate
    from adaptinf.trial import Trial

__all__ = [
    "CATE",
    "AdaptiveLog",
    "AdaptiveOLS",
    "ArmMeans",
    "BinMeans",
    "ConfidenceSequence",
    "Contrast",
    "Contrasts",
    "Plan",
    "PolicyContrast",
    "PolicySnapshots",
    "PolicyValue",
    "PrivacyGuarantee",
    "Sums",
    "Trial",
    "Winner",
    "__version__",
    "aggregate",
    "audit",
    "bias_bound",
    "calibrate",
    "compare",
    "correct_pvalues",
    "corrected_level",
    "correction_for",
    "datasets",
    "designs",
    "diagnose",
    "environments",
    "errors",
    "formats",
    "linear_bias",
    "linear_bias_bound",
    "max_information",
    "plots",
    "privacy",
    "read_log",
    "recommend",
    "report",
    "result",
    "spending_bounds",
    "theory",
    "winner_interval",
]

_MODULES = {
    "audit": "adaptinf.audit",
    "datasets": "adaptinf.datasets",
    "designs": "adaptinf.designs",
    "environments": "adaptinf.simulation.environments",
    "errors": "adaptinf.errors",
    "formats": "adaptinf.formats",
    "plots": "adaptinf.plots",
    "privacy": "adaptinf.privacy",
    "theory": "adaptinf.theory",
}
_HOMES = {
    "AdaptiveLog": "adaptinf.log",
    "AdaptiveOLS": "adaptinf.inference.regression",
    "ArmMeans": "adaptinf.inference.arms",
    "BinMeans": "adaptinf.inference.released",
    "CATE": "adaptinf.inference.effects",
    "ConfidenceSequence": "adaptinf.inference.sequences",
    "Contrast": "adaptinf.inference.arms",
    "Plan": "adaptinf.plans",
    "PolicyContrast": "adaptinf.inference.policies",
    "PolicySnapshots": "adaptinf.inference.validity",
    "PolicyValue": "adaptinf.inference.policies",
    "PrivacyGuarantee": "adaptinf.guarantee",
    "Sums": "adaptinf.sums",
    "Trial": "adaptinf.trial",
    "aggregate": "adaptinf.sums",
    "bias_bound": "adaptinf.inference.corrections",
    "calibrate": "adaptinf.plans",
    "compare": "adaptinf.inference.results",
    "result": "adaptinf.inference.results",
    "diagnose": "adaptinf.inference.diagnostics",
    "correct_pvalues": "adaptinf.inference.corrections",
    "corrected_level": "adaptinf.inference.corrections",
    "correction_for": "adaptinf.inference.corrections",
    "linear_bias": "adaptinf.inference.corrections",
    "linear_bias_bound": "adaptinf.inference.corrections",
    "max_information": "adaptinf.inference.corrections",
    "read_log": "adaptinf.log",
    "recommend": "adaptinf.inference.recommend",
    "report": "adaptinf.reports",
    "spending_bounds": "adaptinf.inference.group_sequential",
    "Contrasts": "adaptinf.inference.contrasts",
    "Winner": "adaptinf.inference.winners",
    "winner_interval": "adaptinf.inference.winners",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        from adaptinf.texts import did_you_mean

        # Tools ask every module for Python's special names, so a missing one is not a misspelt public name.
        near = "" if name.startswith("__") else did_you_mean(name, __all__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{near}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
