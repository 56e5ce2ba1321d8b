"""The loss of each kind of text before and after a training that started from another network.

A network that goes on learning from one kind of text gets worse on others. A single held-out loss hides that: it falls
with the text that was learned. So each source of the corpus is scored by itself, and so is a text that is given for
this alone (`evaluate.general`). Before and after, the same tokens are masked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, BertwrightError, DataError
from bertwright.core.json_values import json_number
from bertwright.core.log import Log
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.excerpt import read_excerpt
from bertwright.corpus.heldout import text_hash
from bertwright.corpus.sources.source import open_source
from bertwright.examples.config import ExamplesConfig, MaskingConfig
from bertwright.examples.documents import documents_of, subset
from bertwright.examples.heldout import plan_once
from bertwright.examples.loader import Heldout
from bertwright.examples.planned import PlannedExamples
from bertwright.examples.plans import Plans
from bertwright.examples.store import Documents, Store, map_file, token_dtype
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.batch import packed
from bertwright.model.config import kernel_for
from bertwright.model.interop.stock import load_tensors
from bertwright.model.pretrained_config import Pretrained, check_vocabulary, read_pretrained
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.saved import model_from
from bertwright.tasks.objective import score
from bertwright.tasks.pretraining.objective import PreTraining
from bertwright.tasks.task import HeldOut, Scoring
from bertwright.vocab.tokenizer import load_tokenizer

GENERAL = "general"
"""Name of the text of `evaluate.general`."""
ALL = "held-out text"
"""Name of the held-out documents, if the corpus has one source."""
_READ = 1 << 22
"""Bytes that are read of each of the general texts."""
_SEQUENCES = 2048
"""Sequences of the general text that are scored, at most, unless `evaluate.max_sequences` says otherwise."""


@dataclass(frozen=True)
class _Text:
    name: str
    documents: int
    """Held-out documents."""
    heldout: Heldout


def losses_by_text(
    model: PreTrainingModel, heldout: HeldOut, own: Heldout, scores: Mapping[str, Any], settings: Scoring
) -> dict[str, Any]:
    """`by_text`, the loss of each text after and, if training started from a network, before training; `no_before` says
    why there is none before.

    `own` are the held-out sequences, whose `scores` are known. Empty if there is but one text and nothing to compare
    it with.
    """
    by_source = list(_sources(heldout.examples, own))
    texts = by_source or [_Text(ALL, heldout.examples.counts["heldout"].get("documents", 0), own)]
    general = _general(heldout.general, heldout, settings) if heldout.general else []
    # The held-out documents of a source with such a name are among those of the general text.
    texts = [text for text in texts if text.name not in {other.name for other in general}] + general
    if len(texts) == 1 and heldout.start is None:
        return {}
    start, why = (None, "") if heldout.start is None else _start(heldout, model)
    rows = []
    for text in texts:
        known = scores if text.name == ALL else None
        after = known or _score(model, text, settings, heldout.log)
        before = _score(start, text, settings, heldout.log)["mlm_loss"] if start is not None else None
        rows.append({
            "text": text.name,
            "documents": text.documents,
            "predictions": after["predictions"],
            "loss": json_number(after["mlm_loss"]),
            "before": json_number(before),
        })  # fmt: skip
    return {"by_text": rows, **({"no_before": why} if why else {})}


def _score(model: PreTrainingModel, text: _Text, settings: Scoring, log: Log) -> dict[str, Any]:
    device = next(model.parameters()).device
    # Only masked tokens: a network that was trained before may have no head for pairs.
    objective, batches = PreTraining(False, "nsp"), list(text.heldout.batches(settings.batch))

    def read() -> Iterator[Any]:
        for number, batch in enumerate(batches, start=1):
            yield packed(batch, device)
            log.progress("evaluate", number, len(batches), "batches")

    return dict(score(objective, model, read()))


def _sources(examples: Artifact, own: Heldout) -> Iterator[_Text]:
    """Yield the held-out sequences of each source, if the corpus has several; a sequence is of the source in which it
    begins."""
    name = "store/heldout.sources"
    if name not in examples.names() or not isinstance(own.examples, PlannedExamples):
        return
    of_document, store = map_file(examples.file(name), "<u2"), own.examples.store
    plans = own.examples.plans
    shards = np.searchsorted(plans.shard_ends[0], own.rows, side="right")
    begins = plans.rows[0]["a_start"][own.rows].astype(np.int64) + store.shard_tokens[shards]
    documents = np.searchsorted(store.starts, begins.astype(np.uint64), side="right") - 1
    of_row = of_document[documents]
    for number, source in enumerate(examples.counts["heldout"]["sources"]):
        if (chosen := of_row == number).any():
            yield _Text(source["name"], source["documents"], replace(own, rows=own.rows[chosen]))


def _general(config: CorpusConfig, heldout: HeldOut, settings: Scoring) -> list[_Text]:
    """The general texts, without the documents that training read. Raises `DataError` if nothing is left of one."""
    tokenizer = load_tokenizer(heldout.vocab)
    trained = map_file(heldout.examples.file("store/train.hashes"), "<u8")
    texts: list[_Text] = []
    for source in config.source:
        read = read_excerpt(config, open_source(source, config.cache_dir, heldout.log), _READ).kept
        flat, lengths = tokenizer.encode_sentences([sentence for document in read for sentence in document])
        ids = flat.astype(token_dtype(len(tokenizer.vocabulary)))
        documents = documents_of(ids, [*map(len, read)], lengths, [*map(text_hash, read)])
        unseen = subset(documents, ~np.isin(documents.hashes, trained))
        if not len(unseen.hashes):
            raise DataError(
                f"evaluate.general={source.path} has no document that training did not read, of {len(read):,} that "
                "the filter keeps. Give a text with others, or leave the key out."
            )
        sequences = _planned(unseen, heldout, Vocabulary.of(tokenizer), settings)
        most = settings.max_sequences or _SEQUENCES
        texts.append(_Text(source.name or GENERAL, len(unseen.hashes), Heldout.evenly(sequences, most)))
    return texts


def _planned(documents: Documents, heldout: HeldOut, vocabulary: Vocabulary, settings: Scoring) -> PlannedExamples:
    """The documents as sequences of the kind that the run has."""
    kind = heldout.examples.manifest["config"]["examples"]["plan"]
    plan = plan_once(documents, heldout.length, ExamplesConfig(plan=kind))
    bounds = np.array([0, len(documents.tokens)], np.int64)
    starts = documents.token_starts()
    store = Store(**vars(documents), starts=starts, shard_tokens=bounds, vocabulary=vocabulary)
    rows: NDArray[np.int64] = np.array([[len(plan)]], np.int64)
    masking = MaskingConfig(rate=settings.mask_rate, max_predictions=heldout.length)
    return PlannedExamples(store, Plans([plan], rows), heldout.length, masking)


def _start(heldout: HeldOut, model: PreTrainingModel) -> tuple[PreTrainingModel | None, str]:
    """The network that training started from, or why it cannot be scored."""
    assert heldout.start is not None
    path = Path(heldout.start["folder"])
    try:
        given = read_pretrained(path)
        if why := _not_comparable(given, heldout, model) or given.other_task or given.lacks_head:
            return None, why
        network = given.network
        if network.next_sentence:  # pairs are not scored
            network = network.model_copy(update={"next_sentence": False})
        tensors = {name: tensor for name, tensor in load_tensors(given).items() if name in network.tensors}
    except BertwrightError as error:
        return None, str(error).rstrip(".")
    device = next(model.parameters()).device
    return model_from(network, tensors, kernel_for(device.type), source=str(path)).to(device), ""


def _not_comparable(given: Pretrained, heldout: HeldOut, model: PreTrainingModel) -> str:
    """Why the losses of a network cannot be compared with those after training; "" if they can."""
    assert heldout.start is not None
    if given.content != heldout.start["fingerprint"]:
        return f"{given.path} is no longer the network that training started from"
    if given.network.num_hidden_layers != model.config.num_hidden_layers:
        return f"{given.path} has {given.network.num_hidden_layers} layers, of which some were chosen"
    try:
        check_vocabulary(given, heldout.vocab, "train.init_from")
    except ArtifactError:
        return f"{given.path} has another vocabulary, so its losses are of other tokens"
    return ""
