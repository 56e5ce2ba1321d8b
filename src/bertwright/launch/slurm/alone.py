"""Single-process jobs before and after training, and what each requests from Slurm."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bertwright.core.config import Section


def _form(pattern: str, forms: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"write it like {forms}")
        return text

    return AfterValidator(check)


Time = Annotated[
    str, _form(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}", '"90" (minutes), "12:00:00" or "2-12:00:00" (days)')
]
Memory = Annotated[str, _form(r"\d+[KMGT]?", '"64G", "500M"')]


class Prepare(Section):
    """Resources of each job that builds the corpus, the vocabulary and the examples."""

    tasks: int = Field(4, ge=1, le=10_000)
    """Elements of the job arrays that share the corpus and the examples; 1: one job prepares everything."""
    cpus: int = Field(4, ge=1)
    """CPUs of each element."""
    memory: Memory = "4G"
    """Memory of each element; units K, M, G, T."""
    time: Time = "12:00:00"
    """Time limit of each element, such as "12:00:00"."""
    partition: str = ""
    """Partition of these jobs; "": that of training."""


class Finish(Section):
    """Resources of the job that scores, exports and reports. It runs on the partition of training, with one GPU if
    training had any."""

    cpus: int = Field(4, ge=1)
    """CPUs of the job."""
    memory: Memory = "16G"
    """Memory of the job; units K, M, G, T. It holds the model, a copy to compare the export with, and libraries: 16G is
    enough for a BERT-large."""
    time: Time = "12:00:00"
    """Time limit of the job, such as "12:00:00"."""


def seconds_of(time: str) -> int:
    """Return the length of a time limit in Slurm's notation; 0: no limit."""
    days, dash, rest = time.rpartition("-")
    amounts = [int(amount) for amount in rest.split(":")]
    # After days the first amount is hours; a single one is minutes, and the first of two is minutes too.
    hours = amounts if dash or len(amounts) == 3 else [0, *amounts]
    return sum(amount * unit for amount, unit in zip([int(days or 0), *hours], (86400, 3600, 60, 1), strict=False))


def alone(given: Prepare | Finish, partition: str) -> list[str]:
    """Return the options of sbatch for one process; `partition` "": the cluster's default."""
    where = [f"--partition={partition}"] if partition else []
    return [f"--time={given.time}", f"--cpus-per-task={given.cpus}", f"--mem={given.memory}", *where]
