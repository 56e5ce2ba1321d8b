"""Whether the machine has what a run takes: a GPU where one is asked for, memory, disk; checked without torch.

Memory of training: `train/sizes.py`, and a teacher as `check.teacher` says; of other stages 0.25 GB a worker, and
0.7 GB.

Disk, measured on three dumps: a corpus takes 1.15 times its text (result and scratch), a token is 5 bytes of text;
examples take 2.1 bytes a token and 16 bytes a plan of each pass, and as much again while they are made. A checkpoint
has 12 bytes a parameter; `train.keep_checkpoints`, the best one, one a phase and one being written are there at a time.
The model and its export have 4 bytes a parameter each. Both rules are right within a factor of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.machine import bf16_units, disk_free, gpu_capability, gpu_memory, torch_build
from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.errors import DataError
from bertwright.core.memory import memory_size
from bertwright.core.processor import default_workers
from bertwright.objectives.config import DistillationConfig
from bertwright.recipe import Recipe
from bertwright.train.instructions import lacking
from bertwright.train.precision.config import (
    Bf16Config,
    Bf32Config,
    Fp8Config,
    Fp16Config,
    Fp32Config,
    PrecisionConfig,
    Tf32Config,
)
from bertwright.train.sizes import averaged_copies, computing_of, training_bytes

BYTES_A_TOKEN = 5
"""Bytes of text that a token has about, with a vocabulary of usual size."""
DOUBT = 2
"""By how much the rules may be wrong: beyond it a run is refused, within it a warning is given."""
_WORKER_BYTES, _STAGE_BYTES = 0.25e9, 0.7e9
_FREE_SPACE = "Free space there, or choose another folder (--out DIR)."


def device(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """A verdict on each of `stages` that runs the network."""
    wanted = {"train": recipe.train.device, "evaluate": recipe.evaluate.device}
    for stage in (stage for stage in wanted if stage in stages):
        key, build = f"{stage}.device", torch_build()
        gpus = gpu_memory() if build.accelerated else ()
        if wanted[stage] == "cuda" and not gpus:
            missing = "no GPU is seen here" if build.accelerated else f"torch {build.version} is a build for the CPU"
            remedy = f"Install a CUDA build of torch on a machine with a GPU, or set {key} to cpu or auto."
            yield error(key, f"{key} = cuda, but {missing}.", remedy)
        elif wanted[stage] == "cpu" or not gpus:
            yield ok(key, "the CPU")
        else:
            yield ok(key, f"a GPU ({gpus[0] / 1e9:.0f} GB)")


def training_gpus(recipe: Recipe) -> tuple[int, ...]:
    """Bytes of memory of each GPU that may train; () where a processor will."""
    return gpu_memory() if torch_build().accelerated and recipe.train.device != "cpu" else ()


def precision(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Whether the GPU or the processor that will train has units for the precision."""
    if "train" not in stages:
        return
    key, wanted = "train.precision", recipe.train.precision
    if training_gpus(recipe):
        yield from _on_gpu(key, wanted)
        return
    if isinstance(wanted, Tf32Config):
        yield error(key, f"{key} = tf32, but a processor has no tensor cores for it.", f"Set {key}=fp32.")
    elif isinstance(wanted, Bf32Config) and not set(bf16_units()) - {"avx512_bf16"}:
        yield error(key, f"{key} = bf32, but this processor has no unit for it (AMX).", f"Set {key}=fp32.")
    elif isinstance(wanted, Fp16Config) and not wanted.allow_slow:
        yield error(
            key, f"{key} = fp16, but a processor is slow with it.", f"Set {key}=fp32, or {key}.allow_slow=true."
        )
    elif isinstance(wanted, Fp8Config) and not wanted.allow_slow:
        yield error(
            key, f"{key} = fp8, but a processor can only imitate it.", f"Set {key}=fp32, or {key}.allow_slow=true."
        )
    elif isinstance(wanted, Bf16Config) and not wanted.allow_slow and not bf16_units():
        missing = "this processor has no unit for it (AMX or AVX512-BF16): a step would take ten times as long"
        yield error(key, f"{key} = bf16, but {missing}.", f"Set {key}=fp32, or {key}.allow_slow=true.")
    elif isinstance(wanted, (Bf16Config, Bf32Config)):
        yield ok(key, f"{wanted.kind}, by {', '.join(bf16_units()) or 'software'}")


def instructions(recipe: Recipe, stages: Sequence[str]) -> Iterator[Verdict]:
    """Whether the processor has the instructions that the recipe lets it use at most."""
    key, wanted = "train.cpu_isa", recipe.train.cpu_isa
    if "train" not in stages or wanted == "auto":
        return
    if reason := lacking(wanted):
        yield error(key, f"{key} = {wanted}, but {reason}.", "Leave it out, or name less.")
    else:
        yield ok(key, f"instructions up to {wanted}")


