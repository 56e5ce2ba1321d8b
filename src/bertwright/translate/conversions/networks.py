"""Keys of the network, its vocabulary and its starting weights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.translate.command import Command, Key


def vocabulary(command: Command, name: str) -> Iterator[Key]:
    """The published vocabulary that belongs to a model's name."""
    model, source = str(command[name]), command.source(name)
    # "uncased" contains "cased".
    cased = "cased" in model and "uncased" not in model
    kind = f"{'multilingual-' * ('multilingual' in model)}{'cased' if cased else 'uncased'}"
    if kind == "multilingual-uncased":
        # Not among the vocabularies that can be downloaded by name; that of bert-base-uncased is of English.
        yield Key("vocab.file", "downloads/vocab.txt", f"{source}; put the vocab.txt of that model there")
    else:
        why = f"{source}; bertwright vocab --download google-{kind}"
        yield Key("vocab.file", f"downloads/google-{kind}-vocab.txt", why)
    if not cased:
        yield Key("vocab.lower_case", True, source)
        yield Key("vocab.strip_accents", True, "the original does both")


def network(command: Command, name: str) -> Iterator[Key]:
    """The architecture that belongs to a model's name, with its vocabulary."""
    found = re.match(r"(?:.*/)?(distilbert|bert)-(tiny|mini|small|medium|base|large)-", str(command[name]))
    if not found:
        raise RecipeError(
            f"{command.source(name)}: the network is known only from names such as bert-base-uncased. Give such a "
            "name, and set model.config to the model's config.json in the recipe."
        )
    if found[1] == "distilbert":
        yield Key("model.kind", "distilbert", command.source(name))
    yield Key("model.size", found[2], command.source(name))
    yield from vocabulary(command, name)


def start_from(command: Command, name: str) -> Iterator[Key]:
    """Weights to start from: those of a run, or of a Hugging Face folder."""
    if (text := str(command[name])) == "None":
        return
    folder = Path(text).expanduser()
    near = [folder, folder / "train", folder.parent / "train"]
    if not (folder / "config.json").is_file():
        ours = next((place for place in near if (place / "manifest.json").is_file()), folder)
        yield Key("train.init_from", str(ours), command.source(name))
        return
    try:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        layers = int(config["num_hidden_layers"])
    except (ValueError, KeyError, TypeError) as error:
        raise RecipeError(
            f"{folder / 'config.json'} does not state num_hidden_layers ({error!r}). Correct it."
        ) from error
    yield Key("model.config", str(folder / "config.json"), command.source(name))
    yield Key("train.init_from", str(folder), command.source(name))
    yield Key("train.init_layers", list(range(1, layers + 1)), "all layers: it is a folder of Hugging Face")


def lower_case(command: Command, name: str) -> Iterator[Key]:
    """Lower-casing, which also strips accents in the original."""
    if command[name]:
        yield Key("vocab.lower_case", True, command.source(name))
        yield Key("vocab.strip_accents", True, "the original ties accents to case")


def pieces(command: Command, name: str) -> Iterator[Key]:
    """SentencePiece's size after sent2wordpiece: 100 unused entries added, 5 special ones instead of 3, no ▁."""
    size = int(command.number(name))
    yield Key("vocab.size", size + 101, f"{command.source(name)}, and what sent2wordpiece adds")
    yield Key("vocab.unused", 100, "sent2wordpiece's default")


def trainer(command: Command, name: str) -> Iterator[Key]:
    """An option of SentencePiece, as a key of `vocab.trainer` of that kind."""
    if key := command.program.original(name):
        yield Key("vocab.trainer.kind", "sentencepiece", "spmtrain.py")
        yield Key(key.keys[0], command[name], command.source(name))


def characters(command: Command, name: str) -> Iterator[Key]:
    """Whether every character of the alphabet becomes an entry."""
    yield Key("vocab.trainer.add_characters", bool(command[name]), command.source(name))
