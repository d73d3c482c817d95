"""All arms against a control: differences and lifts, one by one and at once."""

from adaptinf.inference.contrasts.model import Contrasts
from adaptinf.inference.contrasts.results import ContrastsResults

__all__ = ["Contrasts", "ContrastsResults"]
