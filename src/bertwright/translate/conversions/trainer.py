"""Keys of transformers' Trainer, and the labelled texts of its example scripts."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from math import ceil
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, Key

_INTERVALS = {
    "logging_steps": (("logging_strategy",), "train.log_every"),
    "save_steps": (("save_strategy",), "train.checkpoint_every"),
    "eval_steps": (("eval_strategy", "evaluation_strategy"), "train.evaluate_every"),
}
"""The options that say whether an interval counts, and its key."""
_OBSERVERS = ("tensorboard", "mlflow", "trackio", "wandb")
_MOST_LABELS = 1000
_MOST_BYTES = 2**30


def refused(command: Command, name: str) -> Iterator[Key]:
    """No key: what the option does is not available, and without it the training would be another one."""
    if command.settings[name].given and command[name] not in (0, 0.0, False, "", "None"):
        original = command.program.original(name)
        raise RecipeError(f"{command.source(name)} has no counterpart: {original.note if original else ''}")
    yield from ()


def trainer_schedule(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's schedule, with its keys."""
    kind, source = str(command[name]), command.source(name, "lr_scheduler_kwargs")
    keys = _scheduler_keys(command)
    plain = {"linear": "linear", "cosine": "cosine", "constant": "constant", "constant_with_warmup": "constant"}
    known: set[str] = set()
    if kind in plain:
        value: Any = plain[kind]
    elif kind == "polynomial":
        known, value = {"power", "lr_end"}, {"kind": "poly", "power": keys.get("power", 1.0)}
    elif kind == "cosine_with_min_lr" and keys:
        known = {"min_lr", "min_lr_rate"}
        floor = keys.get("min_lr_rate", keys.get("min_lr", 0.0) / command.number("learning_rate"))
        value = {"kind": "cosine", "floor": floor}
    elif kind == "warmup_stable_decay" and _decays_as_here(keys) and command.number("max_steps") > 0:
        known = {"num_decay_steps", "decay_type"}
        decay = keys["num_decay_steps"] / command.number("max_steps")
        value = {"kind": "wsd", "decay": decay, "shape": keys["decay_type"]}
    else:
        raise RecipeError(
            f"{source}: this schedule is not translated. Give linear, cosine, cosine_with_min_lr, polynomial or "
            "constant, or warmup_stable_decay with --max_steps, num_decay_steps and decay_type linear or 1-sqrt."
        )
    if unread := sorted(set(keys) - known):
        raise RecipeError(f"{source}: {', '.join(unread)} has no counterpart. Leave it out.")
    yield Key(f"{PHASE}schedule", value, source)


def _decays_as_here(keys: dict[str, Any]) -> bool:
    # The original's default is a cosine.
    return "num_decay_steps" in keys and keys.get("decay_type") in ("linear", "1-sqrt")


def scheduler_keys(command: Command, name: str) -> Iterator[Key]:
    """The keys of the schedule, which `trainer_schedule` reads."""
    if command.settings[name].given:
        yield from trainer_schedule(command, "lr_scheduler_type")


def _scheduler_keys(command: Command) -> dict[str, Any]:
    text = str(command["lr_scheduler_kwargs"] or "{}")
    try:
        values = json.loads(text)
        if isinstance(values, dict):
            return values
    except ValueError:
        pass
    raise RecipeError(f'{command.source("lr_scheduler_kwargs")}: give a JSON object, such as {{"power": 2.0}}.')


def interval(command: Command, name: str) -> Iterator[Key]:
    """An interval in steps that is given and counts; a number below 1 is a share of the steps."""
    strategies, key = _INTERVALS[name]
    given = next(
        (str(command[each]) for each in strategies if command[each]), "no" if name == "eval_steps" else "steps"
    )
    if not command.settings[name].given or given != "steps":
        return
    steps, most = command.number(name), command.number("max_steps")
    if 0 < steps < 1 and most <= 0:
        raise RecipeError(
            f"{command.source(name)}: a share of the steps, and how many the epochs have is known only once the "
            "examples are made. Give a number of steps."
        )
    if steps > 0:
        yield Key(key, ceil(steps * most) if steps < 1 else int(steps), command.source(name))


def by_epoch(command: Command, name: str) -> Iterator[Key]:
    """An interval of one epoch; one in steps is that of the option with the number."""
    key = next(key for strategies, key in _INTERVALS.values() if name in strategies)
    if command[name] == "epoch":
        yield Key(key, "epoch", command.source(name))


def scores(command: Command, name: str) -> Iterator[Key]:
    """Scores every epoch, or every so many steps; without a number, as often as there are rows of metrics."""
    if command[name] == "epoch":
        yield from by_epoch(command, name)
    elif command["eval_steps"]:
        yield from interval(command, "eval_steps")
    elif command[name] == "steps" and (steps := command.number("logging_steps")) >= 1:
        yield Key("train.evaluate_every", int(steps), command.source(name, "logging_steps"))


def observers(command: Command, name: str) -> Iterator[Key]:
    """The programs that rows of metrics are sent to, as far as there is an observer for them."""
    words = [word for word in str(command[name]).split() if word in _OBSERVERS]
    keys = {"tensorboard": {"folder": "logging_dir"}, "trackio": {"project": "project", "space": "trackio_space_id"}}
    made = [
        {"kind": word, **{key: command[option] for key, option in keys.get(word, {}).items() if command[option]}}
        for word in words
    ]
    if made:
        yield Key("train.observers", made, command.source(name))


def part_of_observer(command: Command, name: str) -> Iterator[Key]:
    """A key of the observer that reads the option, if rows of metrics are sent to it."""
    reader = "tensorboard" if name == "logging_dir" else "trackio"
    if reader in str(command["report_to"]).split():
        yield from observers(command, "report_to")


def automatic_batch(command: Command, name: str) -> Iterator[Key]:
    """A forward pass as large as the memory; in the original it makes the batch smaller, too."""
    if command[name]:
        yield Key(f"{PHASE}micro_batch", "auto", command.source(name))


def tensor_floats(command: Command, name: str) -> Iterator[Key]:
    """TF32, unless a 16-bit precision is requested."""
    if command[name] and not command["bf16"] and not command["fp16"]:
        yield Key("train.precision", "tf32", command.source(name))


def on_the_cpu(command: Command, name: str) -> Iterator[Key]:
    """Training on the processor."""
    if command[name]:
        yield Key("train.device", "cpu", command.source(name))


def fsdp(command: Command, name: str) -> Iterator[Key]:
    """Fully sharded training."""
    words = set(str(command[name]).split())
    if "offload" in words:
        raise RecipeError(
            f"{command.source(name)}: weights are not kept in the memory of the host. Leave offload out, or use more "
            "ranks."
        )
    if words & {"full_shard", "shard_grad_op", "hybrid_shard", "true", "True"}:
        yield Key("train.engine", "fsdp", command.source(name))


def labelled_file(command: Command, name: str) -> Iterator[Key]:
    """A file of labelled texts; its classes are read from it, as the original does."""
    rows, source = list(_rows(command, name)), command.source(name)
    label, texts = str(command["label_column_name"] or "label"), _text_columns(command, rows[0])
    labels = list(dict.fromkeys(str(row[label]) for row in rows if row.get(label) not in (None, "")))
    if len(labels) > _MOST_LABELS and not _numbers(labels):
        raise RecipeError(f"{source}: its column {label} has {len(labels):,} different labels. Give another file.")
    regression = bool(command["do_regression"]) if command["do_regression"] is not None else _fractions(labels)
    names = [label] if regression else sorted(labels, key=float) if _numbers(labels) else sorted(labels)
    objective: dict[str, Any] = {"kind": "classification", "labels": names, "text": texts[0]}
    objective |= {"pair": texts[1]} if len(texts) > 1 else {}
    objective |= {"label": label} if label != "label" else {}
    yield Key("train.objective", objective, f"{source}, and the classes and columns in it")
    yield Key(f"{PHASE}data", _data(command, name), source)


def _data(command: Command, name: str) -> str:
    """Return the folder of the training and the held-out file, if both are there under the names of their splits."""
    train, heldout = Path(str(command[name])), Path(str(command["validation_file"] or ""))
    together = train.parent == heldout.parent and train.stem.startswith("train")
    return str(train.parent) if together and re.match("dev|valid|eval", heldout.stem) else str(train)


def _rows(command: Command, name: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a CSV or JSON-lines file; raise `RecipeError` if there are none, or no labels in them."""
    file, label = command.file(name), str(command["label_column_name"] or "label")
    try:
        if file.stat().st_size > _MOST_BYTES:
            raise ValueError("it has more than a gigabyte; give a part of it that has all labels")
        with file.open(encoding="utf-8-sig", newline="") as lines:
            rows = list(csv.DictReader(lines, strict=True)) if file.suffix == ".csv" else _objects(lines.read())
        if not rows or label not in rows[0]:
            raise ValueError(f"it has no column {label}, which holds the labels")
    except (OSError, ValueError, csv.Error) as error:
        raise RecipeError(
            f"{command.source(name)}: the classes are read from this file, as the original does, but {error}. "
            "Translate where the file is, or correct it."
        ) from error
    yield from rows


def _objects(text: str) -> list[dict[str, Any]]:
    """Return the objects of a JSON list, or of JSON lines."""
    values = json.loads(text) if text.lstrip()[:1] == "[" else [json.loads(line) for line in text.splitlines() if line]
    if not all(isinstance(value, dict) for value in values):
        raise ValueError("its rows are not objects")
    return list(values)


def _text_columns(command: Command, row: dict[str, Any]) -> list[str]:
    """Return the columns of the texts, as each script chooses them."""
    if "text_column_names" not in command.program.options:
        others = [name for name in row if name != "label"]
        return ["sentence1", "sentence2"] if {"sentence1", "sentence2"} <= set(others) else others[:2]
    names = str(command["text_column_names"] or "sentence").split(",")
    if len(names) > 1:
        raise RecipeError(
            f"{command.source('text_column_names')}: the original joins these columns to one text, and here a text is "
            "one column. Write them joined into a column of the file."
        )
    if names[0] not in row:
        raise RecipeError(
            f"{command.source('train_file')}: it has no column {names[0]}. Give one of {', '.join(row)} as "
            "--text_column_names."
        )
    return names


def _numbers(labels: list[str]) -> bool:
    return all(re.fullmatch(r"-?\d+(\.\d+)?([eE][+-]?\d+)?", label) for label in labels)


def _fractions(labels: list[str]) -> bool:
    return _numbers(labels) and any(not re.fullmatch(r"-?\d+", label) for label in labels)
