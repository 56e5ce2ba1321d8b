"""Import of external data (made by other programs) in the stage `examples`, for the phases that name such data."""
