"""What the notes under the table of `diagnose` ask."""
