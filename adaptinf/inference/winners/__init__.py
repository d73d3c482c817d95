"""The best of several estimates: intervals that know that it was picked for being the best."""

from adaptinf.inference.winners.intervals import winner_interval
from adaptinf.inference.winners.results import WinnerInterval

__all__ = ["WinnerInterval", "winner_interval"]
