"""Numeric precision of a network; the weights that the optimizer updates are always float32."""
