"""Whether whole-number noise, as it was drawn, is what it is stated to be: law, tails, repeats, lattices."""
