"""The stage `vocab`: builds vocab.txt, tokenizer.json and report.json from corpus shards or a given vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core import rng
from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import sha256, write_atomic, write_json
from bertwright.core.log import SILENT, Log
from bertwright.corpus.text import read_documents, shard_names
from bertwright.vocab.config import VERSION, TrainerConfig, VocabConfig, sections
from bertwright.vocab.letter_case import different_case
from bertwright.vocab.load import check_fit, check_reachable, read_vocabulary
from bertwright.vocab.report import measure, shortcomings
from bertwright.vocab.split import bert_splitter, count_words, vocabulary_files
from bertwright.vocab.trainers import lay_out, to_wordpiece, train_sentencepiece, train_wordpiece

MEASURED_CHARACTERS = 2_000_000


@dataclass
class Sample:
    """Documents sampled from an entire corpus, of about `max_bytes` of text and at most about `max_sentences`
    sentences (0: any number); counted while they are read.

    Whether a document is drawn depends only on its position in the corpus and on `seed`; no sample is kept in memory.
    """

    corpus: Artifact
    max_bytes: int
    seed: int
    max_sentences: int = 0
    documents: int = 0
    bytes: int = 0

    @property
    def share(self) -> float:
        """The probability that a document is drawn."""
        counts = self.corpus.counts
        of_sentences = self.max_sentences / max(1, counts["sentences"]) if self.max_sentences else 1.0
        return float(min(1.0, self.max_bytes / max(1, counts["text_bytes"]), of_sentences))

    def sentences(self) -> Iterator[str]:
        """Yield the sentences of the drawn documents in corpus order; call once, because it updates the counts."""
        stream = rng.key(self.seed, "vocab sample")
        for number, name in enumerate(shard_names(self.corpus)):
            documents = list(read_documents(self.corpus, name))
            # Keyed by position: no document's draw depends on how many were drawn before.
            draws = rng.uniform(rng.fold(stream, number), np.arange(len(documents)))
            for place in np.flatnonzero(draws < self.share).tolist():
                self.documents += 1
                self.bytes += sum(len(sentence.encode()) + 1 for sentence in documents[place]) + 1
                yield from documents[place]


def first_sentences(corpus: Artifact, characters: int = MEASURED_CHARACTERS) -> list[str]:
    """Sentences from the beginning of every shard, about `characters` in total, to measure vocabularies on."""
    names = shard_names(corpus)
    share = characters // max(1, len(names))
    return [sentence for name in names for sentence in _first(read_documents(corpus, name), share)]


def _first(documents: Iterable[list[str]], characters: int) -> Iterator[str]:
    taken = 0
    for document in documents:
        for sentence in document:
            if taken >= characters:
                return
            taken += len(sentence)
            yield sentence


# Number of sentences between progress reports.
_REPORTED_EVERY = 5000


def run(config: VocabConfig, corpus: Artifact | None, out: Path, log: Log = SILENT) -> Artifact:
    """Build the vocabulary artifact at `out`: trained on `corpus`, or from the given file, checked against the corpus.

    Without a corpus the file is required, and is checked only against the settings.
    The count `vocabulary` is the hash that token stores refer to: SHA-256 over vocab.txt and the text settings.
    """
    inputs = {"corpus": corpus.fingerprint} if corpus else {}
    return build(out, identity(config, inputs), log, lambda draft: _make(config, corpus, draft, log))


def identity(config: VocabConfig, inputs: Mapping[str, str]) -> Identity:
    """Everything that determines the vocabulary; `inputs` has the fingerprint of "corpus", if there is one. Reads a
    given `vocab.file`."""
    needed = {name: inputs[name] for name in ("corpus",) if name in inputs}
    if config.file is not None:  # identified by its content, not its path
        needed["file"] = _content(config.file)
    if config.extend is not None:
        needed["extend"] = _content(config.extend)
    return Identity("vocab", VERSION, sections(config), needed)


def _content(file: Path) -> str:
    read_vocabulary(file)
    return sha256(file)


def _make(config: VocabConfig, corpus: Artifact | None, draft: Path, log: Log) -> dict[str, Any]:
    if corpus is None:
        return _given(config, draft, log)
    if not corpus.counts["sentences"]:
        raise DataError(
            f"{corpus.path} has no sentences. Check the reasons why documents were dropped, or give another "
            "corpus.source."
        )
    trained: dict[str, Any] = {}
    extension: dict[str, Any] = {}
    if config.file is not None:
        entries, measured = read_vocabulary(config.file), first_sentences(corpus)
        check_fit(entries, config, measured)
        # A given file is measured on a bounded sample; a trained one on its training words, which are already counted.
        words = count_words(measured, bert_splitter(config.lower_case, config.strip_accents))
    else:
        sample = Sample(corpus, config.sample_bytes, config.seed, _max_sentences(config.trainer))
        of = "the corpus" if sample.share == 1 else f"{sample.share:.1%} of the corpus's documents"
        log.say(f"vocab: training {config.size:,} entries ({config.trainer.kind}) on {of}")
        if config.extend is not None:
            words = count_words(_read(sample, config, log), bert_splitter(config.lower_case, config.strip_accents))
            entries, extension = _extend(config, config.extend, words)
        else:
            entries, words = train_entries(config, _read(sample, config, log))
        log.progress("vocab", 1, 1, "vocabulary")
        trained = {"documents": sample.documents, "bytes": sample.bytes, "share": round(sample.share, 6)}
    report = {**measure(entries, words, config.longest_word), "trained_on": trained, **extension}
    facts = _write(config, entries, report, draft)
    fit = f"{report['fertility']} tokens per word, {report['unknown_rate']:.2%} unknown"
    log.say(f"vocab: {len(entries):,} entries, {fit}")
    if extension:
        added = extension["extended"]
        before = f"{added['older_fertility']} tokens per word, {added['older_unknown_rate']:.2%} unknown"
        log.say(
            f"vocab: {added['added']:,} entries added to {added['older']:,}, {added['in_unused']:,} of them in unused "
            f"places (such as {', '.join(added['examples'][:5])}); before, {before}"
        )
    if case := different_case(config, str(corpus.manifest["config"].get("corpus", {}).get("language", ""))):
        log.say(f"vocab: warning: {' '.join(case)}")
    if warning := shortcomings(report, config):
        log.say(f"vocab: {warning}")
    return {**report, **facts}


def _extend(config: VocabConfig, file: Path, words: Counter[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the entries of a finished vocabulary with those added that the words need, and what the report says."""
    from bertwright.vocab.extend import extend  # most vocabularies are trained anew

    older = read_vocabulary(file)
    check_reachable(older, config, "vocab.extend", file)
    entries, added = extend(config, older, words)
    return entries, {"extended": added}


