"""Keys of the network, its vocabulary and its starting weights."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, Key
from bertwright.vocab.entries import TextSettings, text_settings

_FAMILIES = {"bert": "bert", "distilbert": "distilbert", "modernbert": "modern"}
"""`model.kind` by transformers' model type."""
_OTHERS = re.compile(
    r"roberta|albert|electra|deberta|camembert|xlm|xlnet|mpnet|funnel|bart|longformer|big-?bird|convbert|mobilebert"
    r"|squeezebert|rembert|ernie|nezha|megatron|gpt|t5|eurobert|neobert",
    re.IGNORECASE,
)
"""Names of published models of other families."""
_OVERRIDES = {
    "hidden_dropout_prob": "model.dropout",
    "attention_probs_dropout_prob": "model.attention_dropout",
    "dropout": "model.dropout",
    "attention_dropout": "model.attention_dropout",
    "max_position_embeddings": "model.max_positions",
    "initializer_range": "model.initializer_range",
}
"""Keys of config_overrides that are keys of `[model]`."""


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
        if (network := ours / "model" / "config.json").is_file():
            yield Key("model.config", str(network), command.source(name))
        yield Key("train.init_from", str(ours), command.source(name))
        return
    yield Key("model.config", str(folder / "config.json"), command.source(name))
    yield Key("train.init_from", str(folder), command.source(name))


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


def pretrained(command: Command, name: str) -> Iterator[Key]:
    """The folder of a published network, or the name that it is published under: its weights, shape and vocabulary."""
    where, why = _folder_of(command, name)
    kind = _family(command, name)
    if kind != "bert":
        yield Key("model.kind", kind, command.source(name))
    if not command["config_name"]:
        yield Key("model.config", f"{where}/config.json", why)
    yield Key("train.init_from", where, why)
    if not command["tokenizer_name"]:
        yield from _vocabulary(command, name)
    if not command["max_seq_length"] and (most := _config(command, name).get("max_position_embeddings")):
        # Of a tokenizer whose length is not limited, or is larger, the original reads 1,024 tokens.
        yield Key(f"{PHASE}length", min(int(most), 1024), f"{command.source(name)}: the length of its tokenizer")


def configuration(command: Command, name: str) -> Iterator[Key]:
    """A configuration: a file, a folder, or a published network."""
    where, why = _folder_of(command, name)
    if not command["model_name_or_path"] and (kind := _family(command, name)) != "bert":
        yield Key("model.kind", kind, command.source(name))
    yield Key("model.config", where if where.endswith(".json") else f"{where}/config.json", why)


def tokenizer(command: Command, name: str) -> Iterator[Key]:
    """A vocabulary: a file, a folder, or that of a published network."""
    if not command.file(name).exists() and re.match(
        r"(?:.*/)?bert-base-(multilingual-)?(un)?cased$", str(command[name])
    ):
        yield from vocabulary(command, name)
    else:
        yield from _vocabulary(command, name)


def new_network(command: Command, name: str) -> Iterator[Key]:
    """A network with random weights, of its family's base size."""
    if command["model_name_or_path"] or command["config_name"]:
        return
    kind = _FAMILIES.get(str(command[name]))
    if kind is None:
        raise RecipeError(f"{command.source(name)}: networks here are {', '.join(_FAMILIES)}. Give one of these.")
    if kind != "bert":
        yield Key("model.kind", kind, command.source(name))
    yield Key("model.size", "base", f"{command.source(name)}, by its default configuration")
    if kind != "modern" and "attention" not in str(command["config_overrides"]):
        yield Key("model.attention_dropout", 0.1, "the default configuration of that type")


def overrides(command: Command, name: str) -> Iterator[Key]:
    """Values of the configuration."""
    for pair in str(command[name]).split(","):
        key, _, value = pair.strip().partition("=")
        if key not in _OVERRIDES:
            raise RecipeError(
                f"{command.source(name)}: {key} is no key of [model]. Write a config.json with it, and give that as "
                "--config_name."
            )
        try:
            yield Key(_OVERRIDES[key], json.loads(value), command.source(name))
        except ValueError:
            raise RecipeError(f"{command.source(name)}: {key} = {value!r} is not a number. Give one.") from None


def _folder_of(command: Command, name: str) -> tuple[str, str]:
    """Return the path of a network, and where it comes from: one that is published is to be downloaded first."""
    text, source = str(command[name]).rstrip("/"), command.source(name)
    if command.file(name).exists() or text.startswith((".", "/", "~", "$")) or text.count("/") > 1:
        return text, source
    where = f"downloads/{text.rpartition('/')[2]}"
    return where, f"{source}; hf download {text} --local-dir {where}"


def _config(command: Command, name: str) -> dict[str, Any]:
    """Return the configuration that an option names, if it is a file or folder that is here."""
    path = command.file(name)
    with suppress(OSError, ValueError):
        file = path if path.is_file() else path / "config.json"
        values: dict[str, Any] = json.loads(file.read_text(encoding="utf-8-sig"))
        return values
    return {}


def _family(command: Command, name: str) -> str:
    """Return `model.kind`, from the configuration or else the name; raise `RecipeError` for other families."""
    text = str(command[name])
    found = str(_config(command, name).get("model_type", ""))
    if not found and _OTHERS.search(text):
        found = text
    if not found:
        found = next((each for each in ("distilbert", "modernbert") if each in text.lower()), "bert")
    if found not in _FAMILIES:
        raise RecipeError(
            f"{command.source(name)}: it is no network of the families that are known here ({', '.join(_FAMILIES)}). "
            "Give one of these; an encoder of another family cannot be started from."
        )
    return _FAMILIES[found]


def _vocabulary(command: Command, name: str) -> Iterator[Key]:
    """The vocabulary in a folder, with the treatment of case that its tokenizer has."""
    where, why = _folder_of(command, name)
    folder = command.file(name)
    file = "" if where.endswith(".txt") else "/vocab.txt"
    if (folder / "tokenizer.json").is_file() and not (folder / "vocab.txt").is_file():
        file = "/tokenizer.json"
    yield Key("vocab.file", f"{where}{file}", why)
    settings, source = text_settings(folder), f"the tokenizer in {where}"
    if settings is None:
        # BertTokenizer strips accents where it lower-cases, unless its configuration differs.
        lower = "uncased" in str(command[name]).lower()
        settings, source = TextSettings(lower, lower), f"{command.source(name)}, by its name"
    yield from (Key(f"vocab.{key}", value, source) for key, value in settings.stated.items())
