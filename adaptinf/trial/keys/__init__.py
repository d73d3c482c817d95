"""The key and the heads that are kept outside a trial's file, and the data sealed with the key."""
