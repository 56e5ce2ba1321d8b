"""Check without torch whether a machine supports how the recipe computes: device, precision, instructions, graph and
attention kernel; and whether training is long enough for its average."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.errors import BertwrightError, MissingExtraError
from bertwright.core.numbers import size_of
from bertwright.estimate import machine_facts
from bertwright.estimate.machine_facts import OtherMachine, trains_on_gpu
from bertwright.model.config import VARLEN_CAPABILITY
from bertwright.recipe import Recipe
from bertwright.train.averaging.config import LastConfig
from bertwright.train.graph.config import CompiledConfig, GraphConfig, OrtModuleConfig
from bertwright.train.machine.cpu_isa import lacking
from bertwright.train.precision.config import AutoPrecisionConfig, Bf16Config, Bf32Config, Fp32Config
from bertwright.train.precision.units import SPEEDUP, Units, of_gpu, refusal
from bertwright.train.settings.unreachable_settings import known_ends, partly_reached_settings


def remedy_for(recipe: Recipe, change: str, at: OtherMachine | None = None) -> str:
    """Return what to do about a recipe that the machine cannot run; `change`, such as "set KEY=VALUE.", adapts it.

    A recipe for another machine should not be changed because it was checked on this one.
    """
    if at is not None or recipe.train.device == "cpu":
        return f"{change[0].upper()}{change[1:]}"
    return f"For another machine, check it with `bertwright check RECIPE --place FILE`; to run it here, {change}"


def device(recipe: Recipe, stages: Sequence[str], at: OtherMachine | None = None) -> Iterator[Verdict]:
    """Yield a verdict on the device of each of `stages` that runs the network, here or `at` another machine."""
    wanted = {"train": recipe.train.device, "evaluate": recipe.evaluate.device}
    for stage in (stage for stage in wanted if stage in stages):
        key, build = f"{stage}.device", machine_facts.torch_build()
        if at is not None:
            yield _device_there(key, wanted[stage], at)
            continue
        gpus = machine_facts.gpu_memory() if build.accelerated else ()
        if wanted[stage] == "cuda" and not gpus:
            missing = (
                "torch finds no GPU here" if build.accelerated else f"torch {build.version} is a build for the CPU"
            )
            remedy = f"install a CUDA build of torch on a machine with a GPU, or set {key} to cpu or auto."
            yield error(key, f"{key} = cuda, but {missing}.", remedy_for(recipe, remedy))
        elif wanted[stage] == "cpu" or not gpus:
            yield ok(key, "the CPU")
        else:
            yield ok(key, f"a GPU ({size_of(gpus[0])})")


def _device_there(key: str, wanted: str, at: OtherMachine) -> Verdict:
    if wanted == "cuda" and not at.gpu:
        text = f"{key} = cuda, but the place has no GPUs ({at.title})."
        return error(key, text, f"Name them in its section [hardware] (gpu), or set {key} to cpu or auto.")
    if wanted == "cpu" or not at.gpu:
        return ok(key, f"the CPU, of {at.title}")
    return ok(key, f"a GPU ({size_of(at.memory)}), of {at.title}")


def precision(recipe: Recipe, stages: Sequence[str], at: OtherMachine | None = None) -> Iterator[Verdict]:
    """Yield a verdict on whether the GPU or CPU that will train, here or `at` another machine, supports the
    precision."""
    if "train" not in stages:
        return
    key, wanted = "train.precision", recipe.train.precision
    on_gpu = trains_on_gpu(recipe, at)
    if at is not None and not on_gpu and isinstance(wanted, (Bf16Config, Bf32Config)):
        yield ok(key, f"{wanted.kind}, if the processors have units for it: a place does not say")
        return
    has = None if not on_gpu else machine_facts.gpu_capability() if at is None else at.capability
    on_processor = () if on_gpu else machine_facts.bf16_units()
    if isinstance(wanted, AutoPrecisionConfig):
        chosen = of_gpu(has, recipe.train.engine.kind) if on_gpu else None
        yield ok(key, f"{chosen.config.kind}: {chosen.reason}" if chosen else _auto_on_a_cpu(recipe, on_processor, at))
        return
    # For bf32, AVX512-BF16 does not suffice: oneDNN rounds factors of float32 products only with AMX, or on ARM.
    units = Units(on_gpu, has, bool(on_processor), bool(set(on_processor) - {"avx512_bf16"}))
    if refused := refusal(wanted, units):
        yield error(
            key,
            f"{key} = {wanted.kind}, but {refused.reason}.",
            remedy_for(recipe, refused.remedy[0].lower() + refused.remedy[1:], at),
        )
    elif has and not isinstance(wanted, Fp32Config):
        yield ok(key, f"{wanted.kind}, on a GPU of compute capability {has[0]}.{has[1]}")
    elif not on_gpu and isinstance(wanted, (Bf16Config, Bf32Config)):
        yield ok(key, f"{wanted.kind}, by {', '.join(on_processor) or 'software'}")


def _auto_on_a_cpu(recipe: Recipe, units: Sequence[str], at: OtherMachine | None) -> str:
    """Return what `auto` may choose on a CPU."""
    if recipe.train.graph.kind == "ortmodule":
        return "fp32: ONNX Runtime computes in float32"
    if recipe.train.cpu_isa in ("avx2", "avx512") or (at is None and not units):
        return "fp32: no units for bfloat16"
    by = f", by {', '.join(units)}" if at is None else ""
    return f"bf16{by}, if the first start measures that it is {SPEEDUP:g} times as fast as fp32; else fp32"


def instructions(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on whether the CPU has the instructions up to which the recipe allows."""
    key, wanted = "train.cpu_isa", recipe.train.cpu_isa
    if "train" not in stages or wanted == "auto":
        return
    if reason := lacking(wanted):
        yield error(key, f"{key} = {wanted}, but {reason}.", "Leave it out, or set a lower bound.")
    else:
        yield ok(key, f"instructions up to {wanted}")


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
    if train.attention in ("varlen", "triton"):
        setting = f"train.attention = {train.attention}"
        yield from _gpu_kernel(recipe, device, at, setting, {"cpu": "auto", "cuda": "padded"}[device])
    if train.attention == "varlen" and device == "cuda" and at is None:
        yield from _windows(recipe)
    if train.kernels == "triton":
        yield from _gpu_kernel(recipe, device, at, "train.kernels = triton", "torch")
    ends = known_ends(train)
    if ends is None:
        return
    if isinstance(train.averaging, LastConfig) and train.averaging.every > sum(ends):
        text = (
            f"train.averaging.every = {train.averaging.every:,}, but the phases (train.phases) have {sum(ends):,} "
            "steps together: there would be nothing to average."
        )
        yield error("train.averaging", text, "Lower train.averaging.every, or set train.averaging=none.")
    yield from (warning(*idle) for idle in partly_reached_settings(train, ends))


