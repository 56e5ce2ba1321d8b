"""Conversions of options whose value differs from that of the key: one function each, named by `Option.becomes`."""
