"""The stage `vocab`: corpus shards in, vocab.txt, tokenizer.json and report.json out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, Identity, build
from bertwright.core.config import what
from bertwright.core.errors import DataError
from bertwright.core.files import sha256, sha256_of, write_atomic, write_json
from bertwright.core.log import SILENT, Log
from bertwright.corpus.text import sentences as corpus_sentences
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.given import check_fit, read_vocabulary
from bertwright.vocab.normal import build_tokenizer
from bertwright.vocab.report import measure, sample
from bertwright.vocab.wordpiece import train_wordpiece

VERSION = 1


def run(config: VocabConfig, corpus: Artifact, out: Path, log: Log = SILENT) -> Artifact:
    """The vocabulary artifact at `out`: trained on `corpus`, or the given file checked against it.

    Its count `vocabulary` is the hash that token stores carry: SHA-256 over vocab.txt and both text settings.
    """
    found = identity(config, {"corpus": corpus.fingerprint})
    return build(out, found, log, lambda draft: _make(config, corpus, draft, log))


def identity(config: VocabConfig, inputs: Mapping[str, str]) -> Identity:
    """What the vocabulary is a function of; `inputs` has the fingerprint of "corpus". Reads a given `vocab.file`."""
    settings, needed = what(config), {"corpus": inputs["corpus"]}
    if config.file is not None:  # the content decides, not where it lies
        settings["file"] = "given"
        needed["file"] = _content(config.file)
    return Identity("vocab", VERSION, {"vocab": settings}, needed)


def _content(file: Path) -> str:
    read_vocabulary(file)
    return sha256(file)


def _make(config: VocabConfig, corpus: Artifact, draft: Path, log: Log) -> dict[str, Any]:
    sentences = sample(corpus)
    if not any(sentence.strip() for sentence in sentences):
        raise DataError(f"{corpus.path} has no sentences. Look at its drop reasons, or give another corpus.source.")
    if config.file is not None:
        entries = read_vocabulary(config.file)
        check_fit(entries, config, sentences)
    else:
        log.say(f"vocab: training {config.size:,} WordPiece entries")
        entries = train_wordpiece(config, lambda: corpus_sentences(corpus))
    text = "".join(f"{entry}\n" for entry in entries).encode()
    write_atomic(draft / "vocab.txt", text)
    tokenizer = build_tokenizer(entries, config.lower_case, config.strip_accents)
    write_atomic(draft / "tokenizer.json", tokenizer.to_str(pretty=True).encode())
    report = measure(entries, config.lower_case, config.strip_accents, sentences)
    write_json(draft / "report.json", report)
    vocabulary = sha256_of([text.decode(), config.lower_case, config.strip_accents])
    fit = f"{report['fertility']} tokens a word, {report['unknown_rate']:.2%} unknown"
    log.say(f"vocab: {len(entries):,} entries, {fit}")
    return {**report, "vocabulary": vocabulary, "lower_case": config.lower_case, "strip_accents": config.strip_accents}
