"""One side of a benchmark in its own process: it reads a number of steps, runs them and reports the time of each.

python -m bertwright.bench.worker SIDE WORKLOAD TRAINING      (TRAINING: the fields of `Training` as a JSON object)
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from typing import cast

from bertwright.bench.workload import WORKLOADS, Name, Side, Step, Training


def main(side: str, workload: str, training: str) -> None:
    """Answer each line of standard input, a number of steps, with a line of JSON: the fields of each `Step`."""
    take = take_of(cast(Side, side), cast(Name, workload), Training(**json.loads(training)))
    out, sys.stdout = sys.stdout, sys.stderr  # keep library output out of the answers
    for line in sys.stdin:
        print(json.dumps(take(int(line))), file=out, flush=True)


def take_of(side: Side, name: Name, training: Training) -> Callable[[int], list[Step]]:
    """The function that runs n steps of a side; loads only the library of that side."""
    workload = WORKLOADS[name]
    if side == "bertwright":
        from bertwright.bench.bertwright_side import bertwright_side

        return bertwright_side(workload, training)
    from bertwright.bench.trainer_side import trainer_side

    blocks: dict[int, Iterator[list[Step]]] = {}

    def block(number: int) -> list[Step]:
        # The Trainer needs its number of steps beforehand, so warm-up and measured blocks have a trainer each.
        if number not in blocks:
            blocks[number] = trainer_side(workload, training, side == "trainer-tuned", number)
        return next(blocks[number])

    return block


if __name__ == "__main__":
    main(*sys.argv[1:])
