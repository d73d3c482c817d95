"""Sites of a trial and the kits at each: their codes, their stock, and the kit of a participant."""
