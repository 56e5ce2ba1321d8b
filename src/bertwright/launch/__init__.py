"""Where a recipe runs: a place, and what its scheduler receives. Imports neither torch nor any package of a target."""
