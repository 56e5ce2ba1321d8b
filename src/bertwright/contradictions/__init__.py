"""What keys of different sections of a recipe cannot be together; `Recipe.check` asks for all of it."""
