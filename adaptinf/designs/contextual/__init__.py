"""Designs that use contexts: group effects, and rewards that are linear in a context vector."""
