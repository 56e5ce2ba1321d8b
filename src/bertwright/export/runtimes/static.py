"""model2vec's static format: a table with a vector for each entry of the vocabulary, and no network. model2vec and
sentence-transformers read it; the vector of a text is the mean of the vectors of its tokens, divided by its length.

The table is made as model2vec makes it: each entry goes through the encoder alone, as [CLS] entry [SEP]; the means of
these three tokens are reduced to their principal components, and weighted by smooth inverse frequency (Arora et al.
2017), where the frequency is Zipf's law of the rank in the vocabulary.

Names carry shapes: V vocabulary, K entries with a vector, H hidden, D dimensions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from bertwright.core.errors import BertwrightError
from bertwright.core.files import write_atomic, write_json
from bertwright.core.json_values import parse_json
from bertwright.export.runtimes.runtime import Outputs, Published, Reader, Runtime
from bertwright.model.batch import packed_sequences
from bertwright.model.pretrained_config import read_pretrained
from bertwright.model.saved import write_safetensors
from bertwright.model.text_encoder import Encoder
from bertwright.vocab.entries import CLS, MASK, SEP, UNK

if TYPE_CHECKING:
    from model2vec import StaticModel

DIMENSIONS = 256
"""The principal components that are kept, as model2vec does."""
SIF = 1e-4
"""The coefficient of smooth inverse frequency: a token of this probability has half of its weight."""
_AT_ONCE = 1024
_LEFT_OUT = (CLS, SEP, MASK)
_UNUSED = re.compile(r"\[unused\d+\]")
"""Entries without a vector, as of model2vec, which removes them from the vocabulary: here all keep their ids."""


class Static(Runtime):
    """See `Runtime`."""

    name = folder = reads = "static"
    title = package = "model2vec"
    install = "pip install 'bertwright[static]'"
    file = "model.safetensors"

    def refusal(self, model: Published) -> str:
        """As `Runtime.refusal`."""
        if model.head not in ("encoder", "masked"):
            return "a table of vectors has no head; make it from the encoder that the model was fine-tuned from"
        try:
            _ = read_pretrained(model.folder).entries
        except BertwrightError as error:
            return str(error)
        return ""

    def write(self, model: Published, out: Path) -> None:
        """As `Runtime.write`."""
        encoder = Encoder(model.folder)
        table_VD = table_of(encoder)
        tokenizer = parse_json(encoder.tokenizer.fast.to_str())
        # A table has a vector for a text of any length, and none for [CLS] and [SEP].
        tokenizer.update(post_processor=None, truncation=None, padding=None)
        write_safetensors(out / "model.safetensors", {"embeddings": torch.from_numpy(table_VD)})
        write_atomic(out / "tokenizer.json", json.dumps(tokenizer, ensure_ascii=False).encode())
        write_json(out / "config.json", _config(model, table_VD.shape[1]))
        write_json(out / "modules.json", _MODULES)

    @contextmanager
    def open(self, model: Published, out: Path, threads: int) -> Iterator[Reader]:
        """As `Runtime.open`; a mean of rows is computed by one thread, however many there are."""
        from model2vec import StaticModel

        table = StaticModel.from_pretrained(out)
        ids = table.tokenizer.get_vocab()
        yield _Table(table, (ids[CLS], ids[SEP]), model.positions)


_MODULES = [
    {"idx": 0, "name": "0", "path": ".", "type": "sentence_transformers.models.StaticEmbedding"},
    {"idx": 1, "name": "1", "path": "1_Normalize", "type": "sentence_transformers.models.Normalize"},
]
"""The modules.json that sentence-transformers reads."""


def _config(model: Published, dimensions: int) -> dict[str, Any]:
    return {
        "model_type": "model2vec",
        "architectures": ["StaticModel"],
        "tokenizer_name": model.folder.name,
        "apply_pca": DIMENSIONS,
        "sif_coefficient": SIF,
        "hidden_dim": dimensions,
        "seq_length": 1_000_000,
        "max_length": None,  # model2vec would cut texts where sentence-transformers does not
        "normalize": True,
        "pooling": "mean",
        "embedding_dtype": "float32",
    }


@dataclass(frozen=True)
class _Table:
    """See `Reader`."""

    table: StaticModel
    bounds: tuple[int, int]
    """The ids of [CLS] and [SEP]."""
    positions: int

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`; the table itself reads no [CLS] and [SEP], and skips [UNK]."""
        first, last = self.bounds
        found = self.table.tokenizer.encode(text, add_special_tokens=False).ids
        return [first, *found[: self.positions - 2], last]

    def run(self, text: str) -> Outputs:
        """As `Reader.run`: "own" [D], of length 1."""
        return {"own": self.table.encode(text)}


def table_of(encoder: Encoder, dimensions: int = DIMENSIONS) -> NDArray[np.float32]:
    """The vectors [V, D] of an encoder's entries, of at most so many dimensions.

    Entries that no text has, such as [CLS], have zeros. So has [UNK], which model2vec skips and sentence-transformers
    does not: a row of zeros changes the length of a mean but not its direction, so that both give the same vector.
    """
    entries = encoder.tokenizer.vocabulary
    kept = [i for i, entry in enumerate(entries) if entry not in _LEFT_OUT and not _UNUSED.match(entry)]
    reduced_KD = principal_components(_states(encoder, kept), dimensions)
    table_VD = np.zeros((len(entries), reduced_KD.shape[1]), np.float32)
    table_VD[kept] = reduced_KD * _weights(len(kept))[:, None]
    table_VD[encoder.tokenizer.ids(UNK)] = 0
    return table_VD


def _states(encoder: Encoder, ids: Sequence[int]) -> NDArray[np.float32]:
    """The mean [K, H] of the last hidden states of [CLS] entry [SEP], for each id."""
    cls, sep, mask = map(encoder.tokenizer.ids, (CLS, SEP, MASK))
    states_KH = np.zeros((len(ids), encoder.model.config.hidden_size), np.float32)
    for first in range(0, len(ids), _AT_ONCE):
        some = ids[first : first + _AT_ONCE]
        packed = packed_sequences([([cls, i, sep], []) for i in some], mask)
        with torch.inference_mode():
            hidden_TH = encoder.model.encoder(packed)
        states_KH[first : first + len(some)] = hidden_TH.view(len(some), 3, -1).mean(1).float().numpy()
    return states_KH


def principal_components(states_KH: NDArray[np.float32], dimensions: int) -> NDArray[np.float64]:
    """The states less their mean on their principal components [K, D], the largest first, in float64; as they are if
    there are no more states than dimensions.

    Each component points to where its largest value is positive, so that the result is the same on each machine.
    """
    dimensions = min(dimensions, states_KH.shape[1])
    if dimensions >= len(states_KH):
        return states_KH.astype(np.float64)
    centred_KH = states_KH - states_KH.mean(0, dtype=np.float64)
    _, axes_HH = np.linalg.eigh(centred_KH.T @ centred_KH)  # in the order of rising variance
    reduced_KD: NDArray[np.float64] = centred_KH @ axes_HH[:, ::-1][:, :dimensions]
    largest_D = np.take_along_axis(reduced_KD, np.abs(reduced_KD).argmax(0)[None], 0)[0]
    reduced_KD *= np.sign(largest_D)
    return reduced_KD


def _weights(count: int) -> NDArray[np.float64]:
    """The weights [K] by smooth inverse frequency."""
    frequency_K = 1 / np.arange(2, count + 2)
    weights_K: NDArray[np.float64] = SIF / (SIF + frequency_K / frequency_K.sum())
    return weights_K
