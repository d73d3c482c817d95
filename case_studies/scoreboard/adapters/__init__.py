"""One file a tool: `interval(log, target)` gives the ends of its own 95% interval, or None where it has none.

A third number names the arm, where the tool itself says which one leads. Files in R have a function of the
same name.
"""
