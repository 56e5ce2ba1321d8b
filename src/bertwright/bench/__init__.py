"""Training beside another program on the same examples, measured in turn in one run."""
