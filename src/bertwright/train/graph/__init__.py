"""How the network's operations are run: one after another, or compiled into few."""
