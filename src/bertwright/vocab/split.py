"""Splits text into BERT's words: normalised, and cut at spaces, punctuation and CJK characters.

Text is normalised to Unicode NFC (the normal form of the corpus), a zero-width space that separates words, as in Khmer,
becomes a space (`corpus.characters.WORD_BREAK`), and then BERT's rules apply: control characters are removed,
white space is unified, CJK ideographs are separated, and, each only if requested, letters are lower-cased and accents
stripped. In the originals one switch did both (and could not be turned off in NVIDIA's example builder).

The rules are those of the objects of `tokenizers`; here they are queried once per character if that is
enough. After NFC they consider one character at a time: it is dropped, replaced or separated, whatever its neighbours.
NFC considers neighbours, so the library processes any word that is not in NFC. It also processes any word with a
character that is not in Unicode 3.2 (2002), or that is not a letter, mark, number, punctuation mark or symbol: for all
other characters all versions of Unicode agree.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache
from itertools import islice
from unicodedata import is_normalized, ucd_3_2_0

import numpy as np
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

from bertwright.corpus.characters import WORD_BREAK
from bertwright.vocab.config import LONGEST_WORD
from bertwright.vocab.entries import CLS, CONTINUATION, SEP, SPECIALS, UNK
from bertwright.vocab.word_table import WordTable, lines_of, pretokenize, text_of

_ASK = "\0"
_SENTENCES_AT_ONCE = 1000


class WordSplitter:
    """Splits text into BERT's words, with one normalisation."""

    def __init__(self, normal: normalizers.Normalizer, split: pre_tokenizers.PreTokenizer) -> None:
        self._normal, self._split = normal, split
        self._characters = _Characters(self.by_library)
        self._replaced = np.zeros(0x110000, np.uint32)  # one-character replacements; 0 if none or not yet queried

    def words(self, text: str) -> list[str]:
        """BERT's words of a text."""
        return self.lines(text.replace(" ", "\n")).split()

    def lines(self, text: str) -> str:
        """For each line of `text`, which contains no spaces, its BERT words, separated by spaces."""
        codes = np.frombuffer(text.encode("utf-32-le"), "<u4")
        if not (replaced := self._replaced[codes]).all():
            for code in np.unique(codes[replaced == 0]).tolist():
                if len(character := self._characters[code]) == 1:
                    self._replaced[code] = ord(character)
            replaced = self._replaced[codes]
        # Fast path: if every character is replaced by one character, as nearly all are, one look-up does the text.
        lines = str(replaced.astype("<u4"), "utf-32-le")
        if replaced.all() and is_normalized("NFC", text):
            return lines
        return "\n".join(
            line if _ASK not in line and is_normalized("NFC", word) else self._line(word)
            for word, line in zip(text.split("\n"), lines.split("\n"), strict=True)
        )

    def by_library(self, text: str) -> list[str]:
        """The same result as `words`, computed by the library, slowly."""
        return [word for word, _ in self._split.pre_tokenize_str(self._normal.normalize_str(text))]

    def _line(self, word: str) -> str:
        line = word.translate(self._characters)
        return line if _ASK not in line and is_normalized("NFC", word) else " ".join(self.by_library(word))


def count_words(sentences: Iterable[str], splitter: WordSplitter) -> Counter[str]:
    """How often each of BERT's words occurs; counts the words of `pretokenize` first, then splits each of them once."""
    table, counts = WordTable(), np.zeros(0, np.int64)
    lines, words = list[str](), Counter[str]()
    sentences = iter(sentences)
    while batch := list(islice(sentences, _SENTENCES_AT_ONCE)):
        text = text_of(batch)
        starts, ends = pretokenize(text)
        numbers, new = table.numbers(text, starts, ends)
        counts = np.bincount(numbers, minlength=len(table)) + np.pad(counts, (0, len(new)))
        if len(new):
            lines += splitter.lines(lines_of(text, starts[new], ends[new])).split("\n")[:-1]
    for line, occurrences in zip(lines, counts.tolist(), strict=True):
        for word in line.split():
            words[word] = words.get(word, 0) + occurrences
    return words


class _Characters(dict[int, str]):
    """Replacements by code point: the character itself, another one, either between spaces, or nothing."""

    def __init__(self, by_library: Callable[[str], list[str]]) -> None:
        super().__init__({ord("\n"): "\n"})
        self._by_library = by_library

    def __missing__(self, code: int) -> str:
        character = chr(code)
        # For newer characters the library's Unicode and Python's may differ, so the library processes each occurrence.
        known = ucd_3_2_0.category(character)[0] in "LMNPS"
        # Between zeros, because nothing combines with them: next to a letter, an accent would become part of it.
        self[code] = " ".join(self._by_library(f"0{character}0"))[1:-1] if known else _ASK
        return self[code]


def normalizer(lower_case: bool, strip_accents: bool) -> normalizers.Sequence:
    """NFC and word breaks, then BERT's normalisation with the two settings; neither of them implies the other."""
    # Both are passed: if omitted, `strip_accents` follows `lowercase`, like the single switch of the originals.
    bert = normalizers.BertNormalizer(
        clean_text=True, handle_chinese_chars=True, lowercase=lower_case, strip_accents=strip_accents
    )
    # NFC first, the form of the corpus: other texts may encode the same letter in two ways.
    # Before BERT's rules, which remove it: the words of a line of Khmer would become one of hundreds of letters.
    return normalizers.Sequence([normalizers.NFC(), normalizers.Replace(Regex(WORD_BREAK), " "), bert])


@cache
def bert_splitter(lower_case: bool, strip_accents: bool) -> WordSplitter:
    """The cached splitter of text into BERT's words under these settings."""
    return WordSplitter(normalizer(lower_case, strip_accents), pre_tokenizers.BertPreTokenizer())


def build_tokenizer(
    entries: list[str], lower_case: bool, strip_accents: bool, longest_word: int = LONGEST_WORD
) -> Tokenizer:
    """The complete fast tokenizer of a vocabulary: [CLS] A [SEP] B [SEP], special tokens recognised in text."""
    ids = {entry: i for i, entry in enumerate(entries)}
    model = models.WordPiece(
        ids, unk_token=UNK, continuing_subword_prefix=CONTINUATION, max_input_chars_per_word=longest_word
    )
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizer(lower_case, strip_accents)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing((SEP, ids[SEP]), (CLS, ids[CLS]))
    tokenizer.decoder = decoders.WordPiece(prefix=CONTINUATION)
    tokenizer.add_special_tokens(list(SPECIALS))
    return tokenizer


def vocabulary_files(
    entries: list[str], lower_case: bool, strip_accents: bool, longest_word: int = LONGEST_WORD
) -> dict[str, bytes]:
    """The content of a vocabulary's files by name: vocab.txt and tokenizer.json."""
    tokenizer = build_tokenizer(entries, lower_case, strip_accents, longest_word)
    text = "".join(f"{entry}\n" for entry in entries)
    return {"vocab.txt": text.encode(), "tokenizer.json": tokenizer.to_str(pretty=True).encode()}
