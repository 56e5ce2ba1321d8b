"""The memory that a training takes on a rank, estimated from its settings. Imports no torch."""
