"""The text normalisation of BERT as `tokenizers` objects, shared by training, checking and tokenising.

First Unicode NFC (the normal form of the corpus), then BERT's normalisation: removes control characters, unifies white
space, separates CJK ideographs, and, each only if requested, lower-cases and strips accents. In the originals one
switch did both (and could not be turned off in NVIDIA's example builder).
"""

from __future__ import annotations

from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertwright.vocab.entries import CLS, CONTINUATION, SEP, SPECIALS, UNK
from bertwright.vocab.split import WordSplitter


def normalizer(lower_case: bool, strip_accents: bool) -> normalizers.Sequence:
    """NFC, then BERT's normalisation with the two settings passed explicitly: neither implies the other."""
    # Both are passed: if omitted, `strip_accents` follows `lowercase`, like the single switch of the originals.
    bert = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, lowercase=lower_case, strip_accents=strip_accents
    )
    # NFC first, the form of the corpus: other texts may encode the same letter in two ways.
    return normalizers.Sequence([normalizers.NFC(), bert])


@cache
def bert_splitter(lower_case: bool, strip_accents: bool) -> WordSplitter:
    """The cached splitter of text into BERT's words under these settings."""
    return WordSplitter(normalizer(lower_case, strip_accents), pre_tokenizers.BertPreTokenizer())


def build_tokenizer(entries: list[str], lower_case: bool, strip_accents: bool) -> Tokenizer:
    """The complete fast tokenizer of a vocabulary: [CLS] A [SEP] B [SEP], special tokens recognised in text."""
    ids = {entry: i for i, entry in enumerate(entries)}
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token=UNK, continuing_subword_prefix=CONTINUATION))
    tokenizer.normalizer = normalizer(lower_case, strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((SEP, ids[SEP]), (CLS, ids[CLS]))
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer
