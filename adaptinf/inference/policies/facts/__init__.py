"""What the claims on values of policies ask of a log and of a fit."""
