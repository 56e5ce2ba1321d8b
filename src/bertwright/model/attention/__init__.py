"""Self-attention inside the sequences of a packed batch: one file a kernel."""
