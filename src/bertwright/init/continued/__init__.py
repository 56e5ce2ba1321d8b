"""Draft a recipe that continues a pre-trained network on other text: what is known of both, and what follows."""
