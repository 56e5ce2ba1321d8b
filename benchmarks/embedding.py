"""Pairs a second, memory and held-out scores of contrastive training with cached batches, beside sentence-transformers.

    python benchmarks/embedding.py MODEL PAIRS [--batches 256 1024] [--mini 32] [--steps 6] [--threads 2]

MODEL is a folder of transformers, PAIRS a .jsonl with `anchor` and `positive`. Each side is a process of its own, with
the same model, pairs, batches, micro-batches, texts cut to 128 tokens, AdamW and temperature; the sides take turns. The
peer is SentenceTransformerTrainer with CachedMultipleNegativesRankingLoss. The first step warms up; the median of the
others is reported, and the most memory that the process had.
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
from itertools import pairwise
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
        seconds = (ours if given.side == "ours" else theirs)(given, batch)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        print(json.dumps({"seconds": seconds, "memory": memory}))
        return
    for batch in given.batches:
        found = {side: measure(given, side, batch) for side in ("theirs", "ours")}
        for side, (seconds, memory) in found.items():
            print(f"batch {batch:5}  {side:7} {batch / seconds:7.1f} pairs/s  {memory / 1e9:6.2f} GB")
        rates = found["theirs"][0] / found["ours"][0], found["theirs"][1] / found["ours"][1]
        print(f"batch {batch:5}  ratio: {rates[0]:.2f} times as fast, {rates[1]:.2f} times less memory", flush=True)


def measure(given: argparse.Namespace, side: str, batch: int) -> tuple[float, int]:
    """Seconds of a step of one side, and its bytes of memory."""
    words = ["--batches", f"{batch}", "--mini", f"{given.mini}", "--steps", f"{given.steps}"]
    words += ["--threads", f"{given.threads}", "--side", side]
    command = [sys.executable, __file__, str(given.model), str(given.pairs), *words]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    answer = json.loads(done.stdout.splitlines()[-1])
    return statistics.median(answer["seconds"][1:]), int(answer["memory"])


def ours(given: argparse.Namespace, batch: int) -> list[float]:
    """Seconds of each step of a training with this package, from its metrics."""
    from bertwright import RunFolder, run
    from bertwright.core.log import SILENT
    from bertwright.finetune.draft import draft

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
        out = Path(folder) / "run"
        run(drafted.recipe(), out, ("vocab", "examples", "train"), SILENT)
        rows = [row for row in RunFolder(out).metrics if "tokens_per_second" in row]
    ends = [0.0, *(float(row["seconds"]) for row in rows)]
    return [after - before for before, after in pairwise(ends)]


def theirs(given: argparse.Namespace, batch: int) -> list[float]:
    """Seconds of each step of a training with sentence-transformers."""
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
    taken, began = list[float](), [time.perf_counter()]

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            began[0] = time.perf_counter()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            taken.append(time.perf_counter() - began[0])

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
    return taken


if __name__ == "__main__":
    main()
