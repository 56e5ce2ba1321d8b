"""The stages of a recipe in their order: what each is made of, whether a folder holds it, and running them."""