def _given(config: VocabConfig, draft: Path, log: Log) -> dict[str, Any]:
    """Write the given vocabulary, without a text to measure it on."""
    if config.file is None:
        raise RecipeError(
            "vocab.file is missing: without a corpus there is no text to train a vocabulary on. Give a vocab.txt."
        )
    entries = read_vocabulary(config.file)
    check_reachable(entries, config)
    report = {"entries": len(entries), "trained_on": {}}
    facts = _write(config, entries, report, draft)
    log.say(f"vocab: {len(entries):,} given entries")
    return {**report, **facts}


def _write(config: VocabConfig, entries: list[str], report: Mapping[str, Any], draft: Path) -> dict[str, Any]:
    """Write the files of the vocabulary; returns its hash and text settings."""
    for name, content in vocabulary_files(
        entries, config.lower_case, config.strip_accents, config.longest_word
    ).items():
        write_atomic(draft / name, content)
    write_json(draft / "report.json", report)
    return {
        "vocabulary": config.hash_of(entries),
        "lower_case": config.lower_case,
        "strip_accents": config.strip_accents,
        "longest_word": config.longest_word,
    }


def _max_sentences(trainer: TrainerConfig) -> int:
    """The limit for sampling documents; SentencePiece's own sampling, which differs between runs, is not used."""
    return trainer.input_sentence_size if trainer.kind == "sentencepiece" and trainer.shuffle else 0


def _read(sample: Sample, config: VocabConfig, log: Log) -> Iterator[str]:
    """Yield the sentences of the sample and report reading progress, because the trainers report none."""
    total = sample.share * sample.corpus.counts["text_bytes"] / 1e6
    for number, sentence in enumerate(sample.sentences()):
        if number % _REPORTED_EVERY == 0:
            log.progress("vocab", min(sample.bytes / 1e6, total), total, "MB")
        yield sentence
    log.progress("vocab", total, total, "MB")
    log.progress("vocab", 0, 0, f"learning {config.size:,} entries")


def train_entries(config: VocabConfig, sentences: Iterable[str]) -> tuple[list[str], Counter[str]]:
    """Train on `sentences`, which are read once; returns the entries learned, and how often each word occurs."""
    splitter, trainer = bert_splitter(config.lower_case, config.strip_accents), config.trainer
    words: Counter[str] = Counter()
    if trainer.kind == "wordpiece":
        words = count_words(sentences, splitter)
        return train_wordpiece(config, trainer, words), words

    def texts() -> Iterator[str]:
        for sentence in sentences:
            split = splitter.words(sentence)
            words.update(split)
            yield " ".join(split)

    learnt = to_wordpiece(train_sentencepiece(config, trainer, texts()))
    return lay_out(config, trainer.add_characters, learnt, words), words
