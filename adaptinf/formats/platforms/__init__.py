"""Exports of experiment platforms and trials: units, assignments and draws, joined to their outcomes."""