def _on_gpu(key: str, wanted: PrecisionConfig) -> Iterator[Verdict]:
    # Of AMD's GPUs nothing is known here: they are asked when training starts.
    if (has := gpu_capability()) is None:
        return
    gpu = f"this GPU has compute capability {has[0]}.{has[1]}"
    if isinstance(wanted, Bf32Config):
        text = f"{key} = bf32, but it is of processors, and a GPU will train."
        yield error(key, text, f"Set {key}=tf32, or train.device=cpu.")
    elif isinstance(wanted, Tf32Config) and has < (8, 0):
        text = f"{key} = tf32, but {gpu}, and tensor cores for it begin at 8.0 (NVIDIA Ampere)."
        yield error(key, text, f"Set {key}=fp32.")
    elif isinstance(wanted, Bf16Config) and has < (8, 0) and not wanted.allow_slow:
        text = f"{key} = bf16, but {gpu}, and units for it begin at 8.0 (NVIDIA Ampere)."
        yield error(key, text, f"Set {key}=fp16 or fp32, or {key}.allow_slow=true.")
    elif isinstance(wanted, Fp8Config) and has < (8, 9):
        text = f"{key} = fp8, but {gpu}, and float8 products begin at 8.9 (NVIDIA Ada, Hopper)."
        yield error(key, text, f"Set {key}=bf16." if has >= (8, 0) else f"Set {key}=fp16.")
    elif not isinstance(wanted, Fp32Config):
        yield ok(key, f"{wanted.kind}, on a GPU of compute capability {has[0]}.{has[1]}")


def memory(recipe: Recipe, stages: Sequence[str], ranks: int = 1) -> Iterator[Verdict]:
    """Whether the stages fit in memory."""
    available = memory_size()
    for stage, section in (("corpus", recipe.corpus), ("examples", recipe.examples)):
        # Labelled texts are read by one process.
        if stage in stages and section is not None and not (stage == "examples" and recipe.labels):
            workers = section.workers or default_workers()
            remedy = f"Use fewer workers ({stage}.workers=1)."
            yield _memory_verdict(
                f"{stage}.workers", f"{workers} workers", _STAGE_BYTES + workers * _WORKER_BYTES, available, remedy
            )
    if "train" not in stages:
        return
    gpus = training_gpus(recipe)
    # Of AMD's GPUs the memory cannot be read without torch; 0 stands for "unknown".
    place = (gpus[0] or None) if gpus else available
    bert = recipe.network()
    computing, phases = computing_of(recipe.train, recipe.optim, ranks, gpu=bool(gpus)), recipe.train.phases
    needs = [training_bytes(bert, phase, computing) for phase in phases]
    if isinstance(recipe.train.objective, DistillationConfig):
        from bertwright.check.teacher import teacher_bytes  # reads the folders of other programs

        needs = [need + teacher_bytes(recipe, bert, phase, ranks) for need, phase in zip(needs, phases, strict=True)]
    # Phases run one after another, so the largest of them decides.
    number = needs.index(max(needs))
    what = f"training {bert.parameters:,} parameters, in phase {number},"
    ways = ["choose a smaller model.size"]
    if not recipe.train.checkpoint_activations:
        ways.insert(0, "set train.checkpoint_activations=true")
    if phases[number].micro_batch != "auto":  # which is lowered by itself
        size = "micro_tokens" if phases[number].micro_tokens else "micro_batch"
        ways.insert(0, f"lower train.phases.{number}.{size}")
    remedy = ", or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))
    remedy = f"{remedy[0].upper()}{remedy[1:]}."
    yield _memory_verdict("train memory", what, needs[number], place, remedy)


def _memory_verdict(about: str, what: str, needed: float, available: int | None, remedy: str) -> Verdict:
    text = f"{what} take about {needed / 1e9:.1f} GB of memory"
    if available is None:
        return ok(about, text)
    text += f", {available / 1e9:.1f} GB are there"
    if needed > DOUBT * available:
        return error(about, f"{text}.", remedy, DataError)
    return warning(about, f"{text}.", remedy) if needed > available else ok(about, text)


def disk(recipe: Recipe, out: Path, stages: Sequence[str], text: float | None) -> Iterator[Verdict]:
    """Whether what the stages write has room; `text` is the bytes of text of the sources, None where not known."""
    parts = run_bytes(recipe, text)
    needed = {stage: size for stage, size in parts.items() if stage in stages}
    if not needed:
        return
    total, free = sum(needed.values()), disk_free(out)
    unknown = (
        "" if text is not None or not {"corpus", "examples"} & set(stages) else ", beside what is made of the sources"
    )
    shares = ", ".join(f"{stage} {_shown(size)}" for stage, size in needed.items())
    described = f"about {_shown(total)} are written ({shares}){unknown}; {_shown(free)} are free"
    if total > DOUBT * free:
        yield error("disk", f"{described}.", _FREE_SPACE, DataError)
    elif total > free:
        yield warning("disk", f"{described}.", _FREE_SPACE)
    else:
        yield ok("disk", described)


def run_bytes(recipe: Recipe, text: float | None) -> dict[str, float]:
    """Bytes that each stage has on disk at most, about; of the sources only where their text is known."""
    parameters, train = recipe.network().parameters, recipe.train
    sizes: dict[str, float] = {}
    if text is not None:
        sizes = {"corpus": 1.15 * text, "examples": 2 * examples_bytes(recipe, text)}
    # The best one and the one that is being written stand beside those that are kept.
    checkpoints = train.keep_checkpoints + 2 + len(train.phases)
    size = checkpoint_bytes(recipe) * checkpoints + 4 * parameters
    return {**sizes, "train": size, "export": 4.0 * parameters}


def examples_bytes(recipe: Recipe, text: float) -> float:
    """Bytes of the finished examples of so many bytes of text, about."""
    tokens = text / BYTES_A_TOKEN
    plans = sum(tokens / plan.length for plan in recipe.plan_sets()) * recipe.examples.passes
    return 2.1 * tokens + 16 * plans


def checkpoint_bytes(recipe: Recipe) -> float:
    """Bytes of a checkpoint, beside the heads of its files."""
    return (12.0 + 4 * averaged_copies(recipe.train.averaging)) * recipe.network().parameters


def _shown(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
