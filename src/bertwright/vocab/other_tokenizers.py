"""Finds what the entries of a vocabulary are for a tokenizer that is not WordPiece: BPE, as ModernBERT and RoBERTa have
it, or Unigram, as XLM-RoBERTa.

Their entries are not compared, because each of these kinds writes spaces, bytes and the rests of words in its own way.
Instead the tokenizer itself splits the text of each entry where BERT would find it: an entry that begins a word after a
space, the rest of a word and a punctuation mark directly after another mark or letter. An entry that becomes one piece
is the same as that; any other consists of its pieces. Names carry shapes as in `correspondence`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from bertwright.core.errors import DataError
from bertwright.vocab.correspondence import NEW, Correspondence, is_bracketed, special_ids
from bertwright.vocab.entries import CONTINUATION, UNK, TextSettings

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_JOINED = ("(", "’", "、", "a")
"""What an entry may follow without a space. A tokenizer may have entries that cross the border to one, but hardly to
all of them."""


def read_other_tokenizer(path: Path) -> Tokenizer:
    """The tokenizer in a tokenizer.json, without cuts and padding. Raises `DataError` if the library cannot read it."""
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise DataError(f"{path} cannot be read by the library tokenizers: {error}. Download it again.") from error
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def correspond_to(
    tokenizer: Tokenizer, entries: Sequence[str], settings: TextSettings, roles: Mapping[str, str]
) -> Correspondence:
    """Return what `entries`, which have these text settings, are for a tokenizer. `roles` says how it writes special
    entries, where that is known (`entries.special_names`)."""
    ids = tokenizer.get_vocab(with_added_tokens=True)  # with gaps in some
    special = special_ids(ids, roles)
    forms = {entry: list(_forms(entry, settings.lower_case)) for entry in entries if not is_bracketed(entry)}
    split = _split(tokenizer, sorted({form for own in forms.values() for form in own}), {special[UNK]})
    same, parts = list[int](), list[Sequence[int]]()
    for entry in entries:
        # Of forms with equally few pieces the first: as it is written.
        pieces = min((split[form] for form in forms.get(entry, ()) if form in split), key=len, default=[])
        is_same = len(pieces) == 1 and pieces == split.get(entry)
        same.append(special[entry] if entry in special else pieces[0] if is_same else NEW)
        parts.append(pieces if same[-1] == NEW else ())
    return Correspondence(
        np.array(same, np.int64),
        np.array([piece for own in parts for piece in own], np.int64),
        np.array(list(map(len, parts)), np.int64),
        1 + max(ids.values(), default=NEW),
    )


def _forms(entry: str, lower_case: bool) -> Iterator[str]:
    """Yield the texts that an entry stands for, marked as in the vocabulary: in one of lower-case letters, it stands
    for capitals, too."""
    yield entry
    if lower_case and not entry.startswith(CONTINUATION):
        yield from dict.fromkeys(form for form in (entry.capitalize(), entry.upper()) if form != entry)


def _split(tokenizer: Tokenizer, entries: Sequence[str], unknown: set[int]) -> dict[str, list[int]]:
    """Return the pieces of each entry that the tokenizer can split without its `unknown` entries."""
    found = dict[str, list[int]]()
    for before in _JOINED:
        rest = [entry for entry in entries if entry not in found]
        spaces = [" " * _follows_space(entry) for entry in rest]
        texts = map(before.__add__, map(str.__add__, spaces, (entry.removeprefix(CONTINUATION) for entry in rest)))
        encodings = tokenizer.encode_batch(list(texts), add_special_tokens=False)
        for entry, space, encoding in zip(rest, spaces, encodings, strict=True):
            begins = len(before) + len(space)
            pieces = [(i, at) for i, (at, end) in zip(encoding.ids, encoding.offsets, strict=True) if end > begins]
            # Some tokenizers count the space to the first piece; none may have part of what is before it.
            if pieces and pieces[0][1] >= len(before) and unknown.isdisjoint(i for i, _ in pieces):
                found[entry] = [i for i, _ in pieces]
    return found


def _follows_space(entry: str) -> bool:
    """Whether text has a space before what the entry stands for: not before the rest of a word, a mark, or an
    ideograph, each of which BERT reads as a word."""
    return (
        not entry.startswith(CONTINUATION)
        and entry[0].isalnum()
        and not unicodedata.name(entry[0], "").startswith("CJK")
    )
