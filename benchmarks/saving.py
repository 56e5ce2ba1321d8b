"""How long training waits for a checkpoint: when it is written synchronously, and in parallel to training.

    python benchmarks/saving.py [--parameters 110e6] [--saves 3] [--device cpu|cuda] [--folder FOLDER]

The state is synthetic: weights and two moments of the given number of parameters, in tensors of at most 16 million.
Both ways save several times; the first save in parallel, which allocates its memory, is reported separately. The folder
(by default a temporary one) should be on the disk that a training would write to.
"""

import argparse
import statistics
import tempfile
import time
from functools import partial
from pathlib import Path

import torch

from bertwright.core.config import Identity
from bertwright.train.checkpoints import checkpoint
from bertwright.train.checkpoints.store import Snapshot, Writer
from bertwright.train.state import State

LARGEST = 2**24


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parameters", type=float, default=110e6)
    parser.add_argument("--saves", type=int, default=3)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--folder", type=Path)
    given = parser.parse_args()
    tensors = made_up(int(given.parameters), given.device)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        whole, waited = (waits(Path(folder), tensors, given.saves, beside) for beside in (False, True))
    save, later = statistics.median(whole), statistics.median(waited[1:])
    print(f"a checkpoint of {given.parameters:,.0f} parameters takes {save:.2f} s")
    print(
        f"written beside training: {waited[0]:.2f} s are waited the first time, then {later:.3f} s ({later / save:.1%})"
    )


def made_up(parameters: int, device: str) -> Snapshot:
    """Synthetic weights and two moments of `parameters` parameters."""
    sizes = [min(LARGEST, parameters - begun) for begun in range(0, parameters, LARGEST)]
    weights = {f"w{i}": torch.randn(size, device=device) for i, size in enumerate(sizes)}
    moments = {f"{m}.{name}": torch.randn_like(w) for name, w in weights.items() for m in ("exp_avg", "exp_avg_sq")}
    return Snapshot(weights, moments | {"step": torch.tensor(1)}, None)


def waits(folder: Path, tensors: Snapshot, saves: int, beside: bool) -> list[float]:
    """Seconds that training waits for each save, of at least two; with `beside`, each starts after the previous one
    ends."""
    seconds = []
    with Writer(beside) as writer:
        for step in range(max(2, saves)):
            began = time.perf_counter()
            writer.write(partial(save, folder, step), tensors)
            seconds.append(time.perf_counter() - began)
            writer.wait()
    return seconds


def save(folder: Path, step: int, tensors: Snapshot) -> None:
    """Write one checkpoint and remove the previous ones."""
    identity = Identity("checkpoint", 1, {}, {})
    state = State(total_steps=step)
    path = checkpoint.save(folder, identity, state, tensors)
    checkpoint.prune(folder, 1, path)


if __name__ == "__main__":
    main()
