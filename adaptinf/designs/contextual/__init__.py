"""Designs that go by contexts: effects by group, and rewards linear in a context vector."""
