"""The best of several estimates: intervals that account for the selection."""

from adaptinf.inference.winners.winner import Winner
from adaptinf.inference.winners.winner_intervals import winner_interval
from adaptinf.inference.winners.winner_results import WinnerInterval, WinnerResults

__all__ = ["Winner", "WinnerInterval", "WinnerResults", "winner_interval"]
