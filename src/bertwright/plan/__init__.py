"""Forecasts of a run before it starts: memory, disk, steps, tokens, hours, energy and cost. Does not import torch."""
