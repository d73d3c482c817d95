"""Keys kept outside a trial's file: where they are read from, and what they seal."""
