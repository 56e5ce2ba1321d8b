"""Training speed on one GPU, compared with the same network in transformers, on a machine with torch for CUDA.

    python benchmarks/gpu.py [--json FILE] [--side PART] [--device cpu --tiny] [CASE ...]

Needs numpy, pydantic, safetensors and transformers besides torch; bertwright itself need not be installed. First checks
that both sides compute the same loss, then times both: our complete step, including loader, clipping and optimizer, in
bfloat16, and theirs (SDPA, torch.compile, bfloat16, fused AdamW), fed with batches
that are already on the device. Examples that fill half their length are trained both packed and padded, and eager also
without cuDNN's attention, which torch prefers on an H100 and which plans its work for each new shape of a batch; such
batches have many. `--side eager` measures only the sides with that text in their names. `--device cpu --tiny` runs
everything at a size that a CPU can handle; its figures mean nothing.
"""

import argparse
import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from bertwright.bench.workload import VOCABULARY, Workload, loader_of
from bertwright.examples.batch import MicroBatch
from bertwright.examples.example_set import StepCounts
from bertwright.examples.loader import Loader
from bertwright.model.batch import PackedBatch, to_device
from bertwright.model.bert.config import BertModelConfig, SizeName
from bertwright.model.config import Kernel
from bertwright.model.device import torch_settings
from bertwright.model.flops import STEP, forward_flops
from bertwright.model.pretraining import PreTrainingModel
from bertwright.optim.config import LambConfig
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.train.engine.single import Single
from bertwright.train.graph.config import CompiledConfig, EagerConfig
from bertwright.train.graph.graph import run_as
from bertwright.train.micro_batch import prefetch
from bertwright.train.precision.config import Bf16Config, Fp32Config
from bertwright.train.precision.precision import build_precision
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup.trainee import Trainee
from bertwright.train.step import StepSettings, train_step
from gpu_peer import peer_steps, same_network

MATMUL = 8192
"""Side of the square matrices whose product measures the peak rate of the machine."""


