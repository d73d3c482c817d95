"""The method."""
