"""Training a WordPiece vocabulary (Schuster and Nakajima 2012; Devlin et al. 2019 §3) with `tokenizers`.

The library's trainer numbers the ## characters in the order of a randomly seeded hash map, and breaks ties between
equally frequent pairs by those numbers, so two runs differ. Here all characters are handed over in a fixed order, which
makes the result a function of the text.

It gets counted words, each as often as it occurs, because it knows no counts: that is much less work for it than text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice

from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertwright.vocab.config import VocabConfig, WordPieceConfig
from bertwright.vocab.layout import first_entries
from bertwright.vocab.normal import CONTINUATION, UNK

_WORDS_AT_ONCE = 10_000


def train_wordpiece(config: VocabConfig, trainer: WordPieceConfig, words: Counter[str]) -> list[str]:
    """The entries of a vocabulary of at most `config.size`, learnt from BERT's words and how often each occurs.

    Order: special and unused ones, characters, their ## forms, then pieces, commonest first.
    """
    first, alphabet = first_entries(config, words)
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    library = trainers.WordPieceTrainer(
        vocab_size=config.size or 0, min_frequency=trainer.min_frequency, show_progress=False, special_tokens=first,
        initial_alphabet=alphabet, limit_alphabet=len(alphabet), continuing_subword_prefix=CONTINUATION,
    )  # fmt: skip
    tokenizer.train_from_iterator(_texts(words), library)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def _texts(words: Counter[str]) -> Iterator[str]:
    elements = words.elements()
    while text := " ".join(islice(elements, _WORDS_AT_ONCE)):
        yield text
