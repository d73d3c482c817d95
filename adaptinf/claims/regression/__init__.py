"""Claims about regressions: about all of them, about ordinary least squares, and about its adjustments."""
