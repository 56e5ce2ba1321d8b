"""DeepSpeed's file beside a command of the Trainer: where it contradicts the command, and what of it nothing reads."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from bertwright.core.errors import RecipeError
from bertwright.translate.command import Command

CONVERSION = "deepspeed"
"""The conversion of the option that names the file."""
_PUBLISHED = {"ds_config.json": 1}
"""Files of Azure's example with a ZeRO stage other than 0."""
_ALIKE = {
    "train_micro_batch_size_per_gpu": ("per_device_train_batch_size",),
    "gradient_accumulation_steps": ("gradient_accumulation_steps",),
    "gradient_clipping": ("max_grad_norm",),
    "fp16.enabled": ("fp16",),
    "bf16.enabled": ("bf16",),
    "optimizer.params.lr": ("learning_rate",),
    "optimizer.params.betas": ("adam_beta1", "adam_beta2"),
    "optimizer.params.eps": ("adam_epsilon",),
    "optimizer.params.weight_decay": ("weight_decay",),
    "scheduler.params.warmup_max_lr": ("learning_rate",),
    "scheduler.params.warmup_num_steps": ("warmup_steps",),
    "scheduler.params.total_num_steps": ("max_steps",),
}
"""Keys of the file, and the options of the command that have to say the same."""
_KINDS = {"optimizer.type": (("adam", "adamw"), "optim.kind"), "scheduler.type": (("warmupdecaylr",), "schedule")}
"""Keys of the file that replace a choice of the Trainer: the values that are that choice, and the key of the recipe."""
TUNED_COMMAND = "cmd_optimal.txt"
"""The file of the command that DeepSpeed's autotuner found best, beside `_TUNED`."""
_TUNED = "ds_config_optimal.json"
_TYPED = "the configuration in the command"
"""The name of a configuration that is no file: the autotuner writes it into its commands, in base64."""
_STAGE = "zero_optimization.stage"
_BATCH = "train_batch_size"
_WHY = {
    "fp16": "the loss scale begins at train.precision.initial_scale",
    "zero_optimization": "the engine has no such setting",
    "optimizer": "the optimizer is that of the command",
    "scheduler": "the schedule is that of the command",
    "tensorboard": "train.observers writes TensorBoard's events",
    "nebula": "checkpoints are written beside training, each train.checkpoint_every steps",
    "flops_profiler": "train.profile profiles steps",
    "autotuning": "the search is bertwright bench autotune; of DeepSpeed's, give the results (ds_config_optimal.json)",
    "activation_checkpointing": "--gradient_checkpointing of the command counts",
}
"""Why nothing reads a section, by its name."""


class DeepspeedFile(NamedTuple):
    """The file that a command names."""

    option: str
    """The option that names it, as typed."""
    name: str
    values: Mapping[str, Any] | None
    """Its values by dotted key; None if there is no such file here."""

    @property
    def stage(self) -> int:
        """The ZeRO stage; that of the published file if it is not here. Raises `ValueError` for other text."""
        return _PUBLISHED.get(self.name, 0) if self.values is None else int(self.values.get(_STAGE, 0))


def deepspeed_file(command: Command) -> DeepspeedFile | None:
    """Return the file that a command names, if it names one; raise `RecipeError` if it is something else."""
    name = command.option_of(CONVERSION)
    if name not in command.settings:
        return None
    option, typed = command.source(name), _decode(str(command[name]))
    file = Path(_TYPED) if typed else command.file(name)
    if not typed and file.is_dir():
        file = _tuned_configuration(option, file)
    try:
        stated = typed or (json.loads(file.read_text(encoding="utf-8-sig")) if file.is_file() else None)
        # One of the autotuner's experiments holds the configuration that it tried.
        if isinstance(stated, dict) and isinstance(stated.get("ds_config"), dict):
            stated = stated["ds_config"]
        found = DeepspeedFile(option, file.name, None if stated is None else dict(_leaves(stated)))
        # Read here for the first time, so that text in its place is a mistake of this option.
        int(found.stage)
        return found
    except (ValueError, AttributeError, TypeError, OSError) as error:
        raise RecipeError(f"{option}: the file is not a DeepSpeed configuration: {error}.") from error


def _decode(text: str) -> dict[str, Any] | None:
    """Return the configuration in the text of an option, as DeepSpeed's autotuner writes it: JSON in base64; None if
    the text is the name of a file."""
    # A name with a dot or a slash is a file, also where it would decode.
    if not re.fullmatch(r"[\w-]{4,}={0,2}", text, re.ASCII):
        return None
    try:
        stated = json.loads(base64.urlsafe_b64decode(text).decode())
    except (binascii.Error, ValueError):
        return None
    # Each of the autotuner's experiments has the settings of the search beside its own.
    return {key: value for key, value in stated.items() if key != "autotuning"} if isinstance(stated, dict) else None


