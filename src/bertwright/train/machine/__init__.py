"""The machine of a training: instruction sets, threads, requests to stop or to save."""
