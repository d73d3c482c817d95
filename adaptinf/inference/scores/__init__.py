"""From rounds to weighted scores, using arrays: outcome models, weights, means and their errors."""
