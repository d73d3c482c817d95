"""Bias of a trial that has ended, by re-simulation, and how far a design lets its counts settle."""
