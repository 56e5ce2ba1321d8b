"""Training speed on one GPU, compared with the same network in transformers, on a machine with torch for CUDA.

    python benchmarks/gpu.py [--budget SECONDS] [--profile] [--json FILE] [--side PART] [--device cpu --tiny] [CASE ...]

Needs numpy, pydantic, safetensors and transformers besides torch; bertwright itself need not be installed. First checks
that both sides compute the same loss. Then fills empty caches of compiled kernels, in processes of their own: the first
alone, which gives the time to the first step, the others at once. Then times our complete step, including loader,
clipping and optimizer, in bfloat16, and theirs (SDPA, torch.compile, bfloat16, fused AdamW), fed with batches that are
already on the device; and then other settings of ours, in the order of gpu_cases.py. Each is measured in a process that
is started anew after an error, and the file has what was measured so far.

`--budget` leaves out what would not fit into so many seconds, judging by what was measured before. `--profile` adds
where the time of a step goes, by the names of kernels. `--side eager` measures only the sides with that text in their
names. `--cold` fills no caches first. `--device cpu --tiny` runs everything at a size that a CPU can handle; its
figures mean nothing.
"""

import argparse
import json
import math
import os
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))
from bertwright.core.files import write_atomic
from bertwright.core.resources import default_workers, memory_size
from gpu_cases import CASES, TINY, Case, Item, items
from gpu_measure import PROFILED, WARM_UP, Measured, kinds_table, rates_table
from gpu_worker import Worker, WorkerError, measure_request, warm

WARM_SHARE = 0.4
"""Of the budget, at most, for filling caches."""


@dataclass
class Pace:
    """How long items take, by those before them."""

    peak: float
    """10^12 operations per second of matrix products."""
    first: float = 60.0
    """Seconds to a first step, at most so far; at the beginning a guess."""
    share: float = 0.2
    """Lowest share of `peak` so far; at the beginning a guess."""
    _learned: bool = False

    def expect(self, case: Case, steps: int) -> float:
        """Seconds for a case."""
        return self.first + steps * case.operations / (1e12 * self.peak * self.share)

    def learn(self, row: Measured) -> None:
        """Take a measurement into account."""
        self.first = max(row.first_step, self.first if self._learned else 0.0)
        self.share = min(row.share, self.share if self._learned else math.inf)
        self._learned = True


@dataclass
class Found:
    """What was measured so far."""

    facts: dict[str, Any] = field(default_factory=dict)
    rows: list[Measured] = field(default_factory=list)
    cold: dict[str, float] = field(default_factory=dict)
    """Seconds to the first step with empty caches, by case and side."""
    failed: dict[str, str] = field(default_factory=dict)
    """Why an item has no row, by case and side."""

    def write(self, file: Path | None) -> None:
        if file:
            found = {**self.facts, "rows": [asdict(row) for row in self.rows], "first_steps_cold": self.cold}
            write_atomic(file, json.dumps(found | {"failed": self.failed}, indent=1).encode())


def main(arguments: list[str]) -> None:
    """Check, measure and print."""
    given = _parser().parse_args(arguments)
    began = time.perf_counter()
    gpu = given.device == "cuda"
    if gpu and not torch.cuda.is_available():
        raise SystemExit("torch sees no GPU here. Install a CUDA build of torch, or give --device cpu --tiny.")
    cases = [case for case in (TINY if given.tiny else CASES) if not given.cases or case.name in given.cases]
    chosen = list(items(cases, gpu, given.side))
    found = Found()
    with tempfile.TemporaryDirectory() as caches:
        # Empty, so that the time to a first step is that of a new machine; of compiled code and of our own kernels.
        os.environ.update(TORCHINDUCTOR_CACHE_DIR=caches, TRITON_CACHE_DIR=f"{caches}/triton")
        worker = Worker(given.device)
        try:
            begin = worker.ask({"do": "begin", "families": sorted({case.family for case in cases})}, 300)
        except WorkerError as error:
            raise SystemExit(str(error)) from error
        print("\n".join(begin["same"]))
        print(f"torch {torch.__version__}, {begin['name']}, products {begin['products']:.1f} TFLOP/s", flush=True)
        found.facts = {"torch": torch.__version__, "device": begin["name"], "products": begin["products"]}
        if gpu and not given.cold:
            # The first process may keep only what it holds: nothing else computes meanwhile.
            worker.close()
            limit = WARM_SHARE * given.budget if given.budget else math.inf
            compiled = [item for item in chosen if item.side.compiled]
            found.cold = warm(
                compiled, given.device, default_workers(), memory_size(), begin["free"], min(limit, 3600), _say
            )
        _measure_all(chosen, worker, found, given, began)
        worker.close()
    print(f"\n{rates_table(found.rows, found.cold)}\n\n{kinds_table(found.rows)}".rstrip())


def _measure_all(chosen: list[Item], worker: Worker, found: Found, given: argparse.Namespace, began: float) -> None:
    pace = Pace(found.facts["products"])
    steps = WARM_UP + given.steps + (2 * PROFILED if given.profile else 0)
    for item in chosen:
        name = f"{item.case.name}, {item.side.name}"
        expected = pace.expect(item.case, steps)
        left = given.budget - (time.perf_counter() - began) if given.budget else math.inf
        if expected > left:
            found.failed[name] = f"left out: it would take about {expected:.0f} s, and {max(0, left):.0f} s are left"
        else:
            try:
                request = measure_request(item, pace.peak, given.steps, given.profile)
                row = Measured(**worker.ask(request, min(left, 120 + 2 * expected)))
                pace.learn(row)
                found.rows.append(row)
                print(rates_table([row], found.cold).splitlines()[-1], flush=True)
            except WorkerError as error:
                found.failed[name] = str(error)
        if name in found.failed:
            print(f"{name}: {found.failed[name]}", flush=True)
        found.write(given.json)


def _say(line: str) -> None:
    print(line, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", help="names of cases; none: all")
    parser.add_argument("--budget", type=float, default=0.0, help="seconds for everything together; 0: no limit")
    parser.add_argument("--profile", action="store_true", help="show where the time of a step goes, too")
    parser.add_argument("--json", type=Path, help="write what was measured here, too, after each side")
    parser.add_argument("--side", default="", help="measure only sides with this in their names, such as eager")
    parser.add_argument("--cold", action="store_true", help="fill no caches beforehand")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--tiny", action="store_true", help="cases that a processor can do")
    parser.add_argument("--steps", type=int, default=5, help="steps that are timed")
    return parser


if __name__ == "__main__":
    main(sys.argv[1:])
