"""Estimates, intervals and tests that are valid for adaptively gathered data."""
