"""Matches the tensors of a network with those of one that was trained before, from which it starts.

Only names and shapes are compared, so that `check` knows what training will find. Does not import torch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.core.errors import ArtifactError
from bertwright.model.config import NetworkConfig, has_row_per_entry
from bertwright.model.pretrained_config import Pretrained
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import TextSettings, entries_of, has_other_tokenizer, special_names

if TYPE_CHECKING:
    from bertwright.vocab.correspondence import Correspondence

_LAYER = re.compile(r"^layers\.(\d+)\.")


@dataclass(frozen=True)
class Transfer:
    """Which tensors a network takes from one that was trained before; names are this project's."""

    taken: Mapping[str, str]
    """For each tensor that is taken, its name in the other network."""
    drawn: tuple[str, ...]
    """Parts of heads that keep their random weights, because the other network has none for them."""
    unused: tuple[str, ...]
    """Parts of the other network that this one does not have."""
    faults: tuple[str, ...]
    """Why the network cannot start from the other one, a phrase for each tensor; empty if it can."""
    encoder: tuple[int, int]
    """How many tensors of the encoder are taken, and how many it has."""

    @property
    def notes(self) -> list[str]:
        """What is taken over and what is not, in words."""
        drawn = [f"random weights for {', '.join(self.drawn)}, which it does not have"] if self.drawn else []
        unused = [f"its {', '.join(self.unused)} left out"] if self.unused else []
        return ["{} of {} tensors of the encoder".format(*self.encoder), *drawn, *unused]


def transfer(
    own: NetworkConfig,
    given: Pretrained,
    entries: int | None = None,
    layers: Sequence[int] = (),
    other_entries: bool = False,
    tiled: bool = False,
) -> Transfer:
    """Match the tensors of `own` with those of the network in `given`, of which it has the `layers`, counted from 1, or
    all of them.

    Heads may be absent on either side. Embeddings may have other rows beyond the `entries` of the vocabulary, and any
    rows if the vocabulary has `other_entries`. Tensors that are `tiled` may be larger here.
    """
    theirs, taken, drawn, faults = given.tensors, dict[str, str](), list[str](), list[str]()
    rest = {name for name in theirs if not _unchosen(name, given.network.family, layers)}
    for name, shape in own.tensors.items():
        source = next((there for there in _sources(name, own, given, layers) if there in theirs), None)
        rest -= {source}
        # Of a tiled table, only rows are compared.
        columns = 1 if tiled and len(shape) == 2 and has_row_per_entry(name) else len(shape)
        own_shape, other_shape = shape[:columns], theirs[source][:columns] if source else ()
        if source is not None and (
            other_shape == own_shape
            or _same_entries(name, other_shape, own_shape, entries)
            or (other_entries and has_row_per_entry(name) and other_shape[1:] == own_shape[1:])
            or (tiled and not has_row_per_entry(name) and _fits_into(other_shape, own_shape))
        ):
            taken[name] = source
        elif source is None and _in_head(name, own.family):
            drawn.append(name)
        else:
            there = "absent" if source is None else str(theirs[source])
            faults.append(f"{name} is {there} there and {shape} here")
    others = [name for name in theirs if name in rest]
    for name in others:
        if not _in_head(name, given.network.family) and not (own.segments == 0 and ".embeddings.segment." in name):
            faults.append(f"{name} is {theirs[name]} there and absent here")
    # A head is outside the encoder and has no layers.
    faults += [f"{name} is no part of {own.title}" for name in given.unknown if _in_encoder(name, given.names.base)]
    encoder = [name for name in own.tensors if not _in_head(name, own.family)]
    found = sum(name in taken for name in encoder)
    if not any(there in theirs for name in encoder for there in _sources(name, own, given, layers)):
        first = next(iter(given.stored), "none")
        faults = [
            f"it has none of the {len(encoder)} tensors of a {own.title}'s encoder; its first is {first}",
            *faults,
        ]
    counts = found, len(encoder)
    return Transfer(taken, _modules(drawn), _modules([*others, *given.unknown]), tuple(faults), counts)