@dataclass(frozen=True)
class Case:
    """One benchmarked training."""

    size: SizeName
    length: int
    filled: bool
    """Whether examples fill `length`; otherwise their mean length is half of it."""
    rows: int
    """Rows per forward pass; for the peer, sequences per forward pass."""
    batch: int = 4096
    """Sequences per step."""

    @property
    def name(self) -> str:
        return f"{self.size}-{self.length}-{'full' if self.filled else 'half'}"

    @property
    def workload(self) -> Workload:
        inner = self.length - 2
        if self.filled:
            return Workload(self.name, self.size, self.length, self.batch, "full-sentences", (40, 40), (inner, inner))
        # Documents with few sentences, so that many examples are complete documents.
        return Workload(self.name, self.size, self.length, self.batch, "doc-sentences", (1, 22 * self.length // 512))


CASES = [
    Case("base", 128, True, 512),
    Case("base", 128, False, 512),
    Case("base", 512, True, 128),
    Case("base", 512, False, 128),
    Case("large", 128, True, 256),
    Case("large", 128, False, 256),
    Case("large", 512, True, 64),
    Case("large", 512, False, 64),
]
TINY = [Case("tiny", 32, True, 4, 8), Case("tiny", 32, False, 4, 8)]
PRECISIONS = {"fp32": Fp32Config(), "bf16": Bf16Config()}


@dataclass(frozen=True)
class Side:
    """One configuration in which we train a case."""

    precision: Literal["fp32", "bf16"]
    layout: Literal["full", "packed", "padded"]
    """What a row holds: one example of full length, several shorter ones, or one shorter one and padding."""
    compiled: bool = True
    cudnn: bool = True
    """Whether torch may choose cuDNN's attention. If not, it chooses as with TORCH_CUDNN_SDPA_DEPRIORITIZED=1: its
    memory-efficient attention, because FlashAttention takes no mask."""

    @property
    def name(self) -> str:
        parts = ["bertwright", self.precision, self.layout, "" if self.compiled else "eager"]
        parts += [] if self.cudnn else ["without cuDNN"]
        return ", ".join(part for part in parts if part not in ("", "full"))

    @property
    def kernel(self) -> Kernel:
        return "varlen" if self.compiled and self.layout != "padded" else "padded"


def sides_of(case: Case, gpu: bool) -> list[Side]:
    """Our sides of a case: compiled, plus eager ones for comparison; only eager ones on a CPU."""
    layouts: tuple[Literal["full", "packed", "padded"], ...] = ("full",) if case.filled else ("packed", "padded")
    if not gpu:
        return [Side("fp32", layout, compiled=False) for layout in layouts]
    compiled = [Side("bf16", layout) for layout in layouts]
    eager = [Side("bf16", layout, compiled=False) for layout in layouts]
    return [*compiled, *eager, *([] if case.filled else [Side("bf16", "padded", compiled=False, cudnn=False)])]


@dataclass(frozen=True)
class Measured:
    """The measurements of one side on one case."""

    case: str
    side: str
    sequences: float
    """Per second."""
    tokens: float
    """Real tokens per second."""
    teraflops: float
    """10^12 operations of the model (`bertwright.model.flops`) per second, without padding."""
    share: float
    """`teraflops` over the measured rate of matrix products."""
    gigabytes: float
    """Peak device memory allocated for tensors."""


def loader(case: Case, packing: bool = False) -> Loader:
    return loader_of(case.workload, case.rows, max(200_000, 2 * case.batch * case.length), packing)


def our_steps(case: Case, side: Side, device: torch.device) -> Generator[tuple[int, int, float]]:
    """Train step after step, for ever; yields the sequences, real tokens and operations of each."""
    torch.manual_seed(1)
    network = BertModelConfig(size=case.size, dropout=0.1, pad_vocab_to_multiple_of=64).resolve(VOCABULARY.size, False)
    precision = build_precision(PRECISIONS[side.precision], device)
    model = PreTrainingModel(network, side.kernel).to(device).train()
    torch.backends.cuda.enable_cudnn_sdp(side.cudnn)
    graph = CompiledConfig() if side.compiled else EagerConfig()
    run_as(model, graph, device)
    trained = Trainee(model, PreTraining(False), Single(model, LambConfig()), Ranks(), precision, graph=graph)
    drawn = loader(case, side.layout == "packed")

    def fetch(step: int) -> tuple[list[MicroBatch], list[PackedBatch], StepCounts]:
        """Draw and prepare a step on the loader's thread, as a training does."""
        batches = drawn.step(step)
        return batches, [trained.prepare(batch, drawn.room) for batch in batches], drawn.counts(step)

    for (batches, prepared, counts), _ in prefetch(fetch, 0, 1 << 30):
        totals = {term: getattr(counts, what) for term, what in trained.objective.counted.items()}
        lengths = [batch.cu_seqlens[1:] - batch.cu_seqlens[:-1] for batch in batches]
        flops = sum(forward_flops(network, n, len(b.labels)) for n, b in zip(lengths, batches, strict=True))
        train_step(trained, (to_device(batch, device) for batch in prepared), totals, StepSettings(1e-4, 1))
        yield sum(map(len, lengths)), counts.tokens, STEP * flops


def measured(
    case: Case, side: str, steps: Generator[tuple[int, int, float]], device: torch.device, peak: float, number: int
) -> Measured:
    """Medians over `number` steps, after two steps that compile and warm up."""
    gpu = device.type == "cuda"
    wait: Callable[[], None] = torch.cuda.synchronize if gpu else lambda: None
    for _ in range(2):
        next(steps)
    if gpu:
        torch.cuda.reset_peak_memory_stats()
    rates = []
    for _ in range(number):
        wait()
        began = time.perf_counter()
        amounts = next(steps)
        wait()
        rates.append([amount / (time.perf_counter() - began) for amount in amounts])
    sequences, tokens, flops = (statistics.median(column) for column in zip(*rates, strict=True))
    memory = torch.cuda.max_memory_allocated() / 1e9 if gpu else 0.0
    return Measured(case.name, side, sequences, tokens, flops / 1e12, flops / 1e12 / peak, memory)


def matmul_rate(device: torch.device, side: int) -> float:
    """10^12 operations per second of products of two square matrices: bfloat16 on a GPU, float32 on a CPU."""
    low = torch.bfloat16 if device.type == "cuda" else torch.float32
    a, b = (torch.randn(side, side, device=device, dtype=low) for _ in range(2))
    times = []
    for _ in range(12):
        if device.type == "cuda":
            torch.cuda.synchronize()
        began = time.perf_counter()
        a @ b
        if device.type == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * side**3 / statistics.median(times[2:]) / 1e12


def table(rows: list[Measured]) -> str:
    """The measurements as a Markdown table, with each side's speed relative to the peer."""
    peers = {row.case: row for row in rows if row.side == "transformers"}
    lines = ["| case | side | sequences/s | real tokens/s | TFLOP/s | of products | GB | times the peer |"]
    lines.append("|---|---|---:|---:|---:|---:|---:|---:|")
    for row in rows:
        times = f"{row.tokens / peers[row.case].tokens:.2f}" if row.case in peers else ""
        figures = (
            f"{row.sequences:,.0f} | {row.tokens:,.0f} | {row.teraflops:.1f} | {row.share:.0%} | {row.gigabytes:.1f}"
        )
        lines.append(f"| {row.case} | {row.side} | {figures} | {times} |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Check, measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names of cases; none: all")
    parser.add_argument("--json", type=Path, help="write what was measured here, too")
    parser.add_argument("--side", default="", help="measure only sides with this in their names, such as eager")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="cases that a processor can do")
    parser.add_argument("--steps", type=int, default=5, help="steps that are timed")
    given = parser.parse_args(arguments)
    device, gpu = torch.device(given.device), given.device == "cuda"
    if gpu and not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here. Install a CUDA build of torch, or give --device cpu --tiny.")
    cases = [case for case in (TINY if given.tiny else CASES) if not given.cases or case.name in given.cases]
    rows: list[Measured] = []
    with torch_settings(0, deterministic=False):
        print(same_network(device), flush=True)
        peak = matmul_rate(device, MATMUL if gpu else 256)
        print(
            f"torch {torch.__version__}, {torch.cuda.get_device_name() if gpu else 'CPU'}, products {peak:.1f} TFLOP/s"
        )
        for case in cases:
            for side, steps in _sides(case, device, gpu, given.side):
                rows.append(_tried(case, side, steps, device, peak, given.steps))
                print(table(rows[-1:]).splitlines()[-1], flush=True)
                if given.json:  # after each side, so that a later failure loses nothing
                    found: dict[str, Any] = {"torch": torch.__version__, "products": peak}
                    given.json.write_text(json.dumps(found | {"rows": [asdict(row) for row in rows]}, indent=1))
                steps.close()
                del steps
                _cleared(gpu)
    print(f"\n{table(rows)}")


def _cleared(gpu: bool) -> None:
    """Undo everything a side leaves behind: networks, compiled code, recorded graphs, and the choice of attention."""
    gc.collect()
    torch.backends.cuda.enable_cudnn_sdp(True)
    if gpu:
        torch.compiler.reset()
        torch.cuda.empty_cache()


def _sides(
    case: Case, device: torch.device, gpu: bool, part: str
) -> Iterator[tuple[str, Generator[tuple[int, int, float]]]]:
    """The steps of our sides and of the peer whose names contain `part`."""
    for side in sides_of(case, gpu):
        if part in side.name:
            yield side.name, our_steps(case, side, device)
    if part in "transformers":
        yield "transformers", peer_steps(case.workload, case.rows, loader(case), device, compiled=gpu)


def _tried(
    case: Case, side: str, steps: Generator[tuple[int, int, float]], device: torch.device, peak: float, number: int
) -> Measured:
    """The measurements of a side; NaN if it fails, so that the other sides are still measured."""
    try:
        return measured(case, side, steps, device, peak, number)
    except Exception as error:  # compilers raise exceptions from class hierarchies of their own
        print(f"{case.name}, {side}: {str(error).splitlines()[0]}", flush=True)
        return Measured(case.name, side, *[float("nan")] * 5)


if __name__ == "__main__":
    main(sys.argv[1:])
