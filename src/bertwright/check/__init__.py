"""Verdicts on a recipe and on the machine, before any work: one file for each thing that is looked at."""
