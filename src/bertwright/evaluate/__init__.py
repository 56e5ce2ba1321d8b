"""Evaluation: from a finished model and the held-out split to scores with baselines, and sample predictions."""
