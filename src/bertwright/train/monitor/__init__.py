"""What a training measures and who is shown it: metrics rows, throughput, profiles, observers."""
