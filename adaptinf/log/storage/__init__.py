"""Logs as files, and the plain values in a file."""
