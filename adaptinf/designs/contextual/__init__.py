"""Designs that use contexts: effects by group, and rewards linear in a context vector."""
