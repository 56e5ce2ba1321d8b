"""Fill in what a recipe needs and no command sets, and combine the data of one command with the phases of another."""

from __future__ import annotations

from bertwright.translate.command import ASSUMED, PHASE, Key
from bertwright.translate.draft import OPEN_SOURCE, Draft

UNSAID = "not set by the commands"
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
    draft.keys.setdefault(key, Key(key, value, UNSAID))


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
            why = f"{UNSAID}: NVIDIA's at {nearest}"
            made |= {name: Key(name, value, why) for name, value in zip(names, PUBLISHED[nearest], strict=True)}
            made["schedule"] = Key("schedule", "poly_nvidia", why)
            made["micro_batch"] = Key("micro_batch", "auto", f"{UNSAID}: as many as fit in memory")
            draft.phases.append(made)
    if not draft.phases:
        batch, rate, warmup, steps = PUBLISHED[128]
        values = {"length": 128, "batch": batch, "micro_batch": "auto", "learning_rate": rate, "warmup": warmup}
        draft.phases.append({name: Key(name, value, UNSAID) for name, value in {**values, "steps": steps}.items()})
    # Lengths are prepared in any order; phases on files are trained in that of their commands, which sorting keeps.
    draft.phases.sort(key=lambda phase: phase["length"].value if "data" not in phase else 0)
