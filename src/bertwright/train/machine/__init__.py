"""What a training asks of its machine and hears from it: instruction sets, threads, requests to stop."""
