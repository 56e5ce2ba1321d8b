"""Slurm: submit the jobs of a run as a chain of batch scripts."""
