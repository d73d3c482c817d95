"""What the claims of methods for arm means ask of a log and of a fit."""
