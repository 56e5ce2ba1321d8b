"""Keys that control how training is computed."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.core.errors import RecipeError
from bertwright.translate.command import Command, Key
from bertwright.translate.deepspeed_file import deepspeed_file

_BETAS = {"beta_1", "beta_2", "adam_beta1", "adam_beta2"}
_SCALES = ("loss_scale", "init_loss_scale")
"""Options for the loss scale of fp16; the first that is given counts."""


def precision(command: Command, name: str) -> Iterator[Key]:
    """A switch of this name, as `train.precision`; for fp16 with its initial loss scale, if the original reads one."""
    if not command[name]:
        return
    kind = {"amp": "fp16", "fp8": "bf16"}.get(name, name)
    # A scale of 0 means that the original chooses it.
    read = [option for option in _SCALES if _reads_scale(command, option) and command.number(option)]
    # 2^16 is the default here, too.
    if kind == "fp16" and read and (scale := command.number(read[0])) != 2.0**16:
        yield Key("train.precision", {"kind": kind, "initial_scale": scale}, command.source(name, read[0]))
    else:
        yield Key("train.precision", kind, command.source(name))


def loss_scale(command: Command, name: str) -> Iterator[Key]:
    """The initial loss scale of fp16; no key if the command sets another precision or leaves the scale at its default,
    which the switch for fp16 names."""
    switch = next((switch for switch in ("fp16", "amp") if command[switch]), "")
    if switch and command.settings[name].given:
        yield from precision(command, switch)


def _reads_scale(command: Command, name: str) -> bool:
    option = command.program.options.get(name)
    return option is not None and option.becomes == loss_scale.__name__


def instructions(command: Command, name: str) -> Iterator[Key]:
    """oneDNN's limit on instruction sets."""
    most = {"AVX512_CORE_AMX": "amx", "AVX512_CORE_AMX_FP16": "amx", "AVX512_CORE_BF16": "avx512_bf16"}
    most |= {"AVX512_CORE": "avx512", "AVX2": "avx2"}
    value = str(command[name]).upper()
    if value not in most:
        raise RecipeError(f"{name}={command[name]}: give one of {', '.join(most)}.")
    yield Key("train.cpu_isa", most[value], command.source(name))


def log_every(command: Command, name: str) -> Iterator[Key]:
    """Forward passes between log lines, converted to updates."""
    if passes := command.number(name):
        updates = max(1, round(passes / max(1.0, command.number("gradient_accumulation_steps", 1))))
        yield Key("train.log_every", updates, f"{command.source(name)}, counted in forward passes there")


def betas(command: Command, name: str) -> Iterator[Key]:
    """Two decay rates, which are separate options in the original."""
    names = [option for option in command.settings if option.removeprefix("opt_lamb_") in _BETAS]
    # By name, so that the rate of the first moment comes first.
    values = [command.number(option) for option in sorted(names)]
    yield Key("optim.betas", values, command.source(*sorted(names)))


def engine(command: Command, name: str) -> Iterator[Key]:
    """Sharded optimizer state."""
    if command[name]:
        yield Key("train.engine", "zero", command.source(name))


def deepspeed(command: Command, name: str) -> Iterator[Key]:
    """The ZeRO stage in DeepSpeed's file, as its engine; no key for stage 0, which is what several ranks do anyway."""
    file = deepspeed_file(command)
    if file and file.stage:
        if file.stage not in (1, 2, 3):
            raise RecipeError(
                f"{file.option}: ZeRO has no stage {file.stage}. Set the stage to 0, 1, 2 or 3 in that file."
            )
        value = {"kind": "deepspeed", "stage": file.stage}
        yield Key("train.engine", value, f"{file.option}, whose ZeRO stage is {file.stage}")


def compiled(command: Command, name: str) -> Iterator[Key]:
    """torch.compile."""
    if command[name]:
        yield Key("train.graph", "compiled", command.source(name))


def tensorboard(command: Command, name: str) -> Iterator[Key]:
    """The folder of TensorBoard's event files."""
    yield Key("train.observers", [{"kind": "tensorboard", "folder": command[name]}], command.source(name))


def adamw(command: Command, name: str) -> Iterator[Key]:
    """One of the Trainer's implementations of AdamW."""
    yield Key("optim.kind", "adamw", command.source(name))


def device(command: Command, name: str) -> Iterator[Key]:
    """The device: the CPU, or the best one available."""
    yield Key("train.device", "cpu" if command[name] == "cpu" else "auto", command.source(name))
