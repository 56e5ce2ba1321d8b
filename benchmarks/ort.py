"""Processor time of a step by ONNX Runtime beside torch's, in its own environment and in the usual one.

    .venv-ort/bin/python benchmarks/ort.py [--usual .venv/bin/python] [--steps 12]

Forward and backward pass of a BERT of 4 layers and width 256 over 8 sequences of 128 tokens with 160 predictions,
without dropout, kernel `padded`, on one thread; the least of the steps. In its own environment the two take turns.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import torch

from bertwright.model.batch import PackedBatch
from bertwright.model.bert.network import BertConfig
from bertwright.model.pretraining import PreTrainingModel
from bertwright.train.graph.config import EagerConfig, GraphConfig, OrtModuleConfig
from bertwright.train.graph.graph import run_as

NETWORK = {
    "vocab_size": 30_522, "hidden_size": 256, "num_hidden_layers": 4, "num_attention_heads": 4,
    "intermediate_size": 1024, "max_position_embeddings": 128, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
ROWS, LENGTH, PREDICTIONS = 8, 128, 160
Step = Callable[[], None]


def main(*arguments: str) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--usual", default=".venv/bin/python", help="the Python of the usual environment")
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--torch", action="store_true", help="only print the seconds of torch in this environment")
    given = parser.parse_args(arguments or None)
    torch.set_num_threads(1)
    if given.torch:
        print(min(seconds(given.steps, step_of(EagerConfig()))[0]))
        return
    theirs, ours = (min(each) for each in seconds(given.steps, step_of(OrtModuleConfig()), step_of(EagerConfig())))
    command = [given.usual, __file__, "--torch", "--steps", str(given.steps)]
    usual = float(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(f"ONNX Runtime {theirs:.3f} s, torch {torch.__version__} {ours:.3f} s, torch of {given.usual} {usual:.3f} s")
    print(f"ratios {theirs / ours:.2f} and {theirs / usual:.2f}")


def step_of(graph: GraphConfig) -> Step:
    """A forward and backward pass of the network, run by torch or by ONNX Runtime."""
    torch.manual_seed(0)
    network = run_as(PreTrainingModel(BertConfig(**NETWORK), "padded"), graph, torch.device("cpu"))
    made = batch()

    def step() -> None:
        masked_PV, pairs_B2 = network(made)
        (masked_PV.logsumexp(-1).sum() + pairs_B2.logsumexp(-1).sum()).backward()

    return step


def batch() -> PackedBatch:
    """Full rows of random tokens, with a last sequence of no tokens, as batches of fixed shape have."""
    tokens, none = ROWS * LENGTH, torch.zeros(0)
    bounds_R = torch.arange(ROWS + 1, dtype=torch.int32) * LENGTH
    return PackedBatch(
        token_ids=torch.randint(NETWORK["vocab_size"], (tokens,)),  # type: ignore[arg-type]
        position_ids=torch.arange(tokens) % LENGTH,
        segment_ids=torch.zeros(tokens, dtype=torch.int64),
        cu_seqlens=torch.cat([bounds_R, bounds_R[-1:]]),
        cu_rows=bounds_R,
        max_row=LENGTH,
        prediction_positions=torch.arange(PREDICTIONS) * (tokens // PREDICTIONS),
        labels=torch.zeros(PREDICTIONS, dtype=torch.int64),
        weights=torch.ones(PREDICTIONS),
        sequence_labels=none,
        sequence_weights=none,
    )


def seconds(steps: int, *sides: Step) -> list[list[float]]:
    """Processor seconds of each step of each side; they take turns, and a first step of each is not counted."""
    found: list[list[float]] = [[] for _ in sides]
    for number in range(steps + 1):
        for side, times in zip(sides, found, strict=True):
            began = time.process_time()
            side()
            if number:
                times.append(time.process_time() - began)
    return found


if __name__ == "__main__":
    main(*sys.argv[1:])
