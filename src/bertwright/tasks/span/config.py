"""The task `span` in a recipe. Does not import torch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

from bertwright.examples.own_files import OwnFiles
from bertwright.examples.problems import Problems
from bertwright.model.family import ANSWERS
from bertwright.tasks.task import TaskSettings

if TYPE_CHECKING:
    from bertwright.model.config import ModelConfig, NetworkConfig
    from bertwright.tasks.span.files import Question


@dataclass(frozen=True)
class SpanFiles(OwnFiles):
    """How to read files of questions about texts."""

    unit: ClassVar[str] = "questions"
    suffixes: ClassVar[tuple[str, ...]] = (".json", ".jsonl", ".parquet", ".arrow")

    stride: int
    max_query: int

    @property
    def labels(self) -> tuple[str, ...]:
        """What is predicted: a place in the text, which is no class."""
        return ("answer",)

    @property
    def pairs(self) -> bool:
        """As `OwnFiles.pairs`: [CLS] question [SEP] text [SEP]."""
        return True

    @property
    def settings(self) -> Mapping[str, Any]:
        """As `OwnFiles.settings`."""
        return {"labels": list(self.labels), "stride": self.stride, "max_query": self.max_query}

    def read(self, file: Path, problems: Problems) -> Iterator[Question]:
        """As `OwnFiles.read`."""
        from bertwright.tasks.span.files import read_questions  # not needed by other tasks

        for question in read_questions(file, problems):
            if question.labelled:
                yield question
            else:
                problems.add("questions without a list of answers, as in a test set, are skipped", question.id)

    def texts(self, example: Question) -> Sequence[str]:
        """As `OwnFiles.texts`."""
        return example.question, example.context

    def held_together(self, example: Question) -> Sequence[str]:
        """As `OwnFiles.held_together`: the questions about a text."""
        return (example.context,)


class SpanConfig(TaskSettings):
    """Finds the answer to a question in a text (Devlin et al. 2019 §4.2 and 4.3): its first and its last token, or that
    the text has none. The data of the phases are files of questions, as SQuAD has them; training starts from random
    weights, or from the pre-trained network named by `train.init_from`."""

    kind: Literal["span"] = "span"
    """Names this objective."""
    stride: Annotated[int, Field(ge=0, le=4096)] = 128
    """Tokens that consecutive windows of a text share if it is too long for one sequence: `doc_stride` of
    transformers' run_qa. (In BERT's run_squad, doc_stride is the distance between their beginnings.)"""
    max_query: Annotated[int, Field(ge=1, le=4096)] = 64
    """Tokens of a question; the rest is cut, as in BERT's run_squad."""
    max_answer: Annotated[int, Field(ge=1, le=4096)] = 30
    """Tokens of the longest answer that is given, as in BERT's run_squad."""

    @property
    def files(self) -> SpanFiles:
        """As `TaskSettings.files`."""
        return SpanFiles(self.stride, self.max_query)

    def next_sentence(self, pairs: bool) -> bool:
        """As `TaskSettings.next_sentence`: a classifier of tokens replaces the pre-training heads."""
        return False

    def network(self, model: ModelConfig, entries: int, pairs: bool) -> NetworkConfig:
        """As `TaskSettings.network`: with two logits for each token in place of the pre-training heads."""
        return model.resolve(entries, False, ANSWERS["span"], "span")
