"""A package with a plugin of each kind, as a stranger would write it."""
