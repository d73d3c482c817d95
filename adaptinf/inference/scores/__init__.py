"""From rounds to weighted scores, on arrays: outcome models, weights, least squares."""
