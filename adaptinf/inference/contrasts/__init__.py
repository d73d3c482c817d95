"""All arms against a control: differences and lifts, one by one and simultaneously."""

from adaptinf.inference.contrasts.many_contrasts import Contrasts, ContrastsResults

__all__ = ["Contrasts", "ContrastsResults"]
