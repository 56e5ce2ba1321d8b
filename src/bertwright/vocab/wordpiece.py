"""Training a WordPiece vocabulary (Schuster and Nakajima 2012; Devlin et al. 2019 §3) with `tokenizers`.

The library's trainer numbers the ## characters in the order of a randomly seeded hash map, and breaks ties between
equally frequent pairs by those numbers, so two runs differ. Here all characters are counted first and handed over
in a fixed order, which makes the result a function of the text. It also means that no kept character can end
as [UNK] inside a word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

from bertwright.core.errors import DataError, RecipeError
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.normal import CLS, CONTINUATION, MASK, PAD, SEP, UNK, normalizer

Texts = Callable[[], Iterable[str]]


def train_wordpiece(config: VocabConfig, texts: Texts) -> list[str]:
    """The entries of a vocabulary of at most `config.size`; `texts()` starts a new pass over the corpus.

    Order: [PAD], unused, [UNK], [CLS], [SEP], [MASK] as in the published ones, characters, their ## forms, pieces.
    """
    size = config.size or 0
    special = [PAD, *(f"[unused{i}]" for i in range(config.unused)), UNK, CLS, SEP, MASK]
    normal = normalizer(config.lower_case, config.strip_accents)
    alphabet = common_characters(texts(), normal, min(config.alphabet, size // 4))
    if not alphabet:
        raise DataError("the corpus has no text to train a vocabulary on. Look at the corpus stage's drop reasons.")
    first = special + alphabet + [CONTINUATION + c for c in alphabet if not _stands_alone(c)]
    if len(first) > size:
        raise RecipeError(
            f"vocab.size={size:,} is too small: {len(special):,} special entries and {len(alphabet):,} characters "
            f"with their ## forms need {len(first):,}. Raise vocab.size or lower vocab.unused."
        )
    tokenizer = Tokenizer(models.WordPiece(unk_token=UNK))
    tokenizer.normalizer = normal
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=size, min_frequency=config.min_frequency, show_progress=False, special_tokens=first,
        initial_alphabet=alphabet, limit_alphabet=len(alphabet), continuing_subword_prefix=CONTINUATION,
    )  # fmt: skip
    tokenizer.train_from_iterator(texts(), trainer)
    ids = tokenizer.get_vocab()
    return sorted(ids, key=ids.__getitem__)


def common_characters(texts: Iterable[str], normal: normalizers.Normalizer, limit: int) -> list[str]:
    """The `limit` commonest characters of the normalised text, by code point; ties go to the lower code point."""
    counts: Counter[str] = Counter()
    for block in _blocks(texts):
        counts.update(normal.normalize_str(block))
    kept = sorted((c for c in counts if not c.isspace()), key=lambda c: (-counts[c], c))
    return sorted(kept[:limit])


def _blocks(texts: Iterable[str], characters: int = 1 << 20) -> Iterator[str]:
    block, length = list[str](), 0
    for text in texts:
        block.append(text)
        length += len(text)
        if length >= characters:
            yield "\n".join(block)
            block, length = [], 0
    yield "\n".join(block)


def _stands_alone(character: str) -> bool:
    """Whether BERT always splits around it (punctuation, CJK), so that its ## form could never be used."""
    text = normalizer(lower_case=False, strip_accents=False).normalize_str(f"a{character}a")
    return len(pre_tokenizers.BertPreTokenizer().pre_tokenize_str(text)) > 1
