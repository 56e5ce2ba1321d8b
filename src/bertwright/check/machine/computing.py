"""Check without torch whether this machine, and the length of training, support how the recipe computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bertwright.check.machine.device import remedy_for
from bertwright.check.verdict import Verdict, error, warning
from bertwright.core.errors import BertwrightError, MissingExtraError
from bertwright.estimate import machine_facts
from bertwright.estimate.machine_facts import OtherMachine, trains_on_gpu
from bertwright.model.config import VARLEN_CAPABILITY
from bertwright.recipe import Recipe
from bertwright.train.averaging.config import LastConfig
from bertwright.train.graph.config import CompiledConfig, GraphConfig, OrtModuleConfig
from bertwright.train.settings.unreachable_settings import known_ends, never_due

_WINDOWS = (2, 12)
"""First version of torch whose FlashAttention over sequences of any length has windows."""


def computing(recipe: Recipe, stages: Sequence[str], at: OtherMachine | None = None) -> Iterator[Verdict]:
    """Yield an error for a graph, an attention kernel or a weight averaging that is not supported here, or `at` another
    machine, of whose packages nothing is known.

    Patterns of `optim.groups` are not checked: only the networks know the names of tensors, and they need torch.
    """
    if "train" not in stages:
        return
    train = recipe.train
    device = "cuda" if trains_on_gpu(recipe, at) else "cpu"
    yield from _graph(train.graph, device, at)
    if train.attention == "varlen":
        yield from _varlen(recipe, device, at)
    ends = known_ends(train)
    if ends is None:
        return
    if isinstance(train.averaging, LastConfig) and train.averaging.every > sum(ends):
        text = (
            f"train.averaging.every = {train.averaging.every:,}, but the phases (train.phases) have {sum(ends):,} "
            "steps together: there would be nothing to average."
        )
        yield error("train.averaging", text, "Lower train.averaging.every, or set train.averaging=none.")
    yield from (warning(*idle) for idle in never_due(train, ends))


def _varlen(recipe: Recipe, device: str, at: OtherMachine | None) -> Iterator[Verdict]:
    """Yield what the machine lacks for the kernel; whether it supports the networks is checked on the recipe itself
    (`contradictions`)."""
    key = "train.attention"
    if device == "cpu":
        text = f"{key} = varlen is a kernel for GPUs, but this training runs on a CPU."
        yield error(key, text, remedy_for(recipe, f"set {key}=auto.", at))
        return
    has = machine_facts.gpu_capability() if at is None else at.capability
    if has is not None and has < VARLEN_CAPABILITY:
        text = f"{key} = varlen needs compute capability 8.0 (NVIDIA Ampere), but this GPU has {has[0]}.{has[1]}."
        yield error(key, text, remedy_for(recipe, f"set {key}=padded.", at))
    if at is not None:
        return
    version = machine_facts.torch_build().version
    if (whose := _windowed(recipe)) and tuple(map(int, re.findall(r"\d+", version)[:2])) < _WINDOWS:
        text = f"{key} = varlen needs torch 2.12 for the attention windows of {whose}, but this is torch {version}."
        yield error(key, text, f"Install torch 2.12 or newer, or set {key}=padded.", MissingExtraError)


def _windowed(recipe: Recipe) -> str:
    """Return which network of a training has attention windows; "" if none."""
    if any(recipe.network().windows):
        return "[model]"
    if (folder := recipe.task.taught_by) is None:
        return ""
    from bertwright.model.pretrained_config import read_pretrained  # reads folders of other programs

    try:
        teacher = read_pretrained(folder)
    except BertwrightError:
        return ""  # another verdict reports it
    return "train.objective.teacher" if any(teacher.network.windows) else ""


def _graph(graph: GraphConfig, device: str, at: OtherMachine | None) -> Iterator[Verdict]:
    # Imported here, because most recipes compile no graph and need none of this.
    if isinstance(graph, CompiledConfig) and at is None:
        from bertwright.train.graph.packages import missing_compiler

        if missing := missing_compiler(device):
            text = f"train.graph = compiled needs {missing}."
            yield error("train.graph", text, "Install it, or set train.graph=eager.")
    if isinstance(graph, OrtModuleConfig):
        from bertwright.train.graph.packages import REMEDY, missing_ortmodule

        if at is None and (missing := missing_ortmodule()):
            yield error("train.graph", f"train.graph = ortmodule needs {missing}.", REMEDY, MissingExtraError)
        if device != "cpu":
            text = "train.graph = ortmodule computes on a CPU, but this training runs on a GPU."
            yield error("train.device", text, "Set train.device=cpu, or train.graph=compiled.")
