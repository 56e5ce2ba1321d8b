"""The network: BERT on packed batches, its heads and losses, its file format, its names at Hugging Face."""
