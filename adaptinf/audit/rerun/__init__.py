"""The log's own design, run again along the logged path or in an environment fitted to the log."""
