"""What a log allows: read once, and asked by every model."""

from adaptinf.inference.validity.policies import PolicySnapshots

__all__ = [
    "PolicySnapshots",
]
