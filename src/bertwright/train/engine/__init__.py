"""Engines: where weights are held, and how gradients become an update; one file per engine."""
