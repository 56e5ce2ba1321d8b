"""Check without torch whether the device that a recipe selects exists and supports its precision."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.check.machine import bf16_units, gpu_capability, gpu_memory, torch_build
from bertwright.check.verdict import Verdict, error, ok
from bertwright.recipe import Recipe
from bertwright.train.instructions import lacking
from bertwright.train.precision.config import Bf16Config, Bf32Config, Fp32Config
from bertwright.train.precision.units import Units, refusal


def device(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on the device of each of `stages` that runs the network."""
    wanted = {"train": recipe.train.device, "evaluate": recipe.evaluate.device}
    for stage in (stage for stage in wanted if stage in stages):
        key, build = f"{stage}.device", torch_build()
        gpus = gpu_memory() if build.accelerated else ()
        if wanted[stage] == "cuda" and not gpus:
            missing = (
                "torch finds no GPU here" if build.accelerated else f"torch {build.version} is a build for the CPU"
            )
            remedy = f"Install a CUDA build of torch on a machine with a GPU, or set {key} to cpu or auto."
            yield error(key, f"{key} = cuda, but {missing}.", remedy)
        elif wanted[stage] == "cpu" or not gpus:
            yield ok(key, "the CPU")
        else:
            yield ok(key, f"a GPU ({gpus[0] / 1e9:.0f} GB)")


def training_gpus(recipe: Recipe) -> tuple[int, ...]:
    """Return the bytes of memory of each GPU that may train; () if training runs on the CPU."""
    return gpu_memory() if torch_build().accelerated and recipe.train.device != "cpu" else ()


def precision(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on whether the GPU or CPU that will train supports the precision."""
    if "train" not in stages:
        return
    key, wanted = "train.precision", recipe.train.precision
    on_gpu = bool(training_gpus(recipe))
    has, on_processor = gpu_capability() if on_gpu else None, () if on_gpu else bf16_units()
    # For bf32, AVX512-BF16 does not suffice: oneDNN rounds factors of float32 products only with AMX, or on ARM.
    units = Units(on_gpu, has, bool(on_processor), bool(set(on_processor) - {"avx512_bf16"}))
    if refused := refusal(wanted, units):
        yield error(key, f"{key} = {wanted.kind}, but {refused.reason}.", refused.remedy)
    elif has and not isinstance(wanted, Fp32Config):
        yield ok(key, f"{wanted.kind}, on a GPU of compute capability {has[0]}.{has[1]}")
    elif not on_gpu and isinstance(wanted, (Bf16Config, Bf32Config)):
        yield ok(key, f"{wanted.kind}, by {', '.join(on_processor) or 'software'}")


def instructions(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on whether the CPU has the instructions up to which the recipe allows."""
    key, wanted = "train.cpu_isa", recipe.train.cpu_isa
    if "train" not in stages or wanted == "auto":
        return
    if reason := lacking(wanted):
        yield error(key, f"{key} = {wanted}, but {reason}.", "Leave it out, or set a lower bound.")
    else:
        yield ok(key, f"instructions up to {wanted}")
