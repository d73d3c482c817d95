"""The best of several estimates: intervals that allow for its having been picked."""

from adaptinf.inference.winners.winner import Winner
from adaptinf.inference.winners.winner_intervals import winner_interval
from adaptinf.inference.winners.winner_results import WinnerInterval, WinnerResults

__all__ = ["Winner", "WinnerInterval", "WinnerResults", "winner_interval"]
