"""The qualification of an installation: what is installed, and tests on this machine with known answers."""

from adaptinf.qualification.qualified import Qualification, qualify

__all__ = ["Qualification", "qualify"]
