"""Tails and laws that know no log."""
