"""Complete a recipe with what no command sets, and combine the data of one command with the phases of another.

What only the user can decide becomes a question; contradictions between the numbers of a phase become remarks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from bertwright.core.artifact import is_tensorflow_checkpoint
from bertwright.translate.command import ASSUMED, PHASE, Command, Key
from bertwright.translate.draft import OPEN_SOURCE, Draft
from bertwright.translate.launchers import SRUN, Launch
from bertwright.translate.place import open_keys, open_rendezvous, unknown_address

NOT_SET = "not set by the commands"
# NVIDIA's published phases (configurations.yml): length to batch, learning rate, share of warm-up and steps.
PUBLISHED = {128: (65536, 6e-3, 0.2843, 7038), 512: (32768, 4e-3, 0.128, 1563)}

DROPPED = {
    ASSUMED: "the vocabulary is that of the commands that make the data",
    "vocab.file": "the commands train the vocabulary",
    "vocab.": "no command trains a vocabulary",
    "train.init_": "a phase goes on from the one before it",
    f"{PHASE}data": "the run makes these examples itself from corpus.source",
    f"{PHASE}masking.": "the files already have masks, which are kept",
    "model.size": "model.config sets the network",
    "optim.bias_correction": "only LAMB has it",
}
"""Why a key that an option was translated to is missing from the recipe, by the key's prefix."""


def complete(draft: Draft) -> None:
    """Complete the draft: one corpus or data for each phase, a vocabulary, a network, phases."""
    _vocabulary(draft)
    # Steps between the text and the training read what an earlier command wrote.
    if "corpus.source" not in draft.keys and not any("data" in phase for phase in draft.phases):
        draft.open.append(
            f"{OPEN_SOURCE}: no command names the text that the first one reads. Write it in place of TEXT above, or "
            "in the recipe: a dump, a text file, or another source (bertwright check --explain corpus.source)."
        )
        _set(draft, "corpus.language", "en")
    if "corpus.source" in draft.keys:
        _set(draft, "corpus.language", "en")
        for phase in draft.phases:
            if data := phase.pop("data", None):
                draft.remark(f"{data.why}: left out, the run makes these examples itself from corpus.source.")
    _phases(draft)
    # What the published phases, which fill the gaps below, train: a BERT-large with LAMB.
    if not {"model.size", "model.config"} & set(draft.keys):
        _set(draft, "model.size", "large")
    if "model.config" in draft.keys:
        draft.keys.pop("model.size", None)
    _set(draft, "optim.kind", "lamb")
    if draft.value("optim.kind") != "lamb":
        draft.keys.pop("optim.bias_correction", None)
    # Examples that are read from files are masked already, and masking settings for them are rejected.
    for phase in draft.phases:
        for name in [name for name in phase if "data" in phase and name.startswith("masking.")]:
            del phase[name]
    _accounts(draft)


def _accounts(draft: Draft) -> None:
    """Update the accounts of options whose keys were merged with others or removed."""
    held = {*draft.keys, *(f"{PHASE}{name}" for phase in draft.phases for name in phase)}
    for place, account in enumerate(draft.accounts):
        if account.keys and not held >= set(account.keys):
            left = tuple(key for key in account.keys if key in held)
            note = account.note if left else _why_dropped(account.keys[0])
            draft.accounts[place] = account._replace(keys=left, note=note)


def _why_dropped(key: str) -> str:
    return next((why for begin, why in DROPPED.items() if key.startswith(begin)), "nothing in the training reads it")


def _set(draft: Draft, key: str, value: object) -> None:
    draft.keys.setdefault(key, Key(key, value, NOT_SET))


