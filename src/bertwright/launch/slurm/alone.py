"""Jobs of one process, before training and after it: what each asks Slurm for."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from bertwright.core.config import Section


def _form(pattern: str, forms: str) -> AfterValidator:
    def check(text: str) -> str:
        if not re.fullmatch(pattern, text):
            raise ValueError(f"Slurm writes it as {forms}")
        return text

    return AfterValidator(check)


Time = Annotated[
    str, _form(r"\d+(:\d\d){0,2}|\d+-\d+(:\d\d){0,2}", '"90" (minutes), "12:00:00" or "2-12:00:00" (days)')
]
Memory = Annotated[str, _form(r"\d+[KMGT]?", '"64G", "500M"')]


class Prepare(Section):
    """What each job has that makes corpus, vocabulary and examples."""

    tasks: int = Field(4, ge=1, le=10_000)
    """Elements of the job arrays that share the corpus, and the examples; 1: one job prepares everything."""
    cpus: int = Field(4, ge=1)
    """Processors of each element."""
    memory: Memory = "4G"
    """Memory of each element; K, M, G, T."""
    time: Time = "12:00:00"
    """Its time limit."""
    partition: str = ""
    """Its partition; "": that of training."""


class Finish(Section):
    """What the job has that scores, exports and reports, where training ran: on its partition, with one GPU if it had
    any."""

    cpus: int = Field(4, ge=1)
    """Its processors."""
    memory: Memory = "16G"
    """Its memory; K, M, G, T. It is for the model, a copy that the export is compared with, and libraries: 16G for a
    BERT-large."""
    time: Time = "12:00:00"
    """Its time limit."""


def alone(given: Prepare | Finish, partition: str) -> list[str]:
    """Options of sbatch for one process; `partition` "": the cluster's own choice."""
    where = [f"--partition={partition}"] if partition else []
    return [f"--time={given.time}", f"--cpus-per-task={given.cpus}", f"--mem={given.memory}", *where]
