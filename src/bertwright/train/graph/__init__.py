"""How the network's operations are executed: one after another, or compiled into few."""
