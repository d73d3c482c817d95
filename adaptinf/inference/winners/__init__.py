"""The best of several estimates: intervals that know that it was picked for being the best."""

from adaptinf.inference.winners.intervals import winner_interval
from adaptinf.inference.winners.model import Winner
from adaptinf.inference.winners.results import WinnerInterval, WinnerResults

__all__ = ["Winner", "WinnerInterval", "WinnerResults", "winner_interval"]
