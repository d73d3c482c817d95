"""Values of policies that were not used to collect the data."""

from adaptinf.inference.policies.policy_models import PolicyContrast, PolicyValue

__all__ = [
    "PolicyContrast",
    "PolicyValue",
]
