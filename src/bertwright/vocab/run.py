"""The stage `vocab`: corpus shards in, vocab.txt, tokenizer.json and report.json out; or a given vocabulary alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import sha256, sha256_of, write_atomic, write_json
from bertwright.core.log import SILENT, Log
from bertwright.vocab.config import VERSION, TrainerConfig, VocabConfig, sections
from bertwright.vocab.load import check_fit, check_reachable, read_vocabulary
from bertwright.vocab.normalization import bert_splitter, build_tokenizer
from bertwright.vocab.report import measure, shortcomings
from bertwright.vocab.sample import Sample, first_sentences
from bertwright.vocab.sent2wordpiece import lay_out, to_wordpiece, train_sentencepiece
from bertwright.vocab.split import count_words
from bertwright.vocab.wordpiece import train_wordpiece

# Sentences between two reports of progress.
_REPORTED_EVERY = 5000


def run(config: VocabConfig, corpus: Artifact | None, out: Path, log: Log = SILENT) -> Artifact:
    """The vocabulary artifact at `out`: trained on `corpus`, or the given file checked against it.

    Without a corpus the file must be given, and is checked against the settings alone.
    Its count `vocabulary` is the hash that token stores carry: SHA-256 over vocab.txt and both text settings.
    """
    inputs = {"corpus": corpus.fingerprint} if corpus else {}
    return build(out, identity(config, inputs), log, lambda draft: _make(config, corpus, draft, log))


def identity(config: VocabConfig, inputs: Mapping[str, str]) -> Identity:
    """What the vocabulary is a function of; `inputs` has the fingerprint of "corpus", where there is one. Reads a given
    `vocab.file`."""
    needed = {name: inputs[name] for name in ("corpus",) if name in inputs}
    if config.file is not None:  # the content decides, not where it lies
        needed["file"] = _content(config.file)
    return Identity("vocab", VERSION, sections(config), needed)


def _content(file: Path) -> str:
    read_vocabulary(file)
    return sha256(file)


def _make(config: VocabConfig, corpus: Artifact | None, draft: Path, log: Log) -> dict[str, Any]:
    if corpus is None:
        return _given(config, draft, log)
    if not corpus.counts["sentences"]:
        raise DataError(f"{corpus.path} has no sentences. Look at its drop reasons, or give another corpus.source.")
    trained: dict[str, Any] = {}
    if config.file is not None:
        entries, measured = read_vocabulary(config.file), first_sentences(corpus)
        check_fit(entries, config, measured)
        # A given file is measured on a bounded sample; a trained one on the words it was trained on, counted already.
        words = count_words(measured, bert_splitter(config.lower_case, config.strip_accents))
    else:
        sample = Sample(corpus, config.sample_bytes, config.seed, _most_sentences(config.trainer))
        of = "the corpus" if sample.share == 1 else f"{sample.share:.1%} of the corpus's documents"
        log.say(f"vocab: training {config.size:,} entries ({config.trainer.kind}) on {of}")
        entries, words = train_entries(config, _read(sample, config, log))
        log.progress("vocab", 1, 1, "vocabulary")
        trained = {"documents": sample.documents, "bytes": sample.bytes, "share": round(sample.share, 6)}
    report = {**measure(entries, words), "trained_on": trained}
    facts = _write(config, entries, report, draft)
    fit = f"{report['fertility']} tokens a word, {report['unknown_rate']:.2%} unknown"
    log.say(f"vocab: {len(entries):,} entries, {fit}")
    if warning := shortcomings(report, given=config.file is not None):
        log.say(f"vocab: {warning}")
    return {**report, **facts}


def _given(config: VocabConfig, draft: Path, log: Log) -> dict[str, Any]:
    """The given vocabulary, with no text to measure it on."""
    if config.file is None:
        raise RecipeError("vocab.file is missing: without a corpus there is nothing to learn from. Give a vocab.txt.")
    entries = read_vocabulary(config.file)
    check_reachable(entries, config)
    report = {"entries": len(entries), "trained_on": {}}
    facts = _write(config, entries, report, draft)
    log.say(f"vocab: {len(entries):,} given entries")
    return {**report, **facts}


def _write(config: VocabConfig, entries: list[str], report: Mapping[str, Any], draft: Path) -> dict[str, Any]:
    """Write the files of the vocabulary; its hash and its settings."""
    text = "".join(f"{entry}\n" for entry in entries).encode()
    write_atomic(draft / "vocab.txt", text)
    tokenizer = build_tokenizer(entries, config.lower_case, config.strip_accents)
    write_atomic(draft / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
    write_json(draft / "report.json", report)
    # The text settings belong to it: the same entries under other settings give other ids.
    vocabulary = sha256_of([text.decode(), config.lower_case, config.strip_accents])
    return {"vocabulary": vocabulary, "lower_case": config.lower_case, "strip_accents": config.strip_accents}


def _most_sentences(trainer: TrainerConfig) -> int:
    """The documents are drawn so that SentencePiece, whose own drawing differs from run to run, need not draw."""
    return trainer.input_sentence_size if trainer.kind == "sentencepiece" and trainer.shuffle else 0


def _read(sample: Sample, config: VocabConfig, log: Log) -> Iterator[str]:
    """The sentences of the sample, with progress of the reading; the training after it reports none."""
    total = sample.share * sample.corpus.counts["text_bytes"] / 1e6
    # The trainers report no progress of their own, so it is that of the reading.
    for number, sentence in enumerate(sample.sentences()):
        if number % _REPORTED_EVERY == 0:
            log.progress("vocab", min(sample.bytes / 1e6, total), total, "MB")
        yield sentence
    log.progress("vocab", total, total, "MB")
    log.progress("vocab", 0, 0, f"learning {config.size:,} entries")


def train_entries(config: VocabConfig, sentences: Iterable[str]) -> tuple[list[str], Counter[str]]:
    """The entries that the configured trainer learns from `sentences`, which are read once, and how often each word
    occurs there.
    """
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
