"""A finished model and the held-out split in, scores beside their baselines and sample predictions out."""
