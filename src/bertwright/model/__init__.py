"""The network: encoders on packed batches, pre-training heads, the file format, names of other programs."""
