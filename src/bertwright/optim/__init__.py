"""Optimizers (LAMB, AdamW, Muon), groups of parameters, clipping, learning-rate schedules, state as named tensors."""
