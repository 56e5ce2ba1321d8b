"""A copy of a training's checkpoints and of its finished model at an address. None unless a recipe names one."""
