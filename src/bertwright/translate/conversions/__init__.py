"""How options whose value is not simply that of a key become keys: one function each, named by `Option.becomes`."""
