"""Trains the entries of a vocabulary: WordPiece (Schuster and Nakajima 2012; Devlin et al. 2019 §3) with `tokenizers`,
or SentencePiece (Kudo and Richardson 2018), converted to WordPiece. The first entries are the same for both.

`tokenizers` numbers the ## characters in the order of a randomly seeded hash map, and breaks ties between equally
frequent pairs by those numbers, so two runs differ. Here all characters are passed in a fixed order, which makes the
result a function of the text. Its trainer does not accept counts, so each counted word is passed as often as it occurs,
which is still much faster for it than running text.

The conversion is that of TurkuNLP's sent2wordpiece, which the Hungarian recipe for NVIDIA's BERT used: "▁x" becomes
"x", any other piece "##x"; "<unk>", "<s>", "</s>" and the bare "▁" are removed; special and unused entries come first,
and the pieces keep their order. So n pieces give n + 1 + unused entries. Differences: the training text consists of
BERT's words (NFC, BERT's normalisation, punctuation split off, as in TurkuNLP's pipeline; the Hungarian recipe trained
on raw text, normalised by SentencePiece's NFKC rules); duplicate entries are removed; and by default the characters
that SentencePiece left out are added.
"""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, islice, repeat
from math import floor
from unicodedata import ucd_3_2_0

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers, trainers

from bertwright.core.errors import DataError, MissingExtraError, RecipeError, memory_error
from bertwright.vocab.config import SentencePieceConfig, VocabConfig, WordPieceConfig
from bertwright.vocab.entries import CLS, CONTINUATION, MASK, PAD, SEP, UNK
from bertwright.vocab.split import bert_splitter

ENTRIES_A_CHARACTER = 30
"""One character is kept per 30 entries, however rare it is: 1,000 of 30,000, the usual alphabet limit of WordPiece
trainers. That covers every character of an alphabetic script; it matters for scripts with thousands of characters."""


_PRINTED = "‘’“”‚„«»‹›–—…·•°§©"
_OF_SCRIPT = 0.01
"""Share of a text's characters from which it is written in a script, and not only quotes it."""
_SMALL_SCRIPT = 512
"""Most characters of a script all of which become entries. Larger ones are Chinese and Korean, and Latin and Arabic,
whose other letters are those of other languages."""


def special_entries(unused: int) -> list[str]:
    """[PAD], [unused0], ..., [UNK], [CLS], [SEP], [MASK]: the order of the published vocabularies."""
    return [PAD, *(f"[unused{i}]" for i in range(unused)), UNK, CLS, SEP, MASK]