def tuned_command(folder: Path) -> Path | None:
    """Return the command that DeepSpeed's autotuner found best, from its folder of results; None in other folders."""
    return _result(folder, TUNED_COMMAND)


def _tuned_configuration(option: str, folder: Path) -> Path:
    """Return the configuration that DeepSpeed's autotuner found best, from its folder of results; raise `RecipeError`
    if the folder is another one, or the search has not ended."""
    if found := _result(folder, _TUNED):
        return found
    raise RecipeError(
        f"{option}: {folder} is a folder without {_TUNED}, which DeepSpeed's autotuner writes when its search has "
        "ended. Give a file, or the folder of its results (autotuning.results_dir)."
    )


def _result(folder: Path, name: str) -> Path | None:
    """Return a result of DeepSpeed's autotuner in its folder, or in the folder `results` there; None if it has none."""
    return next((file for file in (folder / name, folder / "results" / name) if file.is_file()), None)


def compare_with_command(command: Command) -> Iterator[str]:
    """Yield where the file contradicts the command."""
    file = deepspeed_file(command)
    if not file or not file.values:
        return
    if differ := [*_differences(command, file.values)]:
        yield (
            f"{file.option}: the file contradicts the command: {', '.join(differ)}. The Trainer stops at such a "
            "difference; here the command counts."
        )
        if file.name in (_TUNED, _TYPED) and (tuned := file.values.get("train_micro_batch_size_per_gpu")):
            yield (
                f"{file.option}: for the micro-batch that the autotuner found, add train.phases.0.micro_batch={tuned} "
                "to the command of bertwright; the batch stays that of the command."
            )
    for key, (usual, ours) in _KINDS.items():
        kind = file.values.get(key)
        if kind and str(kind).lower() not in usual:
            yield (
                f"{file.option}: {key} {kind} of the file replaces the choice of the command in the original. Here "
                f"the command counts; see {ours}."
            )


def unread_keys(command: Command) -> Iterator[tuple[str, str]]:
    """Yield each key or section of the file that nothing here reads, and why."""
    file = deepspeed_file(command)
    values = (file.values if file else None) or {}
    known = {*_ALIKE, *_KINDS, _STAGE, _BATCH}
    for section in dict.fromkeys(key.partition(".")[0] for key in values):
        inner = [key for key in values if key.partition(".")[0] == section]
        # A section of which nothing is read is named as a whole.
        for key in [key for key in inner if key not in known] if known & set(inner) else [section]:
            yield f"{file.name if file else ''}: {key}", _WHY.get(section, "no key of the recipe is like it")


def missing_file(command: Command) -> Iterator[str]:
    """Yield what is assumed about a file that is not here."""
    file = deepspeed_file(command)
    if file and file.values is None:
        assumed = f"ZeRO stage {file.stage}, as in the published file," if file.stage else "no ZeRO stage"
        yield (
            f"{file.option} is no file here: {assumed} is assumed, and its other values are not compared with the "
            "command. Translate where the file is, or set train.engine."
        )


def _differences(command: Command, values: Mapping[str, Any]) -> Iterator[str]:
    """Yield each value of the file that is another one than the command's, which follows in brackets."""
    for key, options in _ALIKE.items():
        several = [_setting(command, name) for name in options]
        ours = several if len(several) > 1 else several[0]
        # Without a number of steps, the length follows from the epochs and the warm-up from its share.
        if key in values and values[key] not in (None, "auto", ours) and (ours or not key.startswith("scheduler.")):
            yield f"{key} {json.dumps(values[key])} ({command.source(*options) or f'no --{options[0]}'})"
    one = command.number("per_device_train_batch_size") * command.number("gradient_accumulation_steps", 1)
    whole = one * command.launch.ranks if command.launch.ranks else values.get(_BATCH)
    if values.get(_BATCH) not in (None, "auto", whole):
        yield f"{_BATCH} {json.dumps(values[_BATCH])} ({whole:g} sequences of all processes)"


def _setting(command: Command, name: str) -> float | bool:
    return bool(command[name]) if command.program.options[name].type == "flag" else command.number(name)


def _leaves(section: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of a section, and of those in it, by dotted key."""
    for name, value in section.items():
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{above}{name}.")
        else:
            yield f"{above}{name}", value
