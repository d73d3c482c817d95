"""What a user typed, read and checked: labels, formulas, frames by arm."""
