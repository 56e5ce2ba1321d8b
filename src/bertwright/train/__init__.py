"""Trains a model on examples; writes checkpoints, metrics and a finished model folder."""
