"""Translate how a command was started into a place of `bertwright launch`."""

from __future__ import annotations

import re
from typing import Any

from bertwright.translate.azure_job import AZUREML
from bertwright.translate.launchers import Launch

OF_SLURM = {
    "p": "partition",
    "partition": "partition",
    "t": "time",
    "time": "time",
    "A": "account",
    "account": "account",
    "c": "cpus",
    "cpus_per_task": "cpus",
    "mem": "memory",
}
"""Options of srun, and the keys of a Slurm place that correspond to them."""
OF_AZUREML = {
    "compute": re.compile(r"[A-Za-z][A-Za-z0-9-]{1,30}[A-Za-z0-9]"),
    "vm_size": re.compile(r"\w+"),
    "shm_size": re.compile(r"[1-9]\d*[bkmg]"),
    "timeout": re.compile(r"\d+"),
    "experiment": re.compile(r"[\w-]+"),
}
"""Settings of an Azure job file that an Azure place takes over if they have this form: published files contain
placeholders such as "<Enter the name of your compute here>" instead."""
ADDRESS = {"master_addr", "main_process_ip"}
PORT = {"master_port", "main_process_port"}


def place_of(launch: Launch, gpus: bool) -> dict[str, Any]:
    """Return the settings of a place that starts as many processes, on GPUs if `gpus`; empty for a single process, and
    for a number that only the machine knows."""
    if launch.uncounted:
        return {}
    said = dict(launch.machine)
    if launch.by == "srun":
        alone = launch.processes == 1 and gpus
        # The number per node may include the GPU type, as in v100:8.
        number = (_number(said.get("gpus_per_node", "").rpartition(":")[2]) or 1) if alone else launch.processes
        values: dict[str, Any] = {"kind": "slurm", "nodes": launch.nodes, "gpus" if gpus else "ranks": number}
        held = {OF_SLURM[option]: value for option, value in said.items() if option in OF_SLURM}
        cpus = _number(held.pop("cpus", ""))
        return values | held | ({"cpus": cpus} if cpus else {})
    if launch.by == AZUREML:
        values = {"kind": "azureml", "nodes": launch.nodes, "ranks": launch.processes}
        return values | {k: int(v) if k == "timeout" else v for k, v in said.items() if _azureml_holds(k, v)}
    if launch.ranks == 1:
        return {}
    values = {"kind": "torchrun", "nodes": launch.nodes, "ranks": launch.processes}
    if launch.nodes > 1:
        address = next((said[option] for option in said if option in ADDRESS), "node1")
        port = next((said[option] for option in said if option in PORT), "29500")
        values["rendezvous"] = f"{address}:{port}"
    return values


def _number(text: str) -> int | None:
    """Return a decimal number; None for anything else, such as a variable of the job."""
    return int(text) if text.isdecimal() else None


def _azureml_holds(option: str, value: str) -> bool:
    return option in OF_AZUREML and OF_AZUREML[option].fullmatch(value) is not None


def unplaced(launch: Launch) -> list[str]:
    """Return the launcher options that no key of the place takes over."""
    if launch.by == AZUREML:
        return [f"{option} {value}" for option, value in launch.machine if not _azureml_holds(option, value)]
    known = {*ADDRESS, *PORT} | (set(OF_SLURM) if launch.by == "srun" else set())
    left = [pair for pair in launch.machine if pair[0] not in known or _unread(*pair)]
    return [" ".join(pair).rstrip() for pair in left]


def _unread(option: str, value: str) -> bool:
    """Whether the value is a number of CPUs that only the job knows."""
    return OF_SLURM.get(option) == "cpus" and _number(value) is None
