"""Training objectives: losses by name, as sums over a batch."""
