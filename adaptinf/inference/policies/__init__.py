"""Values of policies that were never run."""

from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue

__all__ = [
    "PolicyContrast",
    "PolicyValue",
]
