"""Environments, the run loop and replication."""
