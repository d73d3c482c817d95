"""Tools' own 95% intervals on logs of adaptive experiments, side by side."""
