"""One side of a comparison, in a process of its own: told a number of steps, it does them and says what each took.

python -m bertwright.bench.side SIDE WORKLOAD DROPOUT PRECISION THREADS
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from typing import cast

from bertwright.bench.workload import WORKLOADS, Name

Times = list[tuple[float, float]]
"""Seconds and processor seconds of each step."""


def main(side: str, workload: str, dropout: str, precision: str, threads: str) -> None:
    """Answer each line of standard input, a number of steps, with a line of JSON."""
    take = _side(side, cast(Name, workload), float(dropout), precision == "bf16", int(threads))
    out, sys.stdout = sys.stdout, sys.stderr  # what libraries print is no answer
    for line in sys.stdin:
        print(json.dumps(take(int(line))), file=out, flush=True)


def _side(side: str, name: Name, dropout: float, bf16: bool, threads: int) -> Callable[[int], Times]:
    workload = WORKLOADS[name]
    if side == "bertwright":
        from bertwright.bench.ours import ours

        steps = ours(workload, dropout, bf16, threads)
        return lambda number: list(islice(steps, number))
    from bertwright.bench.peer import trainer

    blocks: dict[int, Iterator[Times]] = {}

    def block(number: int) -> Times:
        if number not in blocks:
            blocks[number] = trainer(workload, dropout, bf16, threads, side == "trainer-tuned", number)
        return next(blocks[number])

    return block


if __name__ == "__main__":
    main(*sys.argv[1:])
