"""What programs that run an ONNX model have in common: a text as the inputs of the model, and its outputs as a text's.

Dimensions: S tokens of the text, H hidden.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import ArtifactError
from bertwright.export.onnx.model import ENDS, HIDDEN, IDS, LOGITS, MASK, SEGMENTS
from bertwright.export.runtimes.runtime import Outputs, Published

_TOKENIZER = "tokenizer.json"
Compute = Callable[[Mapping[str, NDArray[np.int64]]], Mapping[str, NDArray[Any]]]
"""The outputs of a program for its inputs, each by name."""


@dataclass(frozen=True)
class OnnxReader:
    """See `Reader`; the tokenizer is the library's, which reads the tokenizer.json of the published folder."""

    tokenizer: Any
    mask: str
    """The token that stands for a word to guess."""
    inputs: Sequence[str]
    """The inputs that the model has."""
    chooses: bool
    """Whether it has several texts in a row of its inputs."""
    compute: Compute
    """Runs the program, with inputs [1, S], or [1, 1, S] for a choice."""

    def ids(self, text: str) -> list[int]:
        """As `Reader.ids`."""
        found: list[int] = self.tokenizer.encode(text).ids
        return found

    def run(self, text: str) -> Outputs:
        """As `Reader.run`: "hidden" [S, H] and "vector" [H] without a classifier, and "logits" of a head."""
        ids = np.array(self.ids(text), np.int64)[(None, None) if self.chooses else None]
        given = {IDS: ids, MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids)}
        found = {name: array[0] for name, array in self.compute({name: given[name] for name in self.inputs}).items()}
        outputs: dict[Any, NDArray[np.float32]] = {}
        if HIDDEN in found:
            outputs = {"hidden": found[HIDDEN], "vector": found[HIDDEN].mean(0)}
        if ENDS[0] in found:
            outputs["logits"] = np.stack([found[end] for end in ENDS], -1)
        elif LOGITS in found and HIDDEN in found:
            outputs["logits"] = found[LOGITS][ids[0].tolist().index(self.tokenizer.token_to_id(self.mask))]
        elif LOGITS in found:
            outputs["logits"] = found[LOGITS]
        return outputs


def text_reader(model: Published, inputs: Sequence[str], compute: Compute) -> OnnxReader:
    """A reader of texts for a program with these `inputs`. Raises `ArtifactError` if there is no tokenizer.json."""
    from tokenizers import Tokenizer

    file = model.folder / _TOKENIZER
    if not file.is_file():
        raise ArtifactError(f"{model.folder} has no {_TOKENIZER}. Save it with AutoTokenizer of transformers.")
    tokenizer = Tokenizer.from_file(str(file))
    tokenizer.no_padding()  # some published files pad each text to their longest
    tokenizer.enable_truncation(model.positions)
    return OnnxReader(tokenizer, model.mask, inputs, model.head == "choice", compute)
