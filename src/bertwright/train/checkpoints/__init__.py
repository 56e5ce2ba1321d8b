"""Checkpoints: written, found again, and finished as the model of the run."""
