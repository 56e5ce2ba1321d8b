"""Conversion of configurations and tensor names to and from other programs; one module per family."""
