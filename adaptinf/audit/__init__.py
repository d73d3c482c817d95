"""Calibration of analyses under a design."""
