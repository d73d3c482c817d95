"""Designs whose reports are privatised before they leave the participant."""
