"""Designs that recommend one arm after a fixed budget of rounds."""
