"""Logs as files, and the plain values that a file contains."""
