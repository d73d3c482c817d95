"""Facts for claims about arm means: about any method, sample means, and inverse weighting."""
