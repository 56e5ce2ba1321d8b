"""Copies artifacts to an address and back: uploads of a run, and the mirror of a training. An artifact with a manifest
is complete there, as it is here."""
