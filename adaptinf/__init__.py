"""Valid inference for data that were gathered adaptively, with or without differential privacy.

Public names are imported when they are first used, so that ``import adaptinf`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adaptinf import audit, datasets, designs, errors, formats, plots, privacy, theory
    from adaptinf.guarantee import PrivacyGuarantee
    from adaptinf.inference.arms import ArmMeans, Contrast
    from adaptinf.inference.bias import bias_bound
    from adaptinf.inference.bin_means import BinMeans
    from adaptinf.inference.cate import CATE
    from adaptinf.inference.compare import compare
    from adaptinf.inference.diagnose import diagnose
    from adaptinf.inference.linear_bias import linear_bias, linear_bias_bound
    from adaptinf.inference.maxinfo import correct_pvalues, corrected_level, max_information
    from adaptinf.inference.policy import PolicyContrast, PolicyValue
    from adaptinf.inference.recommend import recommend
    from adaptinf.inference.regression import AdaptiveOLS
    from adaptinf.inference.sequence import ConfidenceSequence
    from adaptinf.inference.snapshots import PolicySnapshots
    from adaptinf.log import AdaptiveLog, read_log
    from adaptinf.simulation import environments

__version__ = "0.1.0"

__all__ = [
    "CATE",
    "AdaptiveLog",
    "AdaptiveOLS",
    "ArmMeans",
    "BinMeans",
    "ConfidenceSequence",
    "Contrast",
    "PolicyContrast",
    "PolicySnapshots",
    "PolicyValue",
    "PrivacyGuarantee",
    "__version__",
    "audit",
    "bias_bound",
    "compare",
    "correct_pvalues",
    "corrected_level",
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
    "theory",
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
    "BinMeans": "adaptinf.inference.bin_means",
    "CATE": "adaptinf.inference.cate",
    "ConfidenceSequence": "adaptinf.inference.sequence",
    "Contrast": "adaptinf.inference.arms",
    "PolicyContrast": "adaptinf.inference.policy",
    "PolicySnapshots": "adaptinf.inference.snapshots",
    "PolicyValue": "adaptinf.inference.policy",
    "PrivacyGuarantee": "adaptinf.guarantee",
    "bias_bound": "adaptinf.inference.bias",
    "compare": "adaptinf.inference.compare",
    "diagnose": "adaptinf.inference.diagnose",
    "correct_pvalues": "adaptinf.inference.maxinfo",
    "corrected_level": "adaptinf.inference.maxinfo",
    "linear_bias": "adaptinf.inference.linear_bias",
    "linear_bias_bound": "adaptinf.inference.linear_bias",
    "max_information": "adaptinf.inference.maxinfo",
    "read_log": "adaptinf.log",
    "recommend": "adaptinf.inference.recommend",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(_MODULES[name])
    elif name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
