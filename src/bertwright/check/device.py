"""Whether a GPU is there where a recipe asks for one, told without torch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bertwright.check.machine import gpu_memory, torch_build
from bertwright.check.verdict import Verdict, error, ok
from bertwright.recipe import Recipe


def device(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """A verdict on each of `stages` that runs the network."""
    wanted = {"train": recipe.train.device, "evaluate": recipe.evaluate.device}
    for stage in (stage for stage in wanted if stage in stages):
        key, build = f"{stage}.device", torch_build()
        found = gpu_memory() if build.accelerated else ()
        if wanted[stage] == "cuda" and not found:
            missing = "no GPU is seen here" if build.accelerated else f"torch {build.version} is a build for the CPU"
            remedy = f"Install a CUDA build of torch on a machine with a GPU, or set {key} to cpu or auto."
            yield error(key, f"{key} = cuda, but {missing}.", remedy)
        elif wanted[stage] == "cpu" or not found:
            yield ok(key, "the CPU")
        else:
            yield ok(key, f"a GPU ({found[0] / 1e9:.0f} GB)")