def _vocabulary(draft: Draft) -> None:
    """Prefer a given vocabulary over a trained one, unless the commands train it themselves; without either, take the
    one that the training assumes."""
    trained = [
        key for key in draft.keys if key.startswith("vocab.") and key.split(".")[1] in ("size", "trainer", "unused")
    ]
    if "vocab.size" in draft.keys:
        draft.keys.pop("vocab.file", None)
    else:
        for key in trained:
            draft.keys.pop(key)
    assumed = [draft.keys.pop(name) for name in [*draft.keys] if name.startswith(ASSUMED)]
    if not {"vocab.size", "vocab.file"} & set(draft.keys):
        for each in assumed:
            name = each.key.removeprefix(ASSUMED)
            draft.keys.setdefault(name, each._replace(key=name))
        draft.accounts = [
            account._replace(keys=tuple(name.removeprefix(ASSUMED) for name in account.keys))
            for account in draft.accounts
        ]


def _phases(draft: Draft) -> None:
    """Merge prepared lengths into the phases that train on them; the others get the published numbers."""
    for made in draft.prepared:
        length = made["length"].value
        alike = [phase for phase in draft.phases if phase["length"].value == length]
        for phase in alike:
            phase.update({name: key for name, key in made.items() if name not in phase})
        if not alike and not any("data" in phase for phase in draft.phases):
            nearest = min(PUBLISHED, key=lambda known: abs(known - length))
            names = ("batch", "learning_rate", "warmup", "steps")
            why = f"{NOT_SET}: NVIDIA's at {nearest}"
            made |= {name: Key(name, value, why) for name, value in zip(names, PUBLISHED[nearest], strict=True)}
            made["schedule"] = Key("schedule", "poly_nvidia", why)
            made["micro_batch"] = Key("micro_batch", "auto", f"{NOT_SET}: as many as fit in memory")
            draft.phases.append(made)
    if not draft.phases:
        batch, rate, warmup, steps = PUBLISHED[128]
        values = {"length": 128, "batch": batch, "micro_batch": "auto", "learning_rate": rate, "warmup": warmup}
        draft.phases.append({name: Key(name, value, NOT_SET) for name, value in {**values, "steps": steps}.items()})
    # Lengths are prepared in any order; phases on files are trained in that of their commands, which sorting keeps.
    draft.phases.sort(key=lambda phase: phase["length"].value if "data" not in phase else 0)


def questions(draft: Draft, trained: list[Command], launch: Launch) -> Iterator[str]:
    """Yield what the commands leave undecided."""
    if meeting := open_rendezvous(launch):
        unset = unknown_address(launch)
        why = f"the variable in {unset} is not set here" if unset else "no option states the address of the first one"
        yield f"rendezvous of the {launch.nodes} nodes: {why}. Add it to the place: --set rendezvous={meeting}."
    if "compute" in open_keys(launch):
        unset = next((f"has {each.setting}" for each in launch.stated if each.key == "compute"), "names no compute")
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
    start = draft.value("train.init_from")
    # A TensorFlow checkpoint is given by what the names of its files begin with.
    if start and not Path(start).exists() and not is_tensorflow_checkpoint(Path(start)):
        yield (
            f"train.init_from = {start} is not on this machine. Give the train folder of a run, a checkpoint of one, "
            "a folder of Hugging Face, a file of torch.save (.pt, .bin) or a TensorFlow checkpoint, with the "
            "configuration and the vocabulary beside it."
        )
    language = draft.keys.get("corpus.language")
    if language is not None and language.why == NOT_SET:
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
    chosen = schedule is not None and not schedule.why.startswith(NOT_SET)
    if schedule is not None and chosen and schedule.value == "poly_nvidia" and 0 < warmup < 1:
        drop = 1 - (1 - warmup) ** 0.5
        yield (
            f"train.phases.{number}: NVIDIA's schedule drops by {drop:.1%} at the end of the warm-up, and its last "
            'update has rate 0. schedule = "poly" has neither fault.'
        )


def _another_batch(number: int, phase: Mapping[str, Key], ranks: int) -> Iterator[str]:
    published = PUBLISHED.get(phase["length"].value)
    if published and "batch" in phase and not phase["batch"].why.startswith(NOT_SET):
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
