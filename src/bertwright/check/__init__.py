"""Verdicts on a recipe and on the machine, before any work: the data, the packages, the machine, the run folder."""
