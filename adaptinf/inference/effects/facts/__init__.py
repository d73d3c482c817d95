"""What claims ask of effects."""
