"""Real data that ship with a dependency."""
