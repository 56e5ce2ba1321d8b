"""Trains a WordPiece vocabulary (Schuster and Nakajima 2012; Devlin et al. 2019 §3) with `tokenizers`.

The library's trainer numbers the ## characters in the order of a randomly seeded hash map, and breaks ties between
equally frequent pairs by those numbers, so two runs differ. Here all characters are passed in a fixed order, which
makes the result a function of the text.

The trainer does not accept counts, so each counted word is passed as often as it occurs, which is still much faster
for it than running text.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, islice, repeat

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.entries import CONTINUATION, UNK
from bertwright.vocab.layout import first_entries

_WORDS_AT_ONCE = 10_000
# The environment variable that the library reads before each of its parallel loops.
_THREADS = "TOKENIZERS_PARALLELISM"


def train_wordpiece(config: VocabConfig, trainer: WordPieceConfig, words: Counter[str]) -> list[str]:
    """The entries of a vocabulary of at most `config.size`, trained on BERT's words with their counts.

    Order: special and unused entries, characters, their ## forms, then pieces, commonest first.
    """
    first, alphabet = first_entries(config, words)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library = trainers.WordPieceTrainer(
        # The complete alphabet in a fixed order: the library breaks ties by numbers from a random hash (decision 0007).
        vocab_size=config.size or 0, min_frequency=trainer.min_frequency, show_progress=False, special_tokens=first,
        initial_alphabet=alphabet, limit_alphabet=len(alphabet), continuing_subword_prefix=CONTINUATION,
    )  # fmt: skip
    with _without_threads():
        tokenizer.train_from_iterator(_texts(words), library)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _texts(words: Counter[str]) -> Iterator[str]:
    # Words of one character, a third of all, contain no pair.
    elements = chain.from_iterable(repeat(word, times) for word, times in words.items() if len(word) > 1)
    while text := " ".join(islice(elements, _WORDS_AT_ONCE)):
        yield text


@contextmanager
def _without_threads() -> Iterator[None]:
    before = os.environ.get(_THREADS)
    # Training runs tens of thousands of merges, and distributing one merge over threads takes longer than doing it.
    os.environ[_THREADS] = "false"
    try:
        yield
    finally:
        del os.environ[_THREADS]
        if before is not None:
            os.environ[_THREADS] = before