def _sources(name: str, own: NetworkConfig, given: Pretrained, layers: Sequence[int]) -> Iterator[str]:
    """Yield the names that a tensor may have in the other network."""
    head, _, rest = name.partition(".")
    if head == own.family:
        chosen = _LAYER.sub(lambda found: f"layers.{layers[int(found[1])] - 1}.", rest) if layers else rest
        yield f"{given.network.family}.{chosen}"
    elif (
        head != "classification"
        or not name.startswith("classification.classifier.")
        or (own.labels, own.head) == (given.labels, given.head)
    ):
        yield name
        if own.shares_transform and head == "classification":
            yield f"mlm.{rest}"  # as in transformers


def _unchosen(name: str, family: str, layers: Sequence[int]) -> bool:
    found = _LAYER.match(name.removeprefix(f"{family}."))
    return bool(layers and found and int(found[1]) + 1 not in layers)


def _in_head(name: str, family: str) -> bool:
    return not name.startswith(f"{family}.") or name.startswith(f"{family}.pooler.")


def _in_encoder(name: str, base: str) -> bool:
    """Whether a tensor that is not known is part of the encoder, judged by its name in a file of transformers."""
    return name.startswith(f"{base}.") or re.search(r"\.\d+\.", name) is not None


def correspondence(given: Pretrained, vocab: VocabConfig) -> Correspondence:
    """Return what the entries of `vocab.file` are in the vocabulary of the network in `given`, whatever kind of
    tokenizer that has. Raises `DataError` if a file cannot be read, and `ArtifactError` if the network has fewer rows
    than its vocabulary entries."""
    # The library that normalises text takes longer to import than most checks of a recipe.
    from bertwright.vocab.correspondence import correspond
    from bertwright.vocab.other_tokenizers import correspond_to, read_other_tokenizer

    assert vocab.file is not None
    settings = TextSettings.of(vocab)
    entries, roles, file = entries_of(vocab.file), special_names(given.folder), given.entries_file
    if has_other_tokenizer(file):
        made = correspond_to(read_other_tokenizer(file), entries, settings, roles)
    else:
        # A folder that does not state its settings is taken to have these.
        made = correspond(entries, given.entries, settings, given.text_settings or settings, roles)
    if made.older > (rows := given.network.vocab_size):
        raise ArtifactError(
            f"{file} has {made.older:,} entries, but the embedding of {given.path} only {rows:,} rows, so that it is "
            "the vocabulary of another network. Download both again, from one place."
        )
    return made


def repeated_layers(own: NetworkConfig, given: NetworkConfig) -> list[int]:
    """Return the layer, counted from 1, from which each layer of a network at least as deep starts: one of its kind,
    in order, and about evenly repeated. [] if there is none of its kind."""
    kinds, theirs, chosen = _kinds(own), _kinds(given), list[int]()
    for place, kind in enumerate(kinds):
        even = place * len(theirs) // len(kinds)
        fits = [layer for layer in range(len(theirs)) if theirs[layer] == kind]
        if not fits:
            return []
        chosen.append(1 + min(fits, key=lambda layer: abs(layer - even)))
    return chosen


_SIZES = {
    *("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size"),
    *("dim", "n_layers", "n_heads", "hidden_dim"),
}
"""The fields of all families that a tiled network may have larger."""


