"""Designs whose reports are private before they leave the participant."""
