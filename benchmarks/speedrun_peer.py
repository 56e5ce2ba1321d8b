"""Hugging Face's Trainer on the text of benchmarks/speedrun.py, with the conventions of its run_mlm.py.

Blocks of 126 tokens from consecutive documents with [CLS] and [SEP] (like run_mlm's group_texts, but in the form that
is scored), 15 % masked again every time, the dropout that transformers gives such a network, AdamW, and a learning rate
that decays linearly to zero at the last step. The number of steps is estimated from the speed of the first ones, to end
at the given time.
"""

import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (
    AutoConfig,
    AutoModelForMaskedLM,
    BertTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

from bertwright.core.artifact import open_artifact
from bertwright.examples.store import Store
from bertwright.model.bert.config import BertModelConfig
from bertwright.model.config import NetworkConfig
from bertwright.model.interop.peer import peer_of
from bertwright.model.modern.config import ModernModelConfig
from bertwright.model.saved import model_from
from speedrun_score import LENGTH, score_model
from speedrun_setting import Note, Setting

BATCH, TRIAL, MARKS = 8, 30, 12
"""Sequences per step; steps that the speed is measured over; evenly spaced scores of a training."""


def train_peer(setting: Setting, minutes: float, rate: float) -> Note:
    """The score after `minutes` at the peak learning rate `rate`, and the curve up to it."""
    name = f"peer-{minutes:g}-{rate:g}"
    about = {"kind": "peer", "minutes": minutes, "rate": rate}
    return setting.noted(name, lambda: about | _trained(setting, setting.folder / name, 60 * minutes, rate))


def _trained(setting: Setting, out: Path, seconds: float, rate: float) -> Note:
    torch.set_num_threads(setting.threads)
    run = setting.folder / "text"
    blocks, tokenizer = _Blocks(run), BertTokenizer(str(run / "vocab" / "vocab.txt"), do_lower_case=False)
    collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=0.15)
    network = network_of(setting.kind, setting.size, len(tokenizer))
    out.mkdir(exist_ok=True)
    plan = out / "steps.json"
    if not plan.exists():
        trial = _Clock(run, network, out, TRIAL, float("inf"))
        _trainer(stock(network, tokenizer), blocks, collator, out, 10 * TRIAL, rate, trial).train()
        took = sorted(trial.took)[TRIAL // 2]
        plan.write_text(json.dumps(max(1, int(seconds / took))))
    steps = json.loads(plan.read_text())
    clock = _Clock(run, network, out, steps, seconds / MARKS)
    before = clock.restore()
    # Resumed from its last step, Trainer takes one more.
    if not clock.curve or clock.curve[-1]["steps"] < steps:
        _trainer(stock(network, tokenizer), blocks, collator, out, steps, rate, clock).train(
            resume_from_checkpoint=before
        )
    return {**clock.curve[-1], "curve": clock.curve}


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
    """Measures time from the end of one step to the end of the next; scores and saves after every `part` seconds and
    after the last step. Time spent on scoring and saving does not count."""

    def __init__(self, run: Path, network: NetworkConfig, out: Path, steps: int, part: float) -> None:
        self.run, self.network, self.out, self.steps, self.part = run, network, out, steps, part
        self.used, self.since = 0.0, None
        self.took, self.curve = list[float](), list[dict[str, float]]()

    def restore(self) -> str | None:
        """Restore the scores up to the newest complete checkpoint and return its path; None if there is none."""
        # Trainer writes this file last: a checkpoint without it was interrupted while being written.
        whole = [path.parent for path in self.out.glob("checkpoint-*/trainer_state.json")]
        newest = max(whole, key=_step, default=None)
        if newest is None:
            return None
        curve = json.loads((self.out / "curve.json").read_text(encoding="utf-8"))
        self.curve = [row for row in curve if row["steps"] <= _step(newest)]
        self.used = self.curve[-1]["seconds"]
        return str(newest)

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        if self.since is None:  # everything before the first step is start-up
            self.since = time.perf_counter()

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> Any:
        now = time.perf_counter()
        self.took.append(now - self.since)
        self.used, self.since = self.used + self.took[-1], now
        ends = state.global_step >= self.steps
        if self.part < float("inf") and (ends or self.used >= self.part * (len(self.curve) + 1)):
            self.curve.append(self._scored(state.global_step, model))
            (self.out / "curve.json").write_text(json.dumps(self.curve), encoding="utf-8")
            control.should_save = True
            self.since = time.perf_counter()
        control.should_training_stop = ends
        return control

    def on_save(self, *_: Any, **__: Any) -> None:
        self.since = time.perf_counter()

    def _scored(self, step: int, model: Any) -> dict[str, float]:
        tensors = {name: value.detach().clone() for name, value in model.state_dict().items()}
        ours = model_from(self.network, peer_of(self.network).names.to_ours(tensors))
        spent = {"seconds": self.used, "steps": step, "tokens": step * BATCH * LENGTH}
        row = spent | score_model(ours, self.run)
        print(json.dumps(row), flush=True)
        return row


def _step(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("checkpoint-"))


def network_of(kind: str, size: str, entries: int) -> NetworkConfig:
    """The trained network, with the default dropout of its stock configuration."""
    values = {"size": size, "max_positions": LENGTH}
    if kind == "modern":
        return ModernModelConfig.model_validate(values).resolve(entries)
    return BertModelConfig.model_validate({**values, "attention_dropout": 0.1}).resolve(entries, next_sentence=False)


def stock(network: NetworkConfig, tokenizer: Any) -> Any:
    """The network in transformers, with initial weights drawn there."""
    peer = peer_of(network)
    ids = {key: getattr(tokenizer, f"{token}_id") for key, token in peer.special_ids.items()}
    torch.manual_seed(1)
    return AutoModelForMaskedLM.from_config(AutoConfig.for_model(**peer.config, **ids))


def _trainer(model: Any, blocks: Any, collator: Any, out: Path, steps: int, rate: float, clock: _Clock) -> Trainer:
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
    return Trainer(model, arguments, collator, blocks, callbacks=[clock])
