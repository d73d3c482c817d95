"""Which version of adaptinf decides in a trial, and the change to another."""
