"""What names machines: clusters of a workspace, and sizes."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator

from bertwright.core.config import Section
from bertwright.launch.azureml.sizes import checked_size


def _compute(name: str) -> str:
    if name and not re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]", name):
        raise ValueError("names of clusters are letters, digits and hyphens, such as gpu-cluster")
    return name


VmSize = Annotated[str, AfterValidator(checked_size)]
ComputeName = Annotated[str, AfterValidator(_compute)]


class PreparingMachine(Section):
    """The machine that makes corpus, vocabulary and examples."""

    compute: ComputeName = ""
    """The cluster; "": serverless."""
    vm_size: VmSize = ""
    """The size of the machine; a cluster has its own."""
