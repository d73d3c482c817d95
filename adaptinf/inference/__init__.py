"""Estimates, intervals and tests that are valid for adaptively collected data."""
