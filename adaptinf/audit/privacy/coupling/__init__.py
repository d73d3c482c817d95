"""Two neighbouring live trials with equal coins, their noise shifted until all that is released agrees."""
