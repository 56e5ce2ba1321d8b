"""Averages of the weights over training, which are scored and exported in their place: one file a kind."""
