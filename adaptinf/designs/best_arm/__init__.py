"""Designs that name one arm at a fixed budget."""
