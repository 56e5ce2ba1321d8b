"""Translate how a command was started into a place of `bertwright launch`."""

from __future__ import annotations

import re
from collections.abc import Iterator

from bertwright.translate.azure_job import AZUREML
from bertwright.translate.command import Key
from bertwright.translate.launcher_table import SRUN, dashed
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
_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
"""Slurm reads 180GB and 180g like 180G."""


def place_of(launch: Launch, gpus: bool) -> dict[str, Key]:
    """Return the settings of a place that starts as many processes, on GPUs if `gpus`; empty for a single process, and
    for a number that only the machine knows."""
    if launch.uncounted:
        return {}
    if launch.by == SRUN:
        counts = {"kind": "slurm", "nodes": launch.nodes, **_per_node(launch, gpus)}
    elif launch.by == AZUREML:
        counts = {"kind": "azureml", "nodes": launch.nodes, "ranks": launch.processes}
    elif launch.ranks == 1:
        return {}
    else:
        counts = {"kind": "torchrun", "nodes": launch.nodes, "ranks": launch.processes}
    keys = {name: Key(name, value) for name, value in counts.items()} | {key.key: key for key in _held(launch)}
    if counts["kind"] == "torchrun" and launch.nodes > 1:
        said = dict(launch.machine)
        address = next((said[option] for option in said if option in ADDRESS), "node1")
        port = next((said[option] for option in said if option in PORT), "29500")
        keys["rendezvous"] = Key("rendezvous", f"{address}:{port}")
    return keys


def unplaced(launch: Launch) -> list[str]:
    """Return the launcher options that no key of the place takes over."""
    held = {key.why for key in _held(launch)}
    known = set() if launch.by == AZUREML else {*ADDRESS, *PORT}
    left = [pair for pair in launch.machine if pair[0] not in known and _typed(launch, *pair) not in held]
    return [" ".join(pair).rstrip() for pair in left]


def _per_node(launch: Launch, gpus: bool) -> dict[str, int]:
    """Return the GPUs, or without them the ranks, of each node of Slurm."""
    if not gpus:
        return {"ranks": launch.processes}
    # A single process may use several GPUs. Their number may include the type, as in v100:8.
    said = dict(launch.machine).get("gpus_per_node", "").rpartition(":")[2]
    return {"gpus": (_number(said) or 1) if launch.processes == 1 else launch.processes}


def _held(launch: Launch) -> Iterator[Key]:
    """Yield the keys that options of the launcher become, each with the option that it comes from."""
    for option, text in launch.machine:
        name = OF_SLURM.get(option) if launch.by == SRUN else option
        if name and (value := _value(launch.by, name, text)) is not None:
            yield Key(name, value, _typed(launch, option, text))


def _value(by: str, name: str, text: str) -> str | int | None:
    """Return the value of a key that stands for the text of an option; None if the place cannot hold it."""
    if by == AZUREML:
        holds = name in OF_AZUREML and OF_AZUREML[name].fullmatch(text)
        return None if not holds else int(text) if name == "timeout" else text
    if by != SRUN or "$" in text:  # only the job knows the value of a variable
        return None
    if name == "cpus":
        return _number(text)
    if name == "memory" and (size := _MEMORY.fullmatch(text)):
        return size[1] + size[2].upper()
    return text


def _typed(launch: Launch, option: str, text: str) -> str:
    """Return an option and its value as typed."""
    return f"{option} {text}" if launch.by == AZUREML else f"{dashed(option).replace('_', '-')} {text}"


def _number(text: str) -> int | None:
    """Return a decimal number; None for anything else, such as a variable of the job."""
    return int(text) if text.isdecimal() else None
