"""Units with several rounds: what errors by unit need of rows, added up over the units."""
