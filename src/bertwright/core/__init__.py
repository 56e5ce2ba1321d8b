"""What every stage stands on: artifacts, files, tasks, random numbers, errors, the log. Knows no BERT and no torch."""
