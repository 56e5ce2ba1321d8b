"""Verdicts on a recipe and the machine before any work starts: data, packages, hardware, the run folder."""
