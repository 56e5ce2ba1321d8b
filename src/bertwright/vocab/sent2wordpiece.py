"""A SentencePiece model (Kudo and Richardson 2018) as a WordPiece vocabulary.

The conversion is that of TurkuNLP's sent2wordpiece, which the Hungarian recipe for NVIDIA's BERT used: "▁x" becomes
"x", any other piece "##x"; "<unk>", "<s>", "</s>" and the bare "▁" go; behind the special and unused entries the order
stays. So n pieces give n + 1 + unused entries.

Different here: the text is BERT's words (NFC, BERT's normalisation, punctuation split off, as in TurkuNLP's pipeline;
the Hungarian recipe trained on raw text, normalised by SentencePiece's NFKC rules); a piece that is an entry already
is not entered twice; and by default the characters that SentencePiece left out are added.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from itertools import islice

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.vocab.config import SentencePieceConfig, VocabConfig
from bertwright.vocab.layout import first_entries, special_entries
from bertwright.vocab.normalization import CONTINUATION

BOUNDARY = "▁"
# Always the same: the unigram trainer's sums depend on their number, not on that of the processors.
_THREADS = 16
_ERRORS_ONLY = 2
# SentencePiece leaves out longer sentences without a word; its default is 4,192 bytes.
_ANY_LENGTH = 2**30


def train_sentencepiece(config: VocabConfig, trainer: SentencePieceConfig, texts: Iterable[str]) -> bytes:
    """A SentencePiece model of at most `config.size - config.unused - 1` pieces, learnt from BERT's words in `texts`.

    Nothing touches the disk. Raises `MissingExtraError` without the package and `RecipeError` where it refuses.
    """
    try:
        import sentencepiece
    except ImportError:
        raise MissingExtraError(
            'vocab.trainer.kind="sentencepiece" needs the package sentencepiece: '
            "pip install 'bertwright[sentencepiece]'. Or leave vocab.trainer out for the built-in WordPiece trainer."
        ) from None
    pieces, model = (config.size or 0) - config.unused - 1, io.BytesIO()
    if not trainer.shuffle:
        texts = islice(texts, trainer.input_sentence_size or None)
    try:
        sentencepiece.SentencePieceTrainer.train(
            # A small text has fewer pieces than asked for, which is no error; the text is BERT's words already.
            sentence_iterator=iter(texts), model_writer=model, model_type=trainer.model, vocab_size=pieces,
            hard_vocab_limit=False, character_coverage=trainer.character_coverage, max_sentence_length=_ANY_LENGTH,
            normalization_rule_name="identity", num_threads=_THREADS, minloglevel=_ERRORS_ONLY,
        )  # fmt: skip
    except (RuntimeError, OSError) as error:
        raise RecipeError(
            f"SentencePiece ({trainer.model}) cannot make {pieces:,} pieces of this text: {error}. "
            "Change vocab.size or vocab.trainer.character_coverage."
        ) from error
    return model.getvalue()


def to_wordpiece(model: bytes) -> list[str]:
    """The pieces of a SentencePiece model as WordPiece entries, in its order (commonest first), each once."""
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_proto=model)
    # <unk>, <s> and </s>: BERT has special entries of its own.
    kept = (i for i in range(len(pieces)) if not (pieces.is_unknown(i) or pieces.is_control(i)))
    texts = (pieces.id_to_piece(i) for i in kept)
    return list(dict.fromkeys(_entry(text) for text in texts if text != BOUNDARY))


def lay_out(config: VocabConfig, add_characters: bool, learnt: list[str], words: Mapping[str, int]) -> list[str]:
    """Special entries, characters where they are added, and the pieces that still have room, commonest first."""
    if not add_characters:
        return list(dict.fromkeys([*special_entries(config.unused), *learnt]))
    first, _ = first_entries(config, words)
    # Single characters come from the count of the text, which leaves none out that coverage keeps.
    longer = (entry for entry in learnt if len(entry.removeprefix(CONTINUATION)) > 1)
    return list(dict.fromkeys([*first, *longer]))[: config.size]


def _entry(piece: str) -> str:
    return piece.removeprefix(BOUNDARY) if piece.startswith(BOUNDARY) else CONTINUATION + piece
