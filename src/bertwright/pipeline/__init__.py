"""The stages of a recipe in order: their inputs, whether a folder holds their results, and how to run them."""
