"""The qualification of an installation: its contents, and tests with known answers on this machine."""

from adaptinf.qualification.qualified import Qualification, qualify

__all__ = ["Qualification", "qualify"]
