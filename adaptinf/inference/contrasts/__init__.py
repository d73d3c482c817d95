"""All arms compared with a control: differences and lifts, singly and simultaneously."""

from adaptinf.inference.contrasts.many_contrasts import Contrasts, ContrastsResults

__all__ = ["Contrasts", "ContrastsResults"]
