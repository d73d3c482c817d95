"""Private successive elimination against private UCB, and the private stopping rule."""
