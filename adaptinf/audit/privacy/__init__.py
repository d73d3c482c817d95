"""Lower bounds of epsilon from what designs, mechanisms and counters give out."""
