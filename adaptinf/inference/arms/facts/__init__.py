"""Facts on which claims about arm means depend: for any method, sample means, and inverse weighting."""
