"""What commands leave undecided, as questions for the user, and mistakes in their numbers, as far as they show."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from bertwright.core.artifact import CONVERT, is_tensorflow_checkpoint
from bertwright.translate.command import Command, Key
from bertwright.translate.complete import PUBLISHED, UNSAID
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


def faults(draft: Draft, ranks: int | None) -> Iterator[str]:
    """Yield contradictions between a phase's numbers, or with the numbers its learning rate was published for."""
    for number, phase in enumerate(draft.phases):
        yield from _rate_falls_at_once(number, phase)
        if ranks is not None:
            yield from _another_batch(number, phase, ranks)
        yield from _few_predictions(number, phase)


def _rate_falls_at_once(number: int, phase: Mapping[str, Key]) -> Iterator[str]:
    warmup = phase["warmup"].value if "warmup" in phase else 0.0
    schedule = phase.get("schedule")
    chosen = schedule is not None and not schedule.why.startswith(UNSAID)
    if schedule is not None and chosen and schedule.value == "poly_nvidia" and 0 < warmup < 1:
        drop = 1 - (1 - warmup) ** 0.5
        yield (
            f"train.phases.{number}: NVIDIA's schedule drops by {drop:.1%} at the end of the warm-up, and its last "
            'update has rate 0. schedule = "poly" has neither fault.'
        )


def _another_batch(number: int, phase: Mapping[str, Key], ranks: int) -> Iterator[str]:
    published = PUBLISHED.get(phase["length"].value)
    if published and "batch" in phase and not phase["batch"].why.startswith(UNSAID):
        batch, rate, *_ = published
        given = phase["batch"].value
        # A tenth more or less is the published batch, rounded for a number of processes.
        if phase["learning_rate"].value == rate and not 0.9 < given / batch < 1.1:
            meant = max(1, round(batch * ranks / given))
            fits = f"; of {meant} processes it would be {given // ranks * meant:,}" if meant != ranks else ""
            yield (
                f"train.phases.{number}: the global batch of {ranks} processes is {given:,}{fits}. The rate {rate:g} "
                f"was published for {batch:,}."
            )


def _few_predictions(number: int, phase: Mapping[str, Key]) -> Iterator[str]:
    most = phase["masking.max_predictions"].value if "masking.max_predictions" in phase else 0
    length = phase["length"].value
    if 0 < most < 0.12 * length:
        yield (
            f"train.phases.{number}: at most {most} predictions of {length} tokens are {most / length:.1%}, not the "
            "requested 15 %; the published setting for 512 is 80."
        )
