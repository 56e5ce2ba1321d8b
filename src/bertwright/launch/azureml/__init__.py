"""Azure Machine Learning, through files of its CLI and SDK v2. Only submitting needs the package azure-ai-ml."""
