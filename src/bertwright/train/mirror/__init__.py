"""Copies a training's checkpoints and its finished model to an address; only if a recipe names one."""
