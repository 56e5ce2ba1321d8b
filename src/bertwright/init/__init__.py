"""Draft a commented recipe for a language, a machine, hours and a quality. Uses neither torch nor the network."""