def wrong_tiles(own: NetworkConfig, given: NetworkConfig, layers: Sequence[int]) -> str:
    """Why a network cannot start from tiles of another one, and what would be right, as a phrase; "" if it can."""
    if own.family != given.family:
        return f"[model] is a {own.title}, but that network a {given.title}; set model.kind={given.family}"
    for name in type(own).model_fields:
        if name not in _SIZES and name not in own.may_differ and getattr(own, name) != getattr(given, name):
            return f"{name} is {getattr(given, name)} there but {getattr(own, name)} in [model]; set it to that"
    sizes = ("hidden_size", "intermediate_size", *(() if layers else ("num_hidden_layers",)))
    for name in sizes:
        if getattr(own, name) < getattr(given, name):
            text = f"{name} is {getattr(given, name)} there but only {getattr(own, name)} in [model]"
            return f"{text}; give [model] at least as much, or choose its layers with init_layers"
    width, theirs = (each.hidden_size // each.num_attention_heads for each in (own, given))
    if width != theirs:
        heads = own.hidden_size / theirs
        right = f"set the number of heads to {heads:.0f}" if heads.is_integer() else f"choose a multiple of {theirs}"
        return (
            f"attention heads are {theirs} wide there but {width} in [model]; {right} for a width of {own.hidden_size}"
        )
    if not layers and not repeated_layers(own, given):
        return "it has no layer of the kind of one of [model]; choose another depth, or init_layers"
    if layers or any(getattr(own, name) != getattr(given, name) for name in sizes):
        return ""
    return "[model] is not larger than that network, so that there is nothing to tile; leave init_tiled out"


def _fits_into(there: tuple[int, ...], here: tuple[int, ...]) -> bool:
    return len(there) == len(here) and all(a <= b for a, b in zip(there, here, strict=True))


def no_moments(checkpoint: Path) -> str:
    """Why a training does not start from a checkpoint with another vocabulary, after the value of
    `train.init_embeddings`."""
    return (
        f"makes rows for new entries, but {checkpoint} is a checkpoint, whose moments belong to the rows of its own "
        "entries; give the train folder of that training once it is finished, or the folder that bertwright export "
        "makes of it"
    )


def _same_entries(name: str, there: tuple[int, ...], here: tuple[int, ...], entries: int | None) -> bool:
    """Whether two tensors differ only in rows that pad the vocabulary."""
    return (
        has_row_per_entry(name) and there[1:] == here[1:] and entries is not None and entries <= min(there[0], here[0])
    )


def _modules(names: Sequence[str]) -> tuple[str, ...]:
    """The modules of tensors, each once, in order; a parameter outside a module by itself."""
    modules = (name.rpartition(".")[0] if name.count(".") > 1 else name for name in names)
    return tuple(dict.fromkeys(modules))


def other_kinds(own: NetworkConfig, given: NetworkConfig, layers: Sequence[int]) -> str:
    """Return which of the `layers`, counted from 1, is of another kind than the layer of `own` that starts from it, and
    what to choose instead; "" if none.

    Layers of one kind have the same tensors and the same attention window: a layer that was trained with local
    attention computes another function with global attention, and a ModernBERT's first layer has no norm.
    """
    kinds, theirs = _kinds(own), _kinds(given)
    for number, (kind, layer) in enumerate(zip(kinds, layers, strict=True), 1):
        if kind != (other := theirs[layer - 1]):
            text = f"layer {number} of [model] {_described(kind)}, but layer {layer} of the other network"
            choice = _spread(kinds, theirs)
            remedy = f"choose {choice}" if choice else "it has too few layers of each kind; choose another [model]"
            return f"{text} {_described(other)}; {remedy}"
    return ""


_Kind = tuple[int | None, frozenset[str]]
"""The attention window of a layer, and the names of its tensors."""


def _kinds(network: NetworkConfig) -> list[_Kind]:
    names: list[set[str]] = [set() for _ in network.windows]
    for name in network.tensors:
        inner = name.removeprefix(f"{network.family}.")
        if found := _LAYER.match(inner):
            names[int(found[1])].add(inner[found.end() :])
    return [(window, frozenset(own)) for window, own in zip(network.windows, names, strict=True)]


def _described(kind: _Kind) -> str:
    window, names = kind
    attention = "has global attention" if window is None else f"has local attention (a window of {window} tokens)"
    return attention if "attention.norm.weight" in names else f"{attention} and no norm before it"


def _spread(kinds: Sequence[_Kind], theirs: Sequence[_Kind]) -> list[int]:
    """Return for each of `kinds` the number of a layer of the same kind, in order and about evenly spread; [] if there
    are too few."""
    chosen: list[int] = []
    for place, kind in enumerate(kinds):
        even = round(place * (len(theirs) - 1) / max(len(kinds) - 1, 1))
        fits = [
            layer
            for layer in range(chosen[-1] if chosen else 0, len(theirs))
            if theirs[layer] == kind and _contains(theirs[layer + 1 :], kinds[place + 1 :])
        ]
        if not fits:
            return []
        chosen.append(1 + min(fits, key=lambda layer: abs(layer - even)))
    return chosen


def _contains(there: Sequence[_Kind], wanted: Sequence[_Kind]) -> bool:
    """Whether `wanted` occurs in `there` in this order, with gaps."""
    rest = iter(there)
    return all(any(kind == other for other in rest) for kind in wanted)
