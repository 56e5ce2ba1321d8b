"""Where a recipe is run: a place, and what is given to its scheduler. Knows no torch, and no package of a target."""
