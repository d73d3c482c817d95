"""Designs that recommend one arm at a fixed budget."""
