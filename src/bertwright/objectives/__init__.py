"""What a network is trained for: losses by name, as sums over a batch."""
