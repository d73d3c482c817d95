"""The live path: sessions and trials with exact noise, their decisions, noise and public parts."""
