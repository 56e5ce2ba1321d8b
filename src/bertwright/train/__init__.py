"""Examples and a model in, checkpoints, metrics and a finished model folder out."""
