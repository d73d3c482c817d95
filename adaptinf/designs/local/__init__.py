"""Reports that are private before they leave the participant."""
