"""Hugging Face's Trainer on the text of benchmarks/speedrun.py, with the habits of its run_mlm.py.

Blocks of 126 tokens of one document after another with [CLS] and [SEP] (run_mlm's group_texts, but as they are
scored), 15 % masked anew every time, BertConfig's dropout, AdamW, a rate that falls in a line to zero at the last step,
which is chosen by the speed of the first ones so that it comes at the end of the time.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    BertForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from bertwright.core.artifact import open_artifact
from bertwright.examples.store import Store
from bertwright.model.bert.config import BertConfig, BertModelConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.saved import model_from
from speedrun_score import LENGTH, score_model

BATCH, TRIAL, MARKS = 8, 30, 6
"""Sequences a step; steps that the speed is taken of; scores of a training."""


def train(folder: Path, out: Path, seconds: float, rate: float, threads: int) -> dict[str, object]:
    """Train for so many seconds; the score at the end, and the curve."""
    torch.set_num_threads(threads)
    run = folder / "text"
    blocks, tokenizer = _Blocks(run), BertTokenizer(str(run / "vocab" / "vocab.txt"), do_lower_case=False)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    out.mkdir(exist_ok=True)
    plan = out / "steps.json"
    if not plan.exists():
        trial = _Clock(run, out, TRIAL, scored=False)
        _trainer(blocks, collator, out, 10 * TRIAL, rate, trial).train()
        took = sorted(b - a for a, b in zip(trial.ends, trial.ends[1:], strict=False))[TRIAL // 2]
        plan.write_text(json.dumps(int(seconds / took)))
    steps = json.loads(plan.read_text())
    clock = _Clock(run, out, steps, scored=True)
    before = sorted(out.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))
    clock.restore(len(before) > 0)
    _trainer(blocks, collator, out, steps, rate, clock).train(
        resume_from_checkpoint=str(before[-1]) if before else None
    )
    return {**clock.curve[-1], "rate": rate, "curve": clock.curve}


class _Blocks(Dataset[dict[str, Any]]):
    """The training text in blocks."""

    def __init__(self, run: Path) -> None:
        store = Store.open(open_artifact(run / "examples", "examples"))
        self.ends = store.vocabulary.cls, store.vocabulary.sep
        inner = LENGTH - 2
        self.rows = np.asarray(store.tokens[: len(store.tokens) // inner * inner]).reshape(-1, inner)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": [self.ends[0], *self.rows[index].tolist(), self.ends[1]]}


class _Clock(TrainerCallback):  # type: ignore[misc]
    """Counts the time of steps alone; scores and saves at even parts of the steps."""

    def __init__(self, run: Path, out: Path, steps: int, scored: bool) -> None:
        self.run, self.out, self.steps = run, out, steps
        self.marks = {round(steps * (part + 1) / MARKS) for part in range(MARKS)} if scored else set[int]()
        self.used, self.began = 0.0, time.perf_counter()
        self.ends, self.curve = list[float](), list[dict[str, float]]()

    def restore(self, again: bool) -> None:
        """Go on from the marks that were saved."""
        if again:
            self.curve = json.loads((self.out / "curve.json").read_text())
            self.used = self.curve[-1]["seconds"]

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        self.ends.append(time.perf_counter())
        self.used += self.ends[-1] - self.began
        if state.global_step in self.marks:
            self.curve.append(self._scored(state.global_step, model))
            (self.out / "curve.json").write_text(json.dumps(self.curve))
            control.should_save = True
        control.should_training_stop = state.global_step >= self.steps
        return control

    def _scored(self, step: int, model: Any) -> dict[str, float]:
        network = network_of(len(model.bert.embeddings.word_embeddings.weight))
        tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
        model_ours = model_from(network, peer_of(network).names.to_ours(tensors))
        row = {
            "seconds": self.used,
            "steps": step,
            "tokens": step * BATCH * LENGTH,
            **score_model(model_ours, self.run),
        }
        print(json.dumps(row), flush=True)
        return row


def network_of(entries: int) -> BertConfig:
    """The network that is trained, with BertConfig's dropout of attention weights, as its users have it."""
    section = BertModelConfig(size="mini", max_positions=LENGTH, attention_dropout=0.1)
    return section.resolve(entries, next_sentence=False)


def _trainer(blocks: Any, collator: Any, out: Path, steps: int, rate: float, clock: _Clock) -> Trainer:
    torch.manual_seed(1)
    network = network_of(len(collator.tokenizer))
    arguments = TrainingArguments(
        output_dir=str(out),
        per_device_train_batch_size=BATCH,
        learning_rate=rate,
        max_steps=steps,
        use_cpu=True,
        save_strategy="no",
        save_total_limit=1,
        logging_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    model = BertForMaskedLM(BertForMaskedLM.config_class(**peer_of(network).config))
    return Trainer(model, arguments, collator, blocks, callbacks=[clock])
