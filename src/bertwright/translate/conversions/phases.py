"""Keys of a phase: its batch, its micro-batch, its length in steps."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, Key

_DEVICE = "per_device_train_batch_size"


def nothing(command: Command, name: str) -> Iterator[Key]:
    """No key, although the option's table names one for its note."""
    yield from ()


def batch(command: Command, name: str) -> Iterator[Key]:
    """Sequences of one process and update, as the global batch; no key if the number of processes is not known."""
    if (ranks := command.launch.ranks) is not None:
        why = f"{command.source(name)}{_times(ranks, 'processes')}"
        yield Key(f"{PHASE}batch", _counted(command, name) * ranks, why)


def _counted(command: Command, name: str) -> int:
    """Return the value of an option that is at least 1; raise `RecipeError` if it is less."""
    if (count := int(command.number(name, 1))) < 1:
        raise RecipeError(f"{command.source(name)}: with {count} nothing would be trained on. Give 1 or more.")
    return count


def _times(count: int, what: str) -> str:
    return f", x {count} {what}" if count > 1 else ""


def micro_batch(command: Command, name: str) -> Iterator[Key]:
    """Sequences of one process and update, divided by its number of forward passes."""
    batch, passes = _counted(command, "train_batch_size"), int(command.number(name, 1))
    if passes < 1 or batch % passes:
        raise RecipeError(
            f"{command.source(name)}: train_batch_size {batch} is not divided by {passes}, and the original stops. "
            f"Give a divisor of {batch}."
        )
    yield Key(f"{PHASE}micro_batch", batch // passes, f"{batch} / {command.source(name)}")


def device_batch(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's sequences per device and forward pass, as micro-batch and global batch."""
    size, passes = _counted(command, _DEVICE), _counted(command, "gradient_accumulation_steps")
    if (ranks := command.launch.ranks) is not None:
        why = f"{command.source(_DEVICE)}{_times(passes, 'passes')}{_times(ranks, 'processes')}"
        yield Key(f"{PHASE}batch", size * passes * ranks, why)
    yield Key(f"{PHASE}micro_batch", size, command.source(_DEVICE))


def global_batch(command: Command, name: str) -> Iterator[Key]:
    """A batch that is the global batch in the original too."""
    yield Key(f"{PHASE}batch", _counted(command, name), f"{command.source(name)}, of all devices together")


def steps_of_samples(command: Command, name: str) -> Iterator[Key]:
    """An interval in sequences, as one in steps."""
    key = command.program.original(name)
    if key and command.number(name) > 0 and (batch := _updated(command)):
        yield Key(key.keys[0], ceil(command.number(name) / batch), f"{command.source(name)} / {batch}")


def end_after(command: Command, name: str) -> Iterator[Key]:
    """The update after which training ends although its schedule is longer; no key if another option ends it first."""
    ends = _ends(command)
    if name == min(ends, key=lambda option: ends[option], default="") and ends[name] < _schedule(command):
        per = f" / {_updated(command)}" if name == "max_samples_termination" else ""
        yield Key(f"{PHASE}end_after", ends[name], f"{command.source(name)}{per}")


def scoring(command: Command, name: str) -> Iterator[Key]:
    """The interval of scores in sequences, as one in steps; no key if training ends before the first score."""
    if _scores(command):
        yield from steps_of_samples(command, name)


def target(command: Command, name: str) -> Iterator[Key]:
    """The accuracy that ends training; no key if training ends before the first score."""
    if (key := command.program.original(name)) and _scores(command):
        yield Key(key.keys[0], command[name], command.source(name))


def _scores(command: Command) -> bool:
    """Whether the original scores while it trains, as far as the command determines it."""
    last = min([_schedule(command), *_ends(command).values()])
    first = command.number("eval_iter_start_samples") / (_updated(command) or 1)
    return command.number("eval_iter_samples") > 0 and first <= last


def _schedule(command: Command) -> int:
    return int(command.number("max_steps_for_scheduler", command.number("max_steps")))


def _ends(command: Command) -> dict[str, int]:
    """Return the last update that each option allows that ends training, whatever its schedule."""
    ends = {}
    if batch := _updated(command):
        ends["max_samples_termination"] = max(1, ceil(command.number("max_samples_termination") / batch))
    if "num-iterations" in command.settings and not command["converge"]:
        # The original does not count its first ten.
        ends["num-iterations"] = int(command.number("num-iterations")) + 10
    if "max_steps_for_scheduler" in command.settings:
        ends["max_steps"] = int(command.number("max_steps"))
    return ends


def _updated(command: Command) -> int | None:
    """Return the sequences of an update of all processes; None if the number of processes is not known."""
    ranks = command.launch.ranks
    return None if ranks is None else _counted(command, "train_batch_size") * ranks


def floor(command: Command, name: str) -> Iterator[Key]:
    """The rate that a linear schedule falls to, as a share of its peak; no key if it is 0."""
    if rate := command.number(name):
        schedule = {"kind": "linear", "floor": rate / command.number("learning_rate")}
        yield Key(f"{PHASE}schedule", schedule, command.source(name, "learning_rate"))


def warmup(command: Command, name: str) -> Iterator[Key]:
    """The number of warm-up steps, or else their share."""
    if steps := int(command.number("warmup_steps")):
        yield Key(f"{PHASE}warmup", steps, command.source("warmup_steps"))
    else:
        yield Key(f"{PHASE}warmup", command.number("warmup_proportion"), command.source("warmup_proportion"))


def warmup_start(command: Command, name: str) -> Iterator[Key]:
    """A warm-up that starts before the first step; no key if it starts with it."""
    if (start := int(command.number(name))) < 0:
        schedule = {"kind": "poly_nvidia", "power": 1.0, "warmup_before": -start}
        yield Key(f"{PHASE}schedule", schedule, command.source(name))


def trainer_warmup(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's warm-up: steps if given, where a value below 1 is a share; else the ratio. Its schedule `constant`
    has none."""
    if command["lr_scheduler_type"] == "constant":
        yield Key(f"{PHASE}warmup", 0, command.source("lr_scheduler_type"))
    elif steps := command.number("warmup_steps"):
        yield Key(f"{PHASE}warmup", steps if steps < 1 else int(steps), command.source("warmup_steps"))
    else:
        yield Key(f"{PHASE}warmup", command.number("warmup_ratio"), command.source("warmup_ratio", "warmup_steps"))


def trainer_length(command: Command, name: str) -> Iterator[Key]:
    """The Trainer's length: steps if given, else epochs."""
    if (steps := int(command.number("max_steps"))) > 0:
        yield Key(f"{PHASE}steps", steps, command.source("max_steps"))
    else:
        yield Key(f"{PHASE}epochs", command.number("num_train_epochs"), command.source("num_train_epochs"))


def whole(command: Command, name: str) -> Iterator[Key]:
    """A whole number of steps, which may have been typed as 500.0."""
    if (key := command.program.original(name)) and command.number(name):
        yield Key(key.keys[0], int(command.number(name)), command.source(name))


def length(command: Command, name: str) -> Iterator[Key]:
    """The length that data is prepared for, with its masks."""
    yield Key(f"{PHASE}length", command[name], command.source(name))
    yield Key(f"{PHASE}masking.static", True, "the original's files contain the masks")
    yield Key(f"{PHASE}masking.random_tokens", "all", "the original also draws special and unused entries")


def length_of_action(command: Command, name: str) -> Iterator[Key]:
    """The length of bertPrep.py, which only its actions that make examples read."""
    if _makes_examples(command):
        yield from length(command, name)


def masking_of_action(command: Command, name: str) -> Iterator[Key]:
    """A masking option of bertPrep.py, which only its actions that make examples read."""
    if (key := command.program.original(name)) and _makes_examples(command):
        yield Key(key.keys[0], command[name], command.source(name))


def _makes_examples(command: Command) -> bool:
    return str(command["action"]).startswith("create_")


def long(command: Command, name: str) -> Iterator[Key]:
    """Phase 2, whose length only the data's folder states."""
    if command[name]:
        yield Key(
            f"{PHASE}length", 512, f"{command.source(name)}: the length of phase 2; no option of the original sets it"
        )


def data(command: Command, name: str) -> Iterator[Key]:
    """Files of examples, translated to the name of their folder."""
    # A phase reads one folder; of several patterns, the first one names it.
    path = str(command[name]).split(",")[0]
    folder = path.rpartition("/")[0] if "*" in path or path.endswith((".tfrecord", ".hdf5")) else path
    yield Key(f"{PHASE}data", folder or ".", command.source(name))
