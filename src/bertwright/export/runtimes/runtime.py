"""What a runtime is: a program that runs a published model, with the format that it reads.

A runtime is a file of this folder and a line in `members`. Its module imports the program's package only inside
functions, because most machines have few of them.

Names carry shapes: T tokens, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import ArtifactError
from bertwright.core.files import MAX_JSON, read_bytes
from bertwright.model.config_file import read_config_file
from bertwright.model.interop.vector_files import gives_unit_means
from bertwright.vocab.entries import MASK

Head = Literal["encoder", "masked", "sequence", "token", "span", "choice"]
"""What a published network answers: hidden states alone, a word for each [MASK], the classes of a text or of its
tokens, the ends of an answer, or which of several texts is meant."""
HEADS: Mapping[str, Head] = {
    "Model": "encoder",
    "ForMaskedLM": "masked",
    "ForPreTraining": "masked",
    "ForSequenceClassification": "sequence",
    "ForTokenClassification": "token",
    "ForQuestionAnswering": "span",
    "ForMultipleChoice": "choice",
}
"""The ends of the names of transformers' classes."""

Output = Literal["hidden", "vector", "own", "logits"]
"""What a runtime computes of a text: the hidden states [T, H] of the last layer, their mean [H] over all tokens of the
text including [CLS] and [SEP], a vector in a space of the runtime's own, or the logits of the head: [V] at the only
[MASK] of the text, [C] of the text, [T, C] of its tokens, [T, 2] of the ends of answers, [1] of a choice."""
Outputs = Mapping[Output, NDArray[np.float32]]


@dataclass(frozen=True)
class Published:
    """A folder in the format of transformers, whoever wrote it."""

    folder: Path

    @cached_property
    def config(self) -> Mapping[str, Any]:
        """Its config.json."""
        return read_config_file(self.folder / "config.json")

    @property
    def family(self) -> str:
        """The `model_type`, such as "bert"."""
        return str(self.config.get("model_type", ""))

    @property
    def architecture(self) -> str:
        """The class of transformers, such as "BertForMaskedLM"."""
        names = self.config.get("architectures")
        if not isinstance(names, list) or not names:
            raise ArtifactError(f'{self.folder}/config.json names no class; add "architectures": ["BertModel"] or such')
        return str(names[0])

    @property
    def positions(self) -> int:
        """The tokens that it reads at most, with [CLS] and [SEP]."""
        positions = self.config.get("max_position_embeddings")
        if not isinstance(positions, int):
            raise ArtifactError(f"{self.folder}/config.json has no max_position_embeddings, the tokens that it reads")
        # The first positions of these belong to padding.
        return positions - int(self.config.get("pad_token_id", 1)) - 1 if "roberta" in self.family else positions

    @cached_property
    def unit_vectors(self) -> bool:
        """Whether its files say that the vector of a text is the mean of its hidden states divided by its length."""
        return gives_unit_means(self.folder)

    @property
    def mask(self) -> str:
        """The token that stands for a word to guess: BERT's [MASK], unless the tokenizer's files say otherwise."""
        for name in ("special_tokens_map.json", "tokenizer_config.json"):
            if (path := self.folder / name).is_file():
                stated = json.loads(read_bytes(path, MAX_JSON)).get("mask_token")
                if token := stated.get("content") if isinstance(stated, dict) else stated:
                    return str(token)
        return MASK

    @property
    def head(self) -> Head:
        """What it answers."""
        for end, head in HEADS.items():
            if self.architecture.endswith(end):
                return head
        raise ArtifactError(
            f"{self.folder} is a {self.architecture}; known are networks whose class ends with {', '.join(HEADS)}"
        )


class Reader(Protocol):
    """A published model, opened in a runtime with a given number of threads."""

    def ids(self, text: str) -> list[int]:
        """The token ids of a text with [CLS] and [SEP], cut to the positions that the model has."""
        ...

    def run(self, text: str) -> Outputs:
        """What the runtime computes of one text, the same outputs for each: "hidden" [T, H], "vector" [H], "logits"."""
        ...


class Runtime(ABC):
    """A program, and a precision where it has several. The attributes are set by its class or its constructor."""

    name: str
    """The word of `--to` and `--runtimes`, such as "onnx-int8"."""
    title: str
    """For tables: "ONNX Runtime, int8"."""
    package: str
    """The distribution whose version is reported."""
    needs: tuple[str, ...] = ()
    """Other distributions that it needs."""
    install: str
    """What a user types to get it."""
    folder: str = ""
    """The folder of its files inside the published one, "onnx"; "" if it reads the published folder itself."""
    file: str = ""
    """The file whose presence in `folder` says that it was written, "model.onnx"; "" if there is no folder."""
    reads: str = ""
    """The runtime that writes what it reads; its own name, or "" if it reads the published folder itself."""
    rounds: bool = False
    """Whether its numbers have less than float32's precision by intent."""

    def version(self) -> str:
        """The version of the package; "" if it is not installed."""
        return installed(self.package)

    def missing(self) -> str:
        """Why it cannot be used on this machine, and what to install; "" if it can."""
        gone = [name for name in (*self.needs, self.package) if not installed(name)]
        return f"{' and '.join(gone)} {'are' if gone[1:] else 'is'} not installed: {self.install}" if gone else ""

    def missing_to_write(self) -> str:
        """Why its files cannot be written on this machine, and what to install; "" if they can."""
        return self.missing()

    @abstractmethod
    def refusal(self, model: Published) -> str:
        """Why it cannot run this model, in a sentence for people; "" if it can."""

    def write(self, model: Published, out: Path) -> None:
        """Write its files into the existing, empty folder `out`; not for one that reads what others write."""
        raise AssertionError(f"{self.name} reads {self.reads or 'the published folder'}")

    @abstractmethod
    def open(self, model: Published, out: Path, threads: int) -> AbstractContextManager[Reader]:
        """Open what was written to `out`, or the published folder, for use by `threads` threads."""

    def explain(self, model: Published, text: str) -> str:
        """Why its tokenizer gives other ids for this text, with the piece that does; "" if that is not known."""
        return ""


def installed(package: str) -> str:
    """The version of a distribution, "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
