"""A page that shows runs while they work, from their files alone."""
