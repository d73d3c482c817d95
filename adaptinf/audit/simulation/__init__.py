"""Simulated trials in blocks, analysed as they come, and what is measured of them."""
