"""User input, parsed and checked: labels, formulas, frames by arm."""
