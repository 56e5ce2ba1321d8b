"""Self-attention within the sequences of a packed batch; one module per kernel."""
