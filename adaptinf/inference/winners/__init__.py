"""The best of several estimates: intervals that know that it was picked for being the best."""

from adaptinf.inference.winners.intervals import WinnerInterval, winner_interval

__all__ = ["WinnerInterval", "winner_interval"]
