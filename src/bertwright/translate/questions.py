"""What commands leave undecided, as questions for the user."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.artifact import CONVERT, is_tensorflow_checkpoint
from bertwright.translate.command import Command
from bertwright.translate.complete import UNSAID
from bertwright.translate.draft import Draft
from bertwright.translate.launcher_table import SRUN
from bertwright.translate.launchers import Launch
from bertwright.translate.place import open_keys, open_rendezvous, unknown_address

_TENSORFLOW_NAME = re.compile(r"\.ckpt(-\d+)?(\.index|\.meta)?$|/tf[12]_ckpt\b")


def questions(draft: Draft, trained: list[Command], launch: Launch) -> Iterator[str]:
    """Yield what the commands leave undecided."""
    if meeting := open_rendezvous(launch):
        unset = unknown_address(launch)
        why = f"the variable in {unset} is not set here" if unset else "no option states the address of the first one"
        yield f"rendezvous of the {launch.nodes} nodes: {why}. Add it to the place: --set rendezvous={meeting}."
    if "compute" in open_keys(launch):
        unset = next((f"has {each.said}" for each in launch.stated if each.key == "compute"), "names no compute")
        yield (
            f"The job file {unset}. Add a cluster of your workspace to the place, --set compute=CLUSTER, or the size "
            "of serverless machines, such as --set vm_size=Standard_ND96asr_v4."
        )
    if launch.uncounted:
        # A Slurm place starts one rank for each GPU.
        target, number = ("slurm", "gpus") if launch.by == SRUN else ("torchrun", "ranks")
        yield (
            f"{launch.uncounted.option} starts {launch.uncounted.starts}. Start the run with as many ranks: bertwright "
            f"launch {target} RECIPE --set {number}=NUMBER."
        )
    if len(trained) == 1 and trained[0]["phase2"] and "train.init_from" not in draft.keys:
        yield (
            "Phase 2 continues with the weights and moments of phase 1: set train.init_from to the train folder of "
            "the run that trained phase 1, or translate both commands together (--script) into two phases of one "
            "run."
        )
    if (start := draft.value("train.init_from")) and is_tensorflow_checkpoint(Path(start)):
        yield f"train.init_from = {start} is a TensorFlow checkpoint. {CONVERT}"
    elif start and _TENSORFLOW_NAME.search(start):
        yield f"train.init_from = {start} is named like a TensorFlow checkpoint. {CONVERT}"
    elif start and not Path(start).is_dir():
        yield (
            f"train.init_from = {start} is not a folder on this machine. Give the train folder of a run, a "
            "checkpoint of one, or a folder of Hugging Face; pickles (.pt, .bin) are not read."
        )
    language = draft.keys.get("corpus.language")
    if language is not None and language.why == UNSAID:
        yield f"corpus.language = {language.value}: no command says the language of the texts. Set its code."
    for name, key in (*draft.keys.items(), *(item for phase in draft.phases for item in phase.items())):
        if "$" in str(key.value):
            yield f"{name} = {key.value}: the variable is not set here. Write its value."
