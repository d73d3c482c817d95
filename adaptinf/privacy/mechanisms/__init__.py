"""Single releases: noise added to a number, and questions answered by sparse vector."""
