"""Grids of trials that can be killed and go on."""
