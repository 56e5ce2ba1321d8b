"""The programs that run a published model, each in its own file: how its format is written, and how it is read back."""
