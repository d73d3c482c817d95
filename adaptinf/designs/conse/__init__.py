"""Effects by group: first the better arm of each, then a randomised phase."""
