"""Effects as linear functions of covariates: the scores, the weights, and the model."""