def _gpu_kernel(recipe: Recipe, device: str, at: OtherMachine | None, setting: str, instead: str) -> Iterator[Verdict]:
    """Yield what the machine lacks for a kernel, and the value to set instead; whether it supports the networks is
    checked on the recipe itself (`contradictions`)."""
    key, _, _ = setting.partition(" ")
    remedy = f"set {key}={instead}."
    if device == "cpu":
        text = f"{setting} is a kernel for GPUs, but this training runs on a CPU."
        yield error(key, text, remedy_for(recipe, remedy, at))
        return
    has = machine_facts.gpu_capability() if at is None else at.capability
    if has is not None and has < VARLEN_CAPABILITY:
        text = f"{setting} needs compute capability 8.0 (NVIDIA Ampere), but this GPU has {has[0]}.{has[1]}."
        yield error(key, text, remedy_for(recipe, remedy, at))


def _windows(recipe: Recipe) -> Iterator[Verdict]:
    """Yield a network with windows, of which the FlashAttention of this machine's torch has none."""
    key, version = "train.attention", machine_facts.torch_build().version
    if (whose := _network_with_windows(recipe)) and tuple(map(int, re.findall(r"\d+", version)[:2])) < _WINDOWS:
        text = f"{key} = varlen needs torch 2.12 for the attention windows of {whose}, but this is torch {version}."
        yield error(key, text, f"Install torch 2.12 or newer, or set {key}=padded.", MissingExtraError)


def _network_with_windows(recipe: Recipe) -> str:
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
