"""Statements of a report and its plots about a log and a result, beyond those of the table."""
