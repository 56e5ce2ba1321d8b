"""Averages of the weights over training, which are scored and exported instead of the last weights."""
