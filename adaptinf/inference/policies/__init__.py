"""Values of policies that were never run."""

from adaptinf.inference.policies.models import PolicyContrast, PolicyValue

__all__ = [
    "PolicyContrast",
    "PolicyValue",
]
