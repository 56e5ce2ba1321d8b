"""How well a vocabulary fits a text, measured on a bounded sample."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.corpus.text import read_documents, shard_names
from bertwright.vocab.normal import CONTINUATION, UNK, build_tokenizer

SAMPLE_CHARACTERS = 2_000_000


def sample(corpus: Artifact, characters: int = SAMPLE_CHARACTERS) -> list[str]:
    """Sentences from the beginning of every shard, about `characters` in all."""
    names = shard_names(corpus)
    share = characters // max(1, len(names))
    return [sentence for name in names for sentence in _first(read_documents(corpus, name), share)]


def measure(entries: list[str], lower_case: bool, strip_accents: bool, sentences: list[str]) -> dict[str, float | int]:
    """Fertility and unknown words of `sentences`; a word is a run of letters or one punctuation mark.

    `fertility` is tokens per word, `unknown_rate` the share of words that become [UNK],
    `single_character_rate` the share of tokens that are one character, and `unused_rate` the
    share of entries that the sample never used.
    """
    tokenizer = build_tokenizer(entries, lower_case, strip_accents)
    unknown, used = entries.index(UNK), np.zeros(len(entries), np.int64)
    words = 0
    remaining = iter(sentences)
    while batch := list(islice(remaining, 2000)):
        encodings = tokenizer.encode_batch(batch, add_special_tokens=False)
        ids = np.fromiter((i for encoding in encodings for i in encoding.ids), np.int64)
        used += np.bincount(ids, minlength=len(entries))
        words += sum(len(set(encoding.word_ids)) for encoding in encodings)
    tokens = int(used.sum())
    single = np.array([len(entry.removeprefix(CONTINUATION)) == 1 for entry in entries])
    return {
        "entries": len(entries),
        "sample_sentences": len(sentences),
        "sample_words": words,
        "sample_tokens": tokens,
        "fertility": round(tokens / max(1, words), 4),
        "unknown_rate": round(int(used[unknown]) / max(1, words), 6),
        "single_character_rate": round(int(used[single].sum()) / max(1, tokens), 4),
        "unused_rate": round(float(np.mean(used == 0)), 4),
    }


def _first(documents: Iterable[list[str]], characters: int) -> Iterable[str]:
    taken = 0
    for document in documents:
        for sentence in document:
            if taken >= characters:
                return
            taken += len(sentence)
            yield sentence
