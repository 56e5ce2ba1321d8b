"""The network: encoders on packed batches, pre-training heads, the file format, and other programs' tensor names."""
