"""Writes weights that another program trained as a published folder of this one, with a report of what they were.

Names carry shapes: V vocabulary, K kept entries.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core import __version__
from bertwright.core.errors import ArtifactError, DataError
from bertwright.core.files import sha256, sha256_of, write_json
from bertwright.core.log import Log
from bertwright.core.provenance import write_provenance
from bertwright.corpus.lines import LinesOf
from bertwright.export.certify.lines import vocabulary_lines
from bertwright.export.folder import stock_config, tokenizer_config, write_network, write_pooling, write_tokenizer
from bertwright.export.import_report import ImportedFile, ImportedSource, ImportFacts, Part, Removed, Vocabulary
from bertwright.export.sentence_modules import SentenceModules, copy_modules
from bertwright.model.family import elements
from bertwright.model.importers.origin import IMPORT, hub_name, licence_in
from bertwright.model.importers.source import PARTS, Source
from bertwright.model.interop.peer import Peer, peer_of
from bertwright.vocab.entries import SPECIALS, UNK
from bertwright.vocab.prune import UsageCounter
from bertwright.vocab.split import build_tokenizer, vocabulary_files
from bertwright.vocab.tokenizer import Tokenizer

if TYPE_CHECKING:
    from torch import Tensor

_TRIED = 100
"""Lines of the vocabulary's own words that are tokenised."""
_MOST_UNKNOWN = 0.01
"""Share of unknown words among those from which a tokenizer is not that of its vocabulary."""
_REPORTED_EVERY = 20_000
_COPIED = ("README.md", "LICENSE*", "LICENCE*", "NOTICE*")
"""Files that travel with the weights, as licences require."""


@dataclass(frozen=True)
class Choices:
    """What the user decides about an import."""

    licence: str = ""
    """"": that of the source's card."""
    texts: Sequence[LinesOf] = ()
    """Only entries that these need stay; none: all stay."""
    most_entries: int | None = None


def write_imported(
    hf: Path, source: Source, choices: Choices, modules: SentenceModules | None, log: Log
) -> ImportFacts:
    """Write the folder, with its report, into the existing, empty folder `hf`. Tensors are written in float32.

    Raises `ArtifactError` if the weights have a decoder of their own, or if the written tokenizer does not give the
    ids of the vocabulary.
    """
    entries, kept_K, removed = list(source.entries), None, None
    if choices.texts:
        kept_K, removed = _needed(source, choices, log)
        entries = [entries[i] for i in kept_K.tolist()]
    peer, config = _peer(source, entries)
    tensors = _tensors(source, len(source.entries), kept_K)
    parameters = sum(tensor.numel() for tensor in tensors.values())
    write_network(hf, config, tensors)
    del tensors
    network, positions = source.network, source.network.max_position_embeddings
    files = vocabulary_files(entries, *source.settings)
    write_tokenizer(hf, files, tokenizer_config(source.settings, positions, peer.segments))
    if modules is not None:
        copy_modules(modules, hf)
    elif not network.labels:
        write_pooling(hf, network.hidden_size, positions)
    for pattern in _COPIED:
        for file in sorted(source.folder.glob(pattern)):
            (hf / file.name).write_bytes(file.read_bytes())
    facts: ImportFacts = {
        "bertwright": __version__,
        "source": described(source, choices.licence),
        "architecture": str(config["architectures"][0]),
        "parameters": parameters,
        "bytes": (hf / "model.safetensors").stat().st_size,
        "parts": {part: _part(source, part) for part in PARTS},
        "tied_decoder": _decoder(source),
        "rows": {"read": network.vocab_size, "padding": source.padding},
        "left_out": dict(source.weights.left_out) | _buffers(source),
        "dropped": list(source.unknown),
        "vocabulary": _try(hf, source, entries, peer.segments),
        "modules": list(modules.names) if modules else [],
    }
    if removed is not None:
        width = elements({name: source.expected[name][1:] for name in _tables(source)})
        before = parameters + width * (len(source.entries) - len(entries))
        facts["removed"] = {**removed, "parameters_before": before, "parameters_after": parameters}
    write_json(hf / IMPORT, facts)
    weights = [(facts["source"]["name"], facts["source"]["sha256"], facts["source"]["licence"])]
    write_provenance(hf, (), (), weights)
    return facts


def described(source: Source, licence: str = "") -> ImportedSource:
    """The files of a source, with their hashes and the licence that its card states, unless another is given."""
    paths = [*source.weights.files, source.vocabulary, source.config]
    files = [
        ImportedFile(name=path.name, size=path.stat().st_size, sha256=sha256(path)) for path in dict.fromkeys(paths)
    ]
    return {
        "name": hub_name(source.path.absolute()) or source.path.resolve().name,
        "kind": source.weights.title,
        "licence": licence or licence_in(source.folder / "README.md"),
        "sha256": sha256_of({file["name"]: file["sha256"] for file in files}),
        "precision": sorted({stored.dtype for stored in source.weights.stored.values() if "float" in stored.dtype}),
        "files": files,
    }


