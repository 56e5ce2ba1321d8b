"""Pre-training with a teacher, whose predictions and hidden states the network learns to match."""
