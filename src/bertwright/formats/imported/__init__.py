"""Data made elsewhere, brought in by the stage `examples` for the phases that name it."""
