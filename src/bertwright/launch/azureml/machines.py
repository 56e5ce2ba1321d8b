"""Names of machines: clusters of a workspace, and VM sizes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from bertwright.core.config import Section
from bertwright.launch.azureml.sizes import checked_size


def _compute(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]", name):
        raise ValueError(
            "the name of a cluster has 3 to 32 letters, digits and hyphens, begins with a letter and does not end with "
            "a hyphen, such as gpu-cluster"
        )
    return name


VmSize = Annotated[str, AfterValidator(checked_size)]
ComputeName = Annotated[str, AfterValidator(_compute)]


class PreparingMachine(Section):
    """The machine that builds the corpus, the vocabulary and the examples."""

    compute: ComputeName = ""
    """Name of the cluster; "": serverless."""
    vm_size: VmSize = ""
    """Size of the serverless machine; a cluster has its own size."""
