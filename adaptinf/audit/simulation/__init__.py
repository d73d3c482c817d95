"""Simulated trials in blocks, what is measured of them, and the plans and studies that are made of them."""
