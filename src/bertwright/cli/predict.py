"""`predict`: the answers of a fine-tuned model to texts, pairs or words without labels."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bertwright.cli.options import Json, refuse_useless
from bertwright.cli.text import json_line
from bertwright.core.config import expand_home
from bertwright.core.errors import RecipeError

if TYPE_CHECKING:
    from bertwright.finetune.unlabelled import Question
    from bertwright.model.text_encoder import Encoder

_AT_ONCE = 1024
"""Texts that are read, sorted by length and answered together."""
_SPACES = str.maketrans("\t\r\n", "   ")
"""What would end a cell or a row."""


def predict(
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="A fine-tuned run, or a folder as transformers saves it.")
    ],
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-", help="Texts, pairs or words without labels; - for a text a line from the input."
        ),
    ],
    text: Annotated[str, typer.Option(metavar="NAME", help="Column of the text, or of the words.")] = "",
    pair: Annotated[str, typer.Option(metavar="NAME", help="Column of the second text.")] = "",
    as_json: Json = False,
) -> None:
    """Print the answers of a fine-tuned model: tab-separated, or a JSON object a line."""
    if file != "-" and not Path(file).is_file():
        raise RecipeError(f"there is no file {file}. Give one with texts, or - to read a text a line from the input.")
    from bertwright.model.device import resolve_device
    from bertwright.model.text_encoder import Encoder

    encoder = Encoder(expand_home(model), resolve_device("auto"))
    head = encoder.model.config.head if encoder.model.config.labels else ""
    if head not in ("sequence", "token"):
        what = "answers questions, which predict does not read; its card has a program that does"
        remedy = what if head == "span" else "neither classifies texts nor tags words: bertwright finetune trains it to"
        raise RecipeError(f"{model} {remedy}.")
    if head == "token":
        refuse_useless("for words", {"--pair": bool(pair)})
    if file == "-":
        refuse_useless("for lines of the input", {"--text": bool(text), "--pair": bool(pair)})
    from bertwright.finetune.unlabelled import questions_of, read_questions, read_sentences_of_words, words_of

    if head == "token":
        sentences = words_of(sys.stdin) if file == "-" else read_sentences_of_words(Path(file), text)
        lines = _tags(encoder, sentences, as_json)
    else:
        questions = questions_of(sys.stdin) if file == "-" else read_questions(Path(file), text, pair)
        lines = _classes(encoder, questions, as_json)
    for line in lines:
        print(line)


def _classes(encoder: Encoder, questions: Iterable[Question], as_json: bool) -> Iterator[str]:
    """A row for each text: the class, its probability, the text; of a regression, the number and the text."""
    questions = iter(questions)
    numbers = len(encoder.model.config.labels) == 1
    while some := list(islice(questions, _AT_ONCE)):
        for question, answer in zip(some, encoder.classify(some), strict=True):
            label = max(answer, key=answer.__getitem__)
            texts = question if isinstance(question, tuple) else (question,)
            if as_json:
                facts: dict[str, Any] = {"text": texts[0]} | ({"pair": texts[1]} if len(texts) > 1 else {})
                best = {} if numbers else {"label": label, "probability": answer[label]}
                yield json_line({**facts, **best, ("numbers" if numbers else "probabilities"): answer})
            else:
                cells = [f"{answer[label]:.4f}"] if numbers else [label, f"{answer[label]:.4f}"]
                yield "\t".join(cell.translate(_SPACES) for cell in (*cells, *texts))


def _tags(encoder: Encoder, sentences: Iterable[list[str]], as_json: bool) -> Iterator[str]:
    """A row for each word: the word, its tag, the probability; an empty row after each sentence."""
    sentences = iter(sentences)
    while some := list(islice(sentences, _AT_ONCE)):
        for words, tags in zip(some, encoder.tag(some), strict=True):
            if as_json:
                names, probabilities = [tag for tag, _ in tags], [p for _, p in tags]
                yield json_line({"words": words, "tags": names, "probabilities": probabilities})
            else:
                rows = zip(words, tags, strict=True)
                yield "".join(f"{word.translate(_SPACES)}\t{tag}\t{p:.4f}\n" for word, (tag, p) in rows)
