"""What is kept outside a trial's file: the key, with what it seals, and heads."""
