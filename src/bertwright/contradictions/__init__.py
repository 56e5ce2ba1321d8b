"""Combinations of keys in different sections of a recipe that contradict each other; `Recipe.check` runs all checks."""
