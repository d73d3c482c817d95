"""The best of several estimates: intervals that allow for its having been picked."""

from adaptinf.inference.winners.intervals import winner_interval
from adaptinf.inference.winners.model import Winner
from adaptinf.inference.winners.results import WinnerInterval, WinnerResults

__all__ = ["Winner", "WinnerInterval", "WinnerResults", "winner_interval"]
