"""Benchmark training against another program on the same examples, in alternating blocks of one run."""
