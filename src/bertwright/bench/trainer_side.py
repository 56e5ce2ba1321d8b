"""Steps of Hugging Face's Trainer with its own collator, on the same examples.

`trainer`: the usual setup, with every example padded to the longest length, or in classification, as the Trainer's
default collator does, to the longest of its batch. `trainer-tuned`: its fastest options, with examples grouped by
length and padded to the longest of each batch. Both otherwise use its defaults: SDPA attention and fused AdamW.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
import transformers
from torch.utils.data import Dataset
from transformers import (
    AutoConfig,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from bertwright.bench.workload import VOCABULARY, Step, Training, Workload, examples_of, loader_of
from bertwright.model.interop.peer import peer_of

_MAX_STEPS = 10_000
"""Steps requested from one call of `train`, which is left earlier."""


class _Examples(Dataset[dict[str, Any]]):
    """The examples of a workload: enough for some thousand steps, at most 4096."""

    def __init__(self, workload: Workload, padded: bool) -> None:
        loader = loader_of(workload)
        self.rows: list[dict[str, Any]] = []
        for example in examples_of(loader.batch(0, min(loader.total, 4096))):
            room = workload.length - len(example.token_ids) if padded else 0
            ids, segments = example.token_ids.tolist(), example.segment_ids.tolist()
            # 0 is the padding token in both vocabularies.
            row = {"input_ids": ids + [0] * room, "token_type_ids": segments + [0] * room}
            row["attention_mask"] = [1] * len(ids) + [0] * room
            if workload.labels:
                row["labels"] = example.label
            if workload.pairs:
                row["next_sentence_label"] = example.label
            self.rows.append(row)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return self.rows[index]


class _Clock(TrainerCallback):  # type: ignore[misc]
    """Records the time at the end of each step, and stops training after enough steps."""

    def __init__(self, steps: int) -> None:
        self.steps, self.ends = steps, list[tuple[float, float]]()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        self.ends.append((time.perf_counter(), time.process_time()))
        # One end more than timed steps: the first end is where the first of them begins.
        control.should_training_stop = len(self.ends) > self.steps
        return control


def trainer_side(workload: Workload, training: Training, tuned: bool, steps: int) -> Iterator[list[Step]]:
    """Yields blocks of `steps` timed steps, for ever; the first step of each call of `train` does not count."""
    torch.set_num_threads(training.threads)
    torch.manual_seed(1)
    examples, model = _Examples(workload, padded=not tuned and not workload.labels), _model(workload, training)
    with tempfile.TemporaryDirectory() as folder:
        tokenizer = _tokenizer(Path(folder))
        collator = (
            DataCollatorWithPadding(tokenizer)
            if workload.labels
            else DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
        )
        grouped = {"train_sampling_strategy": "group_by_length"} if tuned else {}
        arguments = TrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=workload.batch,
            max_steps=_MAX_STEPS,
            bf16=training.precision == "bf16",
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            **grouped,
        )
        while True:
            clock = _Clock(steps)
            # The Trainer cannot pause, so each block is another call, on the same network with a new optimizer.
            Trainer(model, arguments, collator, examples, callbacks=[clock]).train()
            yield [Step(b[0] - a[0], b[1] - a[1]) for a, b in pairwise(clock.ends)]


def _model(workload: Workload, training: Training) -> Any:
    peer = peer_of(workload.network(training))
    return getattr(transformers, peer.architecture)(AutoConfig.for_model(**peer.config, pad_token_id=VOCABULARY.pad))


def _tokenizer(folder: Path) -> Any:
    """A tokenizer with our special ids, for the collator's masking and padding."""
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    entries = special + [f"t{number}" for number in range(len(special), VOCABULARY.size)]
    (folder / "vocab.txt").write_text("\n".join(entries) + "\n", encoding="utf-8")
    return BertTokenizer(str(folder / "vocab.txt"))
