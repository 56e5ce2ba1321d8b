"""Pairs a second, memory and held-out scores of contrastive training with cached batches, beside sentence-transformers.

    python benchmarks/embedding.py MODEL PAIRS [--batches 256 1024] [--mini 32] [--steps 6] [--threads 2]

MODEL is a folder of transformers, PAIRS a .jsonl with `anchor` and `positive`. Each side is a process of its own, with
the same model, pairs, batches, micro-batches, texts cut to 128 tokens, AdamW and temperature. The peer is
SentenceTransformerTrainer with CachedMultipleNegativesRankingLoss. The first step warms up; the medians of the others
are reported, by the clock and in processor seconds, which other programs disturb less; and the most memory that the
process had.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

LENGTH, RATE = 128, 2e-5


def main() -> None:
    """Run both sides for each batch and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--batches", type=int, nargs="+", default=[256, 1024])
    parser.add_argument("--mini", type=int, default=32)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--side", choices=("ours", "theirs"))
    given = parser.parse_args()
    if given.side:
        (batch,) = given.batches
        steps = (ours if given.side == "ours" else theirs)(given, batch)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"steps": steps, "memory": memory}))
        return
    for batch in given.batches:
        found = {side: measure(given, side, batch) for side in ("theirs", "ours")}
        for side, (clock, processor, memory) in found.items():
            rates = f"{batch / clock:7.1f} pairs/s  {batch / processor:7.1f} pairs per processor second"
            print(f"batch {batch:5}  {side:7} {rates}  {memory / 1e9:6.2f} GB")
        clock, processor, memory = (a / b for a, b in zip(found["theirs"], found["ours"], strict=True))
        print(
            f"batch {batch:5}  theirs / ours: clock {clock:.2f}, processor {processor:.2f}, memory {memory:.2f}",
            flush=True,
        )


def measure(given: argparse.Namespace, side: str, batch: int) -> tuple[float, float, int]:
    """Seconds of a step of one side by the clock and of processors, and its bytes of memory."""
    words = ["--batches", f"{batch}", "--mini", f"{given.mini}", "--steps", f"{given.steps}"]
    words += ["--threads", f"{given.threads}", "--side", side]
    command = [sys.executable, __file__, str(given.model), str(given.pairs), *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    clock, processor = (statistics.median(values) for values in zip(*answer["steps"][1:], strict=True))
    return clock, processor, int(answer["memory"])


class Steps:
    """The seconds of each step, by the clock and of processors, between calls of `begin` and `end`."""

    def __init__(self) -> None:
        self.taken, self._began = list[tuple[float, float]](), (0.0, 0.0)

    def begin(self) -> None:
        self._began = time.perf_counter(), time.process_time()

    def end(self) -> None:
        clock, processor = self._began
        self.taken.append((time.perf_counter() - clock, time.process_time() - processor))


def ours(given: argparse.Namespace, batch: int) -> list[tuple[float, float]]:
    """The steps of a training with this package."""
    from bertwright import run
    from bertwright.core.log import SILENT
    from bertwright.finetune.draft import draft
    from bertwright.train import run as loop

    steps, step = Steps(), loop.train_step

    def timed(*arguments: Any) -> Any:
        steps.begin()
        result = step(*arguments)
        steps.end()
        return result

    loop.train_step = timed
    values = {
        "train.threads": given.threads,
        "train.log_every": 1,
        "train.evaluate_every": 1000,
        "train.checkpoint_every": 1000,
        "train.heldout_sequences": 64,
        "train.phases.0.length": LENGTH,
        "train.phases.0.batch": batch,
        "train.phases.0.micro_batch": given.mini,
        "train.phases.0.learning_rate": RATE,
        "train.phases.0.epochs": "",
        "train.phases.0.steps": given.steps,
        "model.dropout": 0.1,
        "model.attention_dropout": 0.1,
    }
    drafted = draft("embed", given.model, given.pairs, [f"{name}={value}" for name, value in values.items()])
    with tempfile.TemporaryDirectory() as folder:
        run(drafted.recipe(), Path(folder) / "run", ("vocab", "examples", "train"), SILENT)
    return steps.taken


def theirs(given: argparse.Namespace, batch: int) -> list[tuple[float, float]]:
    """The steps of a training with sentence-transformers."""
    import torch
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import losses
    from sentence_transformers.sentence_transformer.trainer import SentenceTransformerTrainer
    from sentence_transformers.sentence_transformer.training_args import SentenceTransformerTrainingArguments
    from transformers import TrainerCallback

    torch.set_num_threads(given.threads)
    model = SentenceTransformer(str(given.model), device="cpu", local_files_only=True)
    model.max_seq_length = LENGTH
    with given.pairs.open(encoding="utf-8") as lines:
        pairs = [{name: record[name] for name in ("anchor", "positive")} for record in map(json.loads, lines)]
    steps = Steps()

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            steps.begin()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            steps.end()

    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=given.steps,
            learning_rate=RATE,
            use_cpu=True,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        loss = losses.CachedMultipleNegativesRankingLoss(model, scale=20.0, mini_batch_size=given.mini)
        trainer = SentenceTransformerTrainer(
            model=model, args=arguments, train_dataset=Dataset.from_list(pairs), loss=loss, callbacks=[Clock()]
        )
        trainer.train()
    return steps.taken


if __name__ == "__main__":
    main()
