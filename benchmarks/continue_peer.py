"""Hugging Face's Trainer on a text, with the conventions and defaults of transformers' run_mlm.py.

Each document is tokenised with [CLS] and [SEP], all are joined and cut into blocks of one length, of which the rest is
dropped (its group_texts); 15 % of the tokens are masked anew each time; batches of 8, AdamW, a peak rate of 5e-5 that
falls linearly to zero without a warm-up. How many steps fit into the processor seconds is estimated from the first
ones.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import (
    AutoModelForMaskedLM,
    AutoTokenizer,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)

BATCH, RATE, MASKED, TRIAL = 8, 5e-5, 0.15, 12
"""The first three are run_mlm's defaults; steps that the speed is measured over."""


class Blocks(Dataset[dict[str, Any]]):
    """The text as blocks of `length` tokens."""

    def __init__(self, documents: list[str], tokenizer: Any, length: int) -> None:
        ids = [i for document in documents for i in tokenizer(document, truncation=False, verbose=False)["input_ids"]]
        self.blocks = [ids[first : first + length] for first in range(0, len(ids) // length * length, length)]
        special = set(tokenizer.all_special_ids)
        self.special = [[int(i in special) for i in block] for block in self.blocks]

    def __len__(self) -> int:
        return len(self.blocks)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": self.blocks[index], "special_tokens_mask": self.special[index]}


class Clock(TrainerCallback):
    """Notes the processor seconds of each step, and ends the training when they are used up."""

    def __init__(self, seconds: float, steps: int) -> None:
        self.seconds, self.steps = seconds, steps
        self.began, self.ends = time.process_time(), list[float]()

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> Any:
        self.ends.append(time.process_time())
        used = self.ends[-1] - self.began >= self.seconds
        control.should_training_stop = used or len(self.ends) >= self.steps
        return control


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("start", "text", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--length", type=int, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--threads", type=int, required=True)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    tokenizer = AutoTokenizer.from_pretrained(str(options.start), local_files_only=True)
    documents = json.loads(options.text.read_text(encoding="utf-8"))
    blocks = Blocks(documents, tokenizer, options.length)

    def train(seconds: float, steps: int) -> tuple[Any, Clock]:
        torch.manual_seed(1)
        model = AutoModelForMaskedLM.from_pretrained(str(options.start), local_files_only=True)
        arguments = TrainingArguments(
            output_dir=str(options.out),
            per_device_train_batch_size=BATCH,
            learning_rate=RATE,
            max_steps=steps,
            use_cpu=True,
            save_strategy="no",
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        clock = Clock(seconds, steps)
        collator = DataCollatorForLanguageModeling(tokenizer, mlm_probability=MASKED)
        Trainer(model, arguments, collator, blocks, callbacks=[clock]).train()
        return model, clock

    _, trial = train(float("inf"), TRIAL)
    each = sorted(b - a for a, b in zip(trial.ends, trial.ends[1:], strict=False))[TRIAL // 2]
    # The trial is a cost of this script, not of run_mlm.
    model, clock = train(options.seconds, max(1, round(options.seconds / each)))
    model.save_pretrained(str(options.out))
    tokenizer.save_pretrained(str(options.out))
    facts = {"steps": len(clock.ends), "seconds": clock.ends[-1] - clock.began, "blocks": len(blocks)}
    (options.out / "peer.json").write_text(json.dumps(facts), encoding="utf-8")


if __name__ == "__main__":
    main()