def _needed(source: Source, choices: Choices, log: Log) -> tuple[NDArray[np.int64], Removed]:
    """The ids of the entries that the texts need, and what the others' removal means."""
    began, counter = time.perf_counter(), UsageCounter(source.entries, source.settings)
    counter.read(_read(choices.texts, log))
    log.progress("import", 1, 1, "text")
    kept_K = counter.kept(choices.most_entries)
    report = counter.report(kept_K, choices.most_entries)
    seconds = round(time.perf_counter() - began, 3)
    texts = [str(each.path) for each in choices.texts]
    if report["tokens"] == report["unknown_tokens"]:
        raise DataError(
            f"{', '.join(texts)} has no word that {source.vocabulary} has entries for. Give texts of a language that "
            "the network was trained on."
        )
    return kept_K, {**report, "texts": texts, "parameters_before": 0, "parameters_after": 0, "seconds": seconds}


def _read(texts: Iterable[LinesOf], log: Log) -> Iterator[str]:
    """Yield the lines of all texts, and report the reading."""
    read = 0
    for number, line in enumerate(line for lines in texts for line in lines):
        read += len(line)
        if number % _REPORTED_EVERY == 0:
            log.progress("import", read / 1e6, 0, "million characters")
        yield line


def _peer(source: Source, entries: Sequence[str]) -> tuple[Peer, dict[str, Any]]:
    """The network in transformers, and the content of its config.json."""
    peer = peer_of(source.network, len(entries))
    config = stock_config(peer, entries)
    if source.headless:
        config["architectures"] = [str(config["architectures"][0]).removesuffix("ForMaskedLM") + "Model"]
    return peer, config


def _tensors(source: Source, entries: int, kept_K: NDArray[np.int64] | None) -> dict[str, Tensor]:
    """The tensors by the names of transformers, with rows for the kept entries alone."""
    import torch

    left_out, expected = set(source.unknown), source.expected
    stored = {
        name: tensor
        for name, tensor in source.weights.read().items()
        if source.weights.stored[name].name not in left_out
    }
    state = {name: tensor.float() for name, tensor in source.names.to_ours(stored).items() if name in expected}
    if kept_K is not None:
        rows_K, entries = torch.from_numpy(kept_K), len(kept_K)
        state |= {name: state[name][rows_K] for name in _tables(source)}
    theirs = source.names.to_theirs(state, entries)
    if source.headless:  # as transformers saves an encoder
        theirs = {name.removeprefix(f"{source.names.base}."): tensor for name, tensor in theirs.items()}
    return theirs


def _tables(source: Source) -> list[str]:
    """The tensors with a row for each entry."""
    return [name for name in (source.names.embedding, "mlm.bias") if name in source.expected]


def _part(source: Source, part: str) -> Part:
    tensors = source.tensors_of(part)
    return {"tensors": tensors, "state": "loaded" if tensors else "left out" if part in source.unused else "absent"}


def _decoder(source: Source) -> str:
    if not source.tensors_of("head for masked words"):
        return ""
    copies = [name for name in source.names.tied if name in source.weights.stored]
    return "tied to the embedding" + ("; the source's copy is equal" if copies else "")


def _buffers(source: Source) -> dict[str, int]:
    """Tensors of the files that hold no weights, such as position_ids, by the last part of their names."""
    ours = source.names.our_names(source.weights.stored)
    others = (name for name in source.weights.stored if name not in ours and not name.endswith((".weight", ".bias")))
    return dict(Counter(name.rpartition(".")[2] for name in others))


def _try(hf: Path, source: Source, entries: list[str], segments: bool) -> Vocabulary:
    """Tokenise words of the vocabulary; `ArtifactError` if many are unknown or transformers gives other ids."""
    tokenizer = Tokenizer(build_tokenizer(entries, *source.settings))
    lines = _own_words(entries)
    ids, _ = tokenizer.encode_sentences(lines)
    unknown, words = int((ids == tokenizer.ids(UNK)).sum()), sum(line.count(" ") + 1 for line in lines)
    if unknown > _MOST_UNKNOWN * max(1, words):
        raise ArtifactError(
            f"{unknown:,} of {words:,} words put together from the entries of {source.vocabulary} are unknown to its "
            "tokenizer: the file is not the vocabulary of this network. Give the right one (--vocab FILE)."
        )
    facts: Vocabulary = {
        "file": source.vocabulary.name,
        "entries": len(entries),
        "lower_case": source.settings.lower_case,
        "strip_accents": source.settings.strip_accents,
        "words_tried": words,
        "words_unknown": unknown,
    }
    if find_spec("transformers") is not None:
        from bertwright.export.verify import compare_tokenizer

        facts["compared"] = compare_tokenizer(hf, tokenizer, lines[:20], segments)
    return facts


def _own_words(entries: Iterable[str]) -> list[str]:
    words = [entry for entry in entries if entry not in SPECIALS and not entry.startswith("[unused")]
    return list(vocabulary_lines(words).texts[:_TRIED])
