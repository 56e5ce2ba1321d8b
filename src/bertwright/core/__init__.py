"""The basis of every stage: artifacts, files, tasks, random numbers, errors, the log. Independent of BERT and torch."""
