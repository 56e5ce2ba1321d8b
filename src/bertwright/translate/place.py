"""Translate how a command was started, and what a job file of Azure ML states, into a place of `bertwright launch`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bertwright.core.dotted import texts
from bertwright.translate.azure_job import AZUREML
from bertwright.translate.command import Key
from bertwright.translate.launchers import SRUN, Launch, Statement, dashed

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
    "q": "qos",
    "qos": "qos",
}
"""Options of srun, and the keys of a Slurm place that correspond to them."""
OF_TORCHRUN = {"max_restarts": "restarts"}
"""The same of torchrun."""
ADDRESS = {"master_addr", "main_process_ip"}
PORT = {"master_port", "main_process_port"}
MEETING = {*ADDRESS, *PORT, "rdzv_endpoint"}
"""Options that say where several nodes meet: the rendezvous of a torchrun place; Slurm and Azure decide it themselves.
"""
_MEMORY = re.compile(r"(\d+)([KMGT]?)B?", re.IGNORECASE)
"""Slurm reads 180GB and 180g like 180G."""


def place_of(launch: Launch, gpus: bool, recipe: Mapping[str, Any]) -> dict[str, Key]:
    """Return the settings of a place that starts as many processes, on GPUs if `gpus`, and has the data that `recipe`
    reads; empty for a single process, and for a number that only the machine knows."""
    if not _has_place(launch):
        return {}
    if launch.by == SRUN:
        counts = {"kind": "slurm", "nodes": launch.nodes, **_per_node(launch, gpus)}
    else:
        kind = "azureml" if launch.by == AZUREML else "torchrun"
        counts = {"kind": kind, "nodes": launch.nodes, "ranks": launch.processes}
    keys = {name: Key(name, value) for name, value in counts.items()} | {key.key: key for key in _launcher_keys(launch)}
    if counts["kind"] == "torchrun" and launch.nodes > 1:
        keys |= {key.key: key for key in _rendezvous(launch)}
    return keys | (azure_keys(launch.stated, recipe) if launch.by == AZUREML else {})


def open_keys(launch: Launch) -> dict[str, str]:
    """Return the keys that a place needs and nothing states, each with the form of its value."""
    rendezvous = open_rendezvous(launch)
    machine = launch.by == AZUREML and _has_place(launch) and needs_machine(launch.stated)
    return ({"rendezvous": rendezvous} if rendezvous else {}) | ({"compute": "CLUSTER"} if machine else {})


def open_rendezvous(launch: Launch) -> str:
    """Return the form of the rendezvous that a place needs and no option states; empty if it needs none."""
    meets = _has_place(launch) and launch.by not in (SRUN, AZUREML) and launch.nodes > 1
    return f"ADDRESS:{_port(launch)}" if meets and not [*_rendezvous(launch)] else ""


def unknown_address(launch: Launch) -> str:
    """Return the options that would state where the nodes meet if their variables were set; empty: there are none."""
    options = {*ADDRESS, "rdzv_endpoint"}
    return ", ".join(_typed(launch, *pair) for pair in launch.machine if pair[0] in options and "$" in pair[1])


def _rendezvous(launch: Launch) -> Iterator[Key]:
    """Yield where several nodes meet, if options of the launcher give an address."""
    meeting = [pair for pair in launch.machine if pair[0] in MEETING]
    why = ", ".join(_typed(launch, *pair) for pair in meeting)
    given = {option: text for option, text in meeting if text and "$" not in text}
    if endpoint := given.get("rdzv_endpoint"):
        # The port that torchrun takes if none is given.
        yield Key("rendezvous", endpoint if ":" in endpoint else f"{endpoint}:29400", why)
    elif address := next((text for option, text in given.items() if option in ADDRESS), ""):
        yield Key("rendezvous", f"{address}:{_port(launch)}", why)


def _port(launch: Launch) -> str:
    return next((text for option, text in launch.machine if option in PORT and "$" not in text), "29500")


def unplaced_settings(launch: Launch, recipe: Mapping[str, Any]) -> list[str]:
    """Return what no key of the place takes over: options of launchers, and what is stated outside of the command, each
    with the reason."""
    held = {key.why for key in _launcher_keys(launch)} if _has_place(launch) else set()
    known = set() if launch.by == AZUREML else MEETING
    # The nodes of a torchrun place always meet by c10d.
    left = [pair for pair in launch.machine if pair[0] not in known and pair != ("rdzv_backend", "c10d")]
    if launch.by == SRUN and _has_place(launch):
        left = [pair for pair in left if _gpus(*pair) != _per_node(launch, gpus=True)["gpus"]]
    options = [" ".join(pair).rstrip() for pair in left if _typed(launch, *pair) not in held]
    return [*options, *dict.fromkeys(explain_unplaced(launch.stated, recipe))]


def _has_place(launch: Launch) -> bool:
    """Whether there is a place to start it at."""
    return not launch.uncounted and (launch.by in (SRUN, AZUREML) or launch.ranks != 1)


def _per_node(launch: Launch, gpus: bool) -> dict[str, int]:
    """Return the GPUs, or without them the ranks, of each node of Slurm."""
    if not gpus:
        return {"ranks": launch.processes}
    # A single process may use several GPUs.
    numbers = (number for pair in launch.machine if (number := _gpus(*pair)))
    return {"gpus": next(numbers, 1) if launch.processes == 1 else launch.processes}


def _gpus(option: str, text: str) -> int | None:
    """Return the GPUs of each node that an option of Slurm states; their number may follow the type, as in v100:8."""
    wanted = option == "gpus_per_node" or (option == "gres" and text.startswith("gpu:"))
    return _number(text.rpartition(":")[2]) if wanted else None


def _launcher_keys(launch: Launch) -> Iterator[Key]:
    """Yield the keys that options of the launcher become, each with the option that it comes from."""
    names = {SRUN: OF_SLURM, AZUREML: {}}.get(launch.by, OF_TORCHRUN)
    for option, text in launch.machine:
        name = names.get(option)
        if name and (value := _value(name, text)) is not None:
            yield Key(name, value, _typed(launch, option, text))


def _value(name: str, text: str) -> str | int | None:
    """Return the value of a key that stands for the text of an option; None if the place cannot hold it."""
    if "$" in text:  # only the job knows the value of a variable
        return None
    if name in ("cpus", "restarts"):
        return _number(text)
    if name == "memory" and (size := _MEMORY.fullmatch(text)):
        return size[1] + size[2].upper()
    return text


def _typed(launch: Launch, option: str, text: str) -> str:
    """Return an option and its value as typed."""
    name = dashed(option)
    return f"{name.replace('_', '-') if launch.by == SRUN else name} {text}"


def _number(text: str) -> int | None:
    """Return a decimal number; None for anything else, such as a variable of the job."""
    return int(text) if text.isdecimal() else None


_MACHINES = {"compute", "vm_size"}
"""Keys of which a place needs one."""


def azure_keys(stated: Sequence[Statement], recipe: Mapping[str, Any]) -> dict[str, Key]:
    """Return the keys of the place, each with the setting that it comes from; of several values the last one counts."""
    keys = {each.key: Key(each.key, each.value, each.setting) for each in stated if each.key and each.value is not None}
    if keys.pop("inputs", None):
        inputs: dict[str, dict[str, str]] = {}
        for label, data in (found for each in stated for found in _inputs(each, recipe)):
            if data not in inputs.values():
                alike = sum(name.startswith(label) for name in inputs)
                inputs[f"{label}_{alike + 1}" if alike else label] = data
        keys |= {"inputs": Key("inputs", inputs, "inputs")} if inputs else {}
    return keys


def needs_machine(stated: Sequence[Statement]) -> bool:
    """Whether neither a cluster nor the size of serverless machines is known."""
    return not any(each.key in _MACHINES and each.value is not None for each in stated)


def explain_unplaced(stated: Sequence[Statement], recipe: Mapping[str, Any]) -> Iterator[str]:
    """Yield what no key of the place holds, with the reason."""
    for each in stated:
        if each.left:
            yield each.left
        elif each.key == "inputs" and not [*_inputs(each, recipe)]:
            yield f"{each.setting}: nothing in the recipe reads it"


def _inputs(stated: Statement, recipe: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the name of an input, and the input of a place for each key of the recipe that reads its data or files
    below it."""
    for label, data in stated.value.items() if stated.key == "inputs" else ():
        for key, text in texts(recipe):
            below = text.removeprefix(data["path"])
            if below != text and (not below or below.startswith("/") or data["path"].endswith("/")):
                yield label, {"key": key, **data, **({"below": below.strip("/")} if below.strip("/") else {})}
