"""The score of benchmarks/speedrun.py: masked tokens of held-out text, the same for every network that is scored."""

import math
from pathlib import Path

import numpy as np
import torch

from bertwright.core.artifact import open_artifact
from bertwright.examples.frequencies import training_counts
from bertwright.examples.planned import heldout_batches
from bertwright.model.batch import packed
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.pretraining.scores import baselines, bits_per_character, entry_lengths
from bertwright.vocab.tokenizer import load_tokenizer

LENGTH, RATE, MOST, SEQUENCES = 128, 0.15, 20, 1024


def score_model(model: PreTrainingModel, run: Path) -> dict[str, float]:
    """Loss in nats, accuracy and bits per character on 1,024 held-out sequences with 15 % of their tokens predicted,
    and the loss of word frequencies alone on the same tokens. A loss that is not a finite number is returned as
    infinity."""
    examples = open_artifact(run / "examples", "examples")
    batches = list(heldout_batches(examples, LENGTH, MOST, RATE, 64, SEQUENCES))
    scores = score(PreTraining(False), model, (packed(batch, torch.device("cpu")) for batch in batches))
    labels = np.concatenate([batch.labels for batch in batches])
    mean = scores["mlm_loss"]
    loss = mean if mean is not None and math.isfinite(mean) else math.inf
    lengths = entry_lengths(load_tokenizer(run / "vocab").vocabulary)
    found = {
        "loss": loss,
        "accuracy": scores["mlm_accuracy"],
        "bits_per_character": bits_per_character(loss, labels, lengths),
        "unigram": baselines(training_counts(examples), labels)["unigram_loss"],
    }
    if absent := [name for name, value in found.items() if value is None]:
        raise SystemExit(f"{run} has no {absent[0]} of its held-out text: give a longer text, or more examples.heldout")
    return {name: float(value) for name, value in found.items() if value is not None}


def score_folder(run: Path, threads: int) -> dict[str, float]:
    """The score of a finished run."""
    torch.set_num_threads(threads)
    return score_model(load_model(run / "train" / "model"), run)
