"""The answers of a model to questions about texts, which need no examples artifact."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bertwright.core.log import SILENT
from bertwright.examples.loader import Heldout
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.model import Model
from bertwright.tasks.objective import outputs
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.span.examples import SpanExamples
from bertwright.tasks.span.files import Question
from bertwright.tasks.span.run import SpanKind
from bertwright.tasks.span.windows import Read, by_window, read_answers
from bertwright.vocab.tokenizer import Tokenizer


class Answering(NamedTuple):
    """How questions are read and answered."""

    span: SpanConfig
    length: int
    """Maximum length of a window with its question, special tokens included (tokens)."""
    batch: int = 32


def answer_questions(
    model: Model, tokenizer: Tokenizer, kind: SpanKind, asked: Sequence[tuple[str, str]], settings: Answering
) -> list[Read]:
    """What the model says about each question, given with its text; `kind` tokenises them."""
    questions = [Question("", question, text, (), True) for question, text in asked]
    examples = SpanExamples(kind.columns(questions, tokenizer), settings.length, Vocabulary.of(tokenizer))
    # Windows of similar length together, so that none waits for a long one.
    order = np.argsort(examples.windows[:, 2] - examples.windows[:, 1], kind="stable")
    batches = list(Heldout(examples, order).batches(settings.batch))
    logits = by_window(list(outputs(model, batches, SILENT)), batches)
    found = read_answers(examples, order, logits, settings.span.max_answer)
    return [found.get(number, Read()) for number in range(len(asked))]
