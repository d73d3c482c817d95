"""What the claims on confidence sequences ask of a log and of a fit."""