def first_entries(config: VocabConfig, words: Mapping[str, int]) -> tuple[list[str], list[str]]:
    """The special entries and the commonest characters of `words` with their ## forms, and the characters alone.

    This ensures that no kept character becomes [UNK], not even inside a word. Where there is room, characters that the
    text lacks only because it is short follow (`_unseen`). Raises `DataError` without text, and
    `RecipeError` if the entries exceed the size.
    """
    characters, counts = count_characters(words)
    if not characters:
        raise DataError("there is no text to train a vocabulary on. Raise vocab.sample_bytes, or give more text.")
    covered = np.cumsum(counts)
    enough = 1 + int(np.searchsorted(covered, config.alphabet_coverage * covered[-1]))
    # Coverage alone would drop the rare letters of small alphabets even if there is room for all of them.
    room = (config.size or 0) // ENTRIES_A_CHARACTER
    alphabet = characters[: max(enough, room)]
    special = special_entries(config.unused)
    more = min(room, ((config.size or 0) - len(special)) // 2) - len(alphabet)
    if more > 0:
        alphabet += islice(_unseen(config, characters, counts), more)
    # The ## form of a character that BERT always separates can never match: Chinese would waste thousands of entries.
    inside = [not _stands_alone(character) for character in alphabet]
    entries = np.cumsum(inside) + np.arange(1, len(inside) + 1)
    fitting = int(np.searchsorted(entries, (config.size or 0) - len(special), "right"))
    if fitting < len(alphabet):
        fits = covered[fitting - 1] / covered[-1] if fitting else 0.0
        raise _too_small(config, int(entries[-1]) + len(special), len(alphabet), fits)
    continuing = [CONTINUATION + character for character, needed in zip(alphabet, inside, strict=True) if needed]
    return [*special, *sorted(alphabet), *sorted(continuing)], sorted(alphabet)


def _unseen(config: VocabConfig, characters: Sequence[str], counts: NDArray[np.int64]) -> Iterator[str]:
    """Yield characters that a little text lacks by chance, but other texts of its kind have: those of ASCII, marks of
    printed text, then all of its scripts."""
    splitter, seen = bert_splitter(config.lower_case, config.strip_accents), {*characters}
    by_script = Counter[str]()
    for character, count in zip(characters, counts.tolist(), strict=True):
        by_script[_script(character)] += count
    wanted = {name for name, count in by_script.items() if name and count > _OF_SCRIPT * by_script.total()}
    native = [chr(code) for code in range(0x80, 0x10000) if wanted and _script(chr(code)) in wanted]
    sizes = Counter(map(_script, native))
    for character in chain(map(chr, range(ord("!"), ord("~") + 1)), _PRINTED, native):
        small = character.isascii() or sizes[_script(character)] <= _SMALL_SCRIPT
        if small and character not in seen and splitter.words(character) == [character]:
            yield character


@cache
def _script(character: str) -> str:
    """The script of a letter, digit or mark, by the first word of its name; "" for any other character."""
    # Of Unicode 3.2, as all versions of Python have it, so that the same text gives the same vocabulary everywhere.
    known = ucd_3_2_0.category(character)[0] in "LMP" or ucd_3_2_0.category(character) == "Nd"
    return ucd_3_2_0.name(character, "").partition(" ")[0] if known else ""


def missing_characters(config: VocabConfig, entries: Sequence[str], words: Mapping[str, int]) -> list[str]:
    """The characters of `words` that `alphabet_coverage` keeps and `entries` lack, with their ## forms, commonest
    first."""
    characters, counts = count_characters(words)
    covered = np.cumsum(counts)
    enough = 1 + int(np.searchsorted(covered, config.alphabet_coverage * covered[-1])) if characters else 0
    known = set(entries)
    wanted = chain.from_iterable((c,) if _stands_alone(c) else (c, CONTINUATION + c) for c in characters[:enough])
    return [entry for entry in wanted if entry not in known]


def count_characters(words: Mapping[str, int]) -> tuple[list[str], NDArray[np.int64]]:
    """The characters of counted words and [C] their counts, commonest first, with ties in code-point order."""
    characters = np.frombuffer("".join(words).encode("utf-32-le"), np.uint32)
    occurrences, lengths = (np.fromiter(of_each, np.int64, len(words)) for of_each in (words.values(), map(len, words)))
    counts = np.bincount(characters, np.repeat(occurrences, lengths)).astype(np.int64)
    present = np.flatnonzero(counts)
    # Stable, so that ties are in code-point order in every process.
    order = present[np.argsort(-counts[present], kind="stable")]
    return [chr(character) for character in order], counts[order]


def _too_small(config: VocabConfig, needed: int, characters: int, covered: float) -> RecipeError:
    lower = f", or lower vocab.alphabet_coverage to {floor(covered * 1e4) / 1e4:g}" if covered > 1e-4 else ""
    unused = ", or lower vocab.unused" if config.unused else ""
    return RecipeError(
        f"vocab.size={config.size:,} is too small: the {characters:,} characters that make up "
        f"{config.alphabet_coverage:.2%} of the text need {needed:,} entries, with their ## forms and the special ones."
        f" Raise vocab.size above that{lower} (words with a rarer character become [UNK]){unused}."
    )


def _stands_alone(character: str) -> bool:
    """Whether BERT always splits around it (punctuation, CJK), so that its ## form could never be used."""
    return len(bert_splitter(lower_case=False, strip_accents=False).words(f"a{character}a")) > 1


_WORDS_AT_ONCE = 10_000
# The environment variable that the library reads before each of its parallel loops.
_PARALLELISM = "TOKENIZERS_PARALLELISM"


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
    before = os.environ.get(_PARALLELISM)
    # Training runs tens of thousands of merges, and distributing one merge over threads takes longer than doing it.
    os.environ[_PARALLELISM] = "false"
    try:
        yield
    finally:
        del os.environ[_PARALLELISM]
        if before is not None:
            os.environ[_PARALLELISM] = before


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
