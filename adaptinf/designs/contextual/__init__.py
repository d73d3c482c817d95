"""Designs that use contexts: effects by group, and rewards that are linear in a context vector."""
