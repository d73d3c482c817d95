"""User input that is parsed and checked: labels, formulas, and columns by arm."""
