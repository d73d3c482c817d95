"""From rounds to weighted scores, on arrays: outcome models, weights, means and their errors."""
