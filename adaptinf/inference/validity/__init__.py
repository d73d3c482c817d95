"""The methods that a log supports, which are determined once and used by every model."""

from adaptinf.inference.validity.policies import PolicySnapshots
from adaptinf.inference.validity.sums_profile import SumsProfile

__all__ = [
    "PolicySnapshots",
    "SumsProfile",
]
