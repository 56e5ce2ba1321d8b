"""Azure Machine Learning, by files of its CLI and SDK v2. Only submitting needs the package azure-ai-ml."""
