"""Simulated trials in blocks, measures computed from them, and plans and studies based on them."""
