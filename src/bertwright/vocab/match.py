"""WordPiece's greedy longest match (Devlin et al. 2019; Google's tokenization.py), many words at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer, models, pre_tokenizers

from bertwright.vocab.normal import CONTINUATION, UNK


class Matcher:
    """The pieces of BERT's words; a word that cannot be put together, or of more than 100 characters, is [UNK]."""

    continuation: NDArray[np.bool_]
    """[V] which entries continue a word (##)."""

    def __init__(self, ids: Mapping[str, int]) -> None:
        self._model = Tokenizer(models.WordPiece(dict(ids), unk_token=UNK, continuing_subword_prefix=CONTINUATION))
        self._model.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        self.continuation = np.zeros(len(ids), bool)
        self.continuation[[i for entry, i in ids.items() if entry.startswith(CONTINUATION)]] = True

    def __call__(self, lines: Sequence[str]) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
        """The ids of all lines one after another, and where each line ends; in a line words lie between spaces.

        A piece that does not continue a word begins one: so the ids alone tell the words apart.
        """
        words = [len(line.split()) if " " in line else bool(line) for line in lines]
        (text,) = self._model.encode_batch_fast([" ".join(lines)], add_special_tokens=False)
        pieces = np.array(text.ids, np.uint32)
        begins = np.append(np.flatnonzero(~self.continuation[pieces]), len(pieces))
        return pieces, begins[np.cumsum(words, dtype=np.int64)]
