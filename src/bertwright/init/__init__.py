"""A commented recipe for a language, a machine, hours and a quality. Without torch, and without a network."""
