"""Converts a SentencePiece model (Kudo and Richardson 2018) to a WordPiece vocabulary.

The conversion is that of TurkuNLP's sent2wordpiece, which the Hungarian recipe for NVIDIA's BERT used: "▁x" becomes
"x", any other piece "##x"; "<unk>", "<s>", "</s>" and the bare "▁" are removed; special and unused entries come first,
and the pieces keep their order. So n pieces give n + 1 + unused entries.

Differences: the training text consists of BERT's words (NFC, BERT's normalisation, punctuation split off, as in
TurkuNLP's pipeline; the Hungarian recipe trained on raw text, normalised by SentencePiece's NFKC rules); duplicate
entries are removed; and by default the characters that SentencePiece left out are added.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from itertools import islice

from bertwright.core.errors import MissingExtraError, RecipeError, memory_error
from bertwright.vocab.config import SentencePieceConfig, VocabConfig
from bertwright.vocab.entries import CONTINUATION
from bertwright.vocab.layout import first_entries, special_entries

BOUNDARY = "▁"
# Constant, because the unigram trainer's sums depend on the number of threads; independent of the number of processors.
_THREADS = 16
_ERRORS_ONLY = 2
# SentencePiece silently skips sentences above its limit; the default is 4,192 bytes.
_ANY_LENGTH = 2**30


def train_sentencepiece(config: VocabConfig, trainer: SentencePieceConfig, texts: Iterable[str]) -> bytes:
    """Train a SentencePiece model of at most `config.size - config.unused - 1` pieces on BERT's words in `texts`.

    Returns the serialised model; writes no files. Raises `MissingExtraError` if the package is missing, and
    `RecipeError` if SentencePiece fails.
    """
    try:
        import sentencepiece
    except ImportError:
        raise MissingExtraError(
            'vocab.trainer.kind="sentencepiece" needs the package sentencepiece: pip install '
            "'bertwright[sentencepiece]'. Or leave out vocab.trainer to use the built-in WordPiece trainer."
        ) from None
    pieces, model = (config.size or 0) - config.unused - 1, io.BytesIO()
    if not trainer.shuffle:
        texts = islice(texts, trainer.input_sentence_size or None)
    try:
        sentencepiece.SentencePieceTrainer.train(
            # A small text may have fewer pieces than requested, which is not an error; the text is already normalised.
            sentence_iterator=iter(texts), model_writer=model, model_type=trainer.model, vocab_size=pieces,
            hard_vocab_limit=False, character_coverage=trainer.character_coverage, max_sentence_length=_ANY_LENGTH,
            normalization_rule_name="identity", num_threads=_THREADS, minloglevel=_ERRORS_ONLY,
        )  # fmt: skip
    except (RuntimeError, OSError) as error:
        if lacking := memory_error(error):
            raise lacking from error
        raise RecipeError(
            f"SentencePiece ({trainer.model}) cannot make {pieces:,} pieces of this text: {error}. "
            "Change vocab.size or vocab.trainer.character_coverage."
        ) from error
    return model.getvalue()


def to_wordpiece(model: bytes) -> list[str]:
    """The pieces of a SentencePiece model as WordPiece entries, in its order (commonest first), without duplicates."""
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    # Without <unk>, <s> and </s>: BERT has its own special entries.
    kept = (i for i in range(len(pieces)) if not (pieces.is_unknown(i) or pieces.is_control(i)))
    texts = (pieces.id_to_piece(i) for i in kept)
    return list(dict.fromkeys(_entry(text) for text in texts if text != BOUNDARY))


def lay_out(config: VocabConfig, add_characters: bool, learnt: list[str], words: Mapping[str, int]) -> list[str]:
    """Special entries, characters if they are added, and the pieces for which there is room, commonest first."""
    if not add_characters:
        return list(dict.fromkeys([*special_entries(config.unused), *learnt]))
    first, _ = first_entries(config, words)
    # Single characters come from the text's character counts, which include all that coverage keeps.
    longer = (entry for entry in learnt if len(entry.removeprefix(CONTINUATION)) > 1)
    return list(dict.fromkeys([*first, *longer]))[: config.size]


def _entry(piece: str) -> str:
    return piece.removeprefix(BOUNDARY) if piece.startswith(BOUNDARY) else CONTINUATION + piece
