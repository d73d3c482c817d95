"""Claims about regressions: of every one, of plain least squares, and of its adjustments."""
