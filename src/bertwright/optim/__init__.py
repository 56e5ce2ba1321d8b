"""Optimizers (LAMB, AdamW), who decays, gradient clipping, learning-rate schedules, and state as named tensors."""
