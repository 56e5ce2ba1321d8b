"""The score of benchmarks/speedrun.py: masked tokens of held-out text, the same for every network that is scored."""

import math
from pathlib import Path

import numpy as np
import torch

from bertwright.core.artifact import open_artifact
from bertwright.examples.heldout_loader import heldout_batches
from bertwright.model.batch import packed
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import load_model
from bertwright.objectives.pretraining import PreTraining
from bertwright.objectives.scores import score

LENGTH, RATE, MOST, SEQUENCES = 128, 0.15, 20, 1024


def score_model(model: PreTrainingModel, run: Path) -> dict[str, float]:
    """Loss in nats, accuracy and bits a character of 1,024 held-out sequences, 15 % of their tokens predicted.

    The characters are those of the predicted pieces, with one for the space before each that begins a word.
    """
    examples, vocab = open_artifact(run / "examples", "examples"), open_artifact(run / "vocab", "vocab")
    batches = list(heldout_batches(examples, LENGTH, MOST, RATE, 64, SEQUENCES))
    scores = score(PreTraining(False), model, (packed(batch, torch.device("cpu")) for batch in batches))
    pieces = vocab.file("vocab.txt").read_text(encoding="utf-8").splitlines()
    lengths = np.array([len(piece.removeprefix("##")) + (not piece.startswith("##")) for piece in pieces])
    characters = sum(int(lengths[batch.labels].sum()) for batch in batches)
    loss, accuracy, predictions = scores["mlm_loss"], scores["mlm_accuracy"], scores["predictions"]
    assert loss is not None and accuracy is not None and predictions is not None
    bits = loss * predictions / math.log(2) / characters
    return {"loss": loss, "accuracy": accuracy, "bits_per_character": bits}


def score_folder(run: Path, threads: int) -> dict[str, float]:
    """The score of a finished run."""
    torch.set_num_threads(threads)
    return score_model(load_model(run / "train" / "model"), run)
