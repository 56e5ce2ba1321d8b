"""Contradictions in a recipe whose objective is classification; `Recipe.check` runs these checks with all others."""

from __future__ import annotations

from collections.abc import Iterator

from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST
from bertwright.corpus.config import CorpusConfig
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig
from bertwright.examples.masking_config import MaskingConfig
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
            yield f"{key}.data", "train.objective=classification learns from labelled texts; give their folder or file"
        elif (phase.data / MANIFEST).is_file():
            yield f"{key}.data", f"{phase.data} is a folder of ours, of running text; give files of labelled texts"
        elif phase.data != train.phases[0].data:
            text = f"{phase.data} is not the data of phase 0, and all phases of a classification learn from the same"
            yield f"{key}.data", f"{text} texts; give {train.phases[0].data}"
        if phase.masking != MaskingConfig():
            yield f"{key}.masking", "nothing is masked where texts are classified; leave it out"
        if phase.document_range != (0.0, 1.0):
            text = f"{list(phase.document_range)} is a share of documents, and these are texts"
            yield f"{key}.document_range", f"{text}; leave it out"
        if phase.quarantine:
            yield f"{key}.quarantine", "is about files of finished examples, and these are texts; leave it out"
        if phase.target_accuracy is not None:
            yield f"{key}.target_accuracy", "is of masked tokens, and nothing is masked here; leave it out"
    for section, names, config in (("examples", _OF_TEXT, examples), ("evaluate", _OF_MASKS, evaluate)):
        fields = type(config).model_fields
        for name in names:
            if getattr(config, name) != fields[name].default:
                yield f"{section}.{name}", "has no meaning with train.objective=classification; leave it out"
    if train.init_from and not train.phases[0].restart_bias_correction:
        text = "false needs moments to go on from, and a classifier takes weights alone of train.init_from"
        yield "train.phases.0.restart_bias_correction", f"{text}; leave it out"
    if train.init_layers:
        yield "train.init_layers", "are for pre-training; a classifier starts from all layers of train.init_from"


def idle_corpus(corpus: CorpusConfig | None, vocab: VocabConfig) -> Iterator[Mistake]:
    """Yield a corpus that nothing reads, and a missing vocabulary that nothing can be trained on."""
    if corpus is not None and vocab.file is not None:
        text = "nothing reads it: a classification learns from the data of its phases, and vocab.file is finished"
        yield "corpus", f"{text}; leave the section out"
    if corpus is None and vocab.file is None:
        text = "there is no [corpus] to learn a vocabulary from"
        yield "vocab.file", f"{text}; give the vocab.txt of the network in train.init_from, or write a [corpus]"
