"""Contradictions in a recipe whose objective is classification; `Recipe.check` runs these checks with all others."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig, MaskingConfig
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig

_OF_TEXT = ("passes", "plan", "short_seq_prob", "random_next_prob", "random_label", "seed")
"""Settings of examples that are built from running text."""
_OF_MASKS = ("mask_rate", "cloze")
"""Settings of scores on masked tokens."""


def of_classification(train: TrainConfig, evaluate: EvaluateConfig, examples: ExamplesConfig) -> Iterator[Mistake]:
    """Yield settings that have no effect on labelled texts, and data that is not labelled texts."""
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}"
        if phase.data is None:
            yield (
                f"{key}.data",
                "train.objective=classification trains on labelled texts; set this key to their folder or file",
            )
        elif (phase.data / MANIFEST).is_file():
            yield (
                f"{key}.data",
                f"{phase.data} is an examples folder made by bertwright, without labels; give files of labelled texts",
            )
        elif phase.data != train.phases[0].data:
            text = f"{phase.data} is not the data of phase 0, but all phases of a classification must use the same"
            yield f"{key}.data", f"{text} texts; give {train.phases[0].data}"
        if phase.masking != MaskingConfig():
            yield f"{key}.masking", "classification masks no tokens; leave it out"
        if phase.document_range != (0.0, 1.0):
            text = f"{list(phase.document_range)} is a share of documents, but this data consists of labelled texts"
            yield f"{key}.document_range", f"{text}; leave it out"
        if phase.quarantine:
            yield (
                f"{key}.quarantine",
                "applies to files of finished examples, but this data consists of labelled texts; leave it out",
            )
        if phase.target_accuracy is not None:
            yield f"{key}.target_accuracy", "applies to masked tokens, but classification masks no tokens; leave it out"
    for section, names, config in (("examples", _OF_TEXT, examples), ("evaluate", _OF_MASKS, evaluate)):
        fields = type(config).model_fields
        for name in names:
            if getattr(config, name) != fields[name].default:
                yield f"{section}.{name}", "has no effect with train.objective=classification; leave it out"
    if train.init_from and not train.phases[0].restart_bias_correction:
        text = (
            "false needs optimizer moments to continue from, but a classifier takes only the weights of train.init_from"
        )
        yield "train.phases.0.restart_bias_correction", f"{text}; leave it out"
    yield from _starts_of_pretraining(train)


def _starts_of_pretraining(train: TrainConfig) -> Iterator[Mistake]:
    if train.init_layers:
        yield "train.init_layers", "are for pre-training; a classifier starts from all layers of train.init_from"
    if train.init_embeddings != "random":
        yield "train.init_embeddings", "text is for pre-training, from running text; leave it out"


def idle_corpus(corpus: CorpusConfig | None, vocab: VocabConfig) -> Iterator[Mistake]:
    """Yield a corpus that nothing reads, and a missing vocabulary that nothing can be trained on."""
    if corpus is not None and vocab.file is not None:
        text = "no stage reads it: classification trains on the data of its phases, and vocab.file is already finished"
        yield "corpus", f"{text}; leave the section out"
    if corpus is None and vocab.file is None:
        text = "there is no [corpus] to train a vocabulary on"
        yield "vocab.file", f"{text}; give the vocab.txt of the network in train.init_from, or add a [corpus]"
