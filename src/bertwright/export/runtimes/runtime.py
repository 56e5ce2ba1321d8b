"""What a runtime is: a program that runs a published model, with the format that it reads.

A runtime is a file of this folder and a line in `members`. Its module imports the program's package only inside
functions, because most machines have few of them.

Names carry shapes: T tokens, H hidden, C classes, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import ArtifactError
from bertwright.model.config_file import read_config_file

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


class Runtime(Protocol):
    """A program, and a precision where it has several."""

    @property
    def name(self) -> str:
        """The word of `--to` and `--runtimes`, such as "onnx-int8"."""
        ...

    @property
    def title(self) -> str:
        """For tables: "ONNX Runtime, int8"."""
        ...

    @property
    def package(self) -> str:
        """The distribution whose version is reported."""
        ...

    @property
    def install(self) -> str:
        """What a user types to get it."""
        ...

    @property
    def folder(self) -> str:
        """The folder of its files inside the published one, "onnx"; "" if it reads the published folder itself."""
        ...

    @property
    def file(self) -> str:
        """The file whose presence in `folder` says that it was written, "model.onnx"; "" if there is no folder."""
        ...

    @property
    def reads(self) -> str:
        """The runtime that writes what it reads; its own name, or "" if it reads the published folder itself."""
        ...

    @property
    def rounds(self) -> bool:
        """Whether its numbers have less than float32's precision by intent."""
        ...

    def version(self) -> str:
        """The version of the package; "" if it is not installed."""
        ...

    def missing(self) -> str:
        """Why it cannot be used on this machine, and what to install; "" if it can."""
        ...

    def refusal(self, model: Published) -> str:
        """Why it cannot run this model, in a sentence for people; "" if it can."""
        ...

    def write(self, model: Published, out: Path) -> None:
        """Write its files into the existing, empty folder `out`; nothing for one that reads the published folder."""
        ...

    def open(self, model: Published, out: Path, threads: int) -> AbstractContextManager[Reader]:
        """Open what was written to `out`, or the published folder, for use by `threads` threads."""
        ...


@runtime_checkable
class Explains(Protocol):
    """A runtime with a tokenizer of its own, of which it is known for which texts it gives other ids."""

    def explain(self, model: Published, text: str) -> str:
        """Why it gives other ids for this text, with the piece of it that does; "" if that is not known."""
        ...


def installed(package: str) -> str:
    """The version of a distribution, "" if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return ""
