"""Short trainings of a recipe in child processes: rehearsals of a run, and autotuning. Does not import torch."""
