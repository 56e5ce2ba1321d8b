"""The models that answer, by their heads: classes of texts, tags of words, answers in texts, choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import read_json
from bertwright.examples.labelled.files import TextFiles
from bertwright.finetune.guess import find_texts
from bertwright.model.classifier import Classifier
from bertwright.model.text_encoder import Encoder
from bertwright.pipeline.run_folder import recorded_recipe
from bertwright.predict.records import clean
from bertwright.predict.source import Answer, Answerer
from bertwright.tasks.choice.config import ChoiceFiles
from bertwright.tasks.choice.layout import Layout, choices_of, find_layout
from bertwright.tasks.span.answer import Answering, answer_questions
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.span.run import SpanKind
from bertwright.tasks.span.windows import Read, guesses
from bertwright.tasks.tagging.files import words_of

Kind = type[str] | type[float] | type[list[str]] | type[list[float]]


class Names(NamedTuple):
    """What the user names; "" is guessed."""

    text: str = ""
    pair: str = ""


class Classes(Answerer):
    """A classifier of texts and pairs, or a model that predicts numbers for them; of several labels it gives those
    with a probability above 0.5."""

    lacking: ClassVar[str] = "records without a text"

    def __init__(self, encoder: Encoder, names: Names, trained: Sequence[Names] = ()) -> None:
        self.encoder, self.labels = encoder, encoder.model.config.labels
        self.names, self.wanted = names, [names] if any(names) else trained
        """The columns that the user names; and these, or alternatives of those that it was trained on."""
        self._columns = ("", "")

    @property
    def added(self) -> Mapping[str, Kind]:
        """As `Answerer.added`; a number has no probability."""
        if self._several:
            return {"prediction": list[str], "probability": list[float]}
        return {"prediction": float} if len(self.labels) == 1 else {"prediction": str, "probability": float}

    @property
    def _several(self) -> bool:
        return self.encoder.model.config.head == "several"

    def of_line(self, line: str) -> Any:
        """As `Answerer.of_line`: a text, or two with a tab between them."""
        first, tab, second = line.partition("\t")
        return (first, second) if tab else first

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        """As `Answerer.find`."""
        there = [each for each in self.wanted if all(name in some[0] for name in each if name)]
        # If the user names a column that is not there, it is an error; otherwise columns are guessed.
        self._columns = find_texts(file, some, *next(iter(there), self.names))

    def by_number(self, header: Sequence[str]) -> bool:
        """As `Answerer.by_number`."""
        names = [name for each in self.wanted[:1] for name in each if name]
        return bool(names) and all(map(str.isdigit, names)) and not all(name in header for name in names)

    def of_record(self, record: Mapping[str, Any]) -> Any:
        """As `Answerer.of_record`."""
        texts = tuple(clean(record.get(name)) for name in self._columns if name)
        if None in texts:
            return None
        return texts if len(texts) > 1 else texts[0]

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        """As `Answerer.answer`."""
        return [self._answer(each, found) for each, found in zip(some, self.encoder.classify(some), strict=True)]

    def _answer(self, question: str | tuple[str, str], found: dict[str, float]) -> Answer:
        texts = question if isinstance(question, tuple) else (question,)
        details: dict[str, Any] = dict(zip(("text", "pair"), texts, strict=False))
        if self._several:
            given = {name: p for name, p in found.items() if p > 0.5}
            names, shares = list(given), list(given.values())
            row = ["|".join(names), "|".join(f"{share:.4f}" for share in shares), *texts]
            details |= {"labels": names, "probabilities": found}
            return Answer({"prediction": names, "probability": shares}, [row], details)
        label = max(found, key=found.__getitem__)
        value = found[label]
        if len(self.labels) == 1:
            return Answer({"prediction": value}, [[f"{value:.4f}", *texts]], {**details, "numbers": found})
        added = {"prediction": label, "probability": value}
        all_of_it = {**details, "label": label, "probability": value, "probabilities": found}
        return Answer(added, [[label, f"{value:.4f}", *texts]], all_of_it)


class Tags(Answerer):
    """A tagger of words."""

    lacking: ClassVar[str] = "records without a list of words"

    def __init__(self, encoder: Encoder, names: Names) -> None:
        self.encoder, self.names = encoder, names
        self.labels = encoder.model.config.labels

    @property
    def added(self) -> Mapping[str, Kind]:
        """As `Answerer.added`."""
        return {"prediction": list[str], "probability": list[float]}

    def of_line(self, line: str) -> Any:
        """As `Answerer.of_line`: words with spaces between them."""
        return line.split()

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        """As `Answerer.find`."""
        if not any(words_of(each, self.names.text) for each in some):
            named = f" below {self.names.text!r}" if self.names.text else ""
            raise DataError(f"{file} has no list of words{named}. Name its key (--text NAME).")

    def of_record(self, record: Mapping[str, Any]) -> Any:
        """As `Answerer.of_record`."""
        words = words_of(record, self.names.text)
        return None if words is None or None in map(clean, words) else words

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        """As `Answerer.answer`."""
        return [self._answer(words, found) for words, found in zip(some, self.encoder.tag(some), strict=True)]

    def _answer(self, words: list[str], found: list[tuple[str, float]]) -> Answer:
        tags, shares = [tag for tag, _ in found], [share for _, share in found]
        rows = [[word, tag, f"{share:.4f}"] for word, tag, share in zip(words, tags, shares, strict=True)]
        details = {"words": words, "tags": tags, "probabilities": shares}
        return Answer({"prediction": tags, "probability": shares}, [*rows, []], details)


class Spans(Answerer):
    """A model that answers questions from texts."""

    lacking: ClassVar[str] = "questions without a text"
    _QUESTIONS: ClassVar[Sequence[str]] = ("question", "query")
    _TEXTS: ClassVar[Sequence[str]] = ("context", "passage", "paragraph", "document", "text")

    def __init__(self, encoder: Encoder, names: Names, folder: Path, threshold: float | None) -> None:
        self.encoder, self.names = encoder, names
        run = run_of(folder)
        self.threshold = threshold if threshold is not None or run is None else _threshold(run)
        """Above it no answer is given; None: there is always one."""
        settings, length = SpanConfig(), 384
        if run is not None:
            recipe, _ = recorded_recipe(run)
            assert isinstance(recipe.task, SpanConfig)
            settings, length = recipe.task, recipe.evaluate_length()
        length = min(length, encoder.model.config.max_position_embeddings)
        # A model of few positions, which no training has checked: a window must have room beside its question.
        third = length // 3
        shortened = {"max_query": min(settings.max_query, third), "stride": min(settings.stride, third)}
        settings = settings.model_copy(update=shortened)
        self._settings = Answering(settings, length)
        self._kind = SpanKind(settings.files)
        self._columns = ("", "")

    @property
    def added(self) -> Mapping[str, Kind]:
        """As `Answerer.added`."""
        return {"prediction": str, "probability": float}

    def of_line(self, line: str) -> Any:
        """As `Answerer.of_line`: a question and its text, with a tab between them."""
        question, _, text = line.partition("\t")
        return (question, text) if question.strip() and text.strip() else None

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        """As `Answerer.find`."""
        names = {str(name).lower(): name for name in some[0]}
        found = [
            given or next((names[name] for name in usual if name in names), "")
            for given, usual in zip(self.names, (self._QUESTIONS, self._TEXTS), strict=True)
        ]
        for name, what, option in zip(found, ("questions", "texts"), ("--text", "--pair"), strict=True):
            if name not in some[0]:
                listed = ", ".join(map(repr, some[0]))
                raise DataError(f"{file} has the columns {listed}; none is that of the {what}. Name it: {option} NAME.")
        self._columns = (found[0], found[1])

    def of_record(self, record: Mapping[str, Any]) -> Any:
        """As `Answerer.of_record`."""
        question, text = (clean(record.get(name)) for name in self._columns)
        return (question, text) if question and question.strip() and text and text.strip() else None

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        """As `Answerer.answer`."""
        assert isinstance(self.encoder.model, Classifier)
        read = answer_questions(self.encoder.model, self.encoder.tokenizer, self._kind, some, self._settings)
        return [self._answer(asked, each) for asked, each in zip(some, read, strict=True)]

    def _answer(self, asked: tuple[str, str], read: Read) -> Answer:
        question, text = asked
        best = read.candidates[0] if read.candidates else None
        none = best is None or (self.threshold is not None and read.none - best.score > self.threshold)
        answer = "" if none or best is None else text[best.begin : best.end]
        found = guesses(text, read, self.threshold)
        share = found[0]["probability"] if found else 0.0
        details: dict[str, Any] = {"question": question, "answer": answer, "probability": share}
        if not none and best is not None:
            details |= {"begin": best.begin, "end": best.end}
        return Answer({"prediction": answer, "probability": share}, [[answer, f"{share:.4f}", question, text]], details)


class Choices(Answerer):
    """A model that chooses what fits a text best."""

    lacking: ClassVar[str] = "questions without a text and two choices"

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self.encoder = encoder
        run = run_of(folder)
        files = recorded_recipe(run)[0].task.files if run is not None else None
        self._layout = files.layout if isinstance(files, ChoiceFiles) else Layout()

    @property
    def added(self) -> Mapping[str, Kind]:
        """As `Answerer.added`."""
        return {"prediction": str, "probability": float}

    def of_line(self, line: str) -> Any:
        """As `Answerer.of_line`: a text and its choices, with tabs between them."""
        text, *choices = line.split("\t")
        return (text, choices, choices) if text.strip() and len(choices) > 1 else None

    def find(self, file: Path, some: Sequence[Mapping[str, Any]]) -> None:
        """As `Answerer.find`."""
        self._layout = find_layout(file, some, self._layout)

    def of_record(self, record: Mapping[str, Any]) -> Any:
        """As `Answerer.of_record`."""
        layout = self._layout
        text, question = layout.text(record, layout.context), layout.text(record, layout.question)
        choices = [each for each in choices_of(record, layout.choices)[0] if each]
        if not text or question is None or None in map(clean, (text, question, *choices)) or len(choices) < 2:
            return None
        return text, [f"{question} {choice}".strip() for choice in choices], choices

    def answer(self, some: Sequence[Any]) -> list[Answer]:
        """As `Answerer.answer`."""
        found = self.encoder.choose([(text, endings) for text, endings, _ in some])
        return [self._answer(text, choices, shares) for (text, _, choices), shares in zip(some, found, strict=True)]

    def _answer(self, text: str, choices: Sequence[str], shares: list[float]) -> Answer:
        best = max(range(len(shares)), key=shares.__getitem__)
        added = {"prediction": choices[best], "probability": shares[best]}
        details = {"text": text, "choices": choices, "choice": best, "probabilities": shares}
        return Answer(added, [[choices[best], f"{shares[best]:.4f}", text]], details)


def answerer_of(folder: Path, encoder: Encoder, names: Names, threshold: float | None) -> Answerer:
    """What answers with the model in `folder`; raises `RecipeError` if its network has no head that answers."""
    config = encoder.model.config
    head = config.head if config.labels else ""
    if threshold is not None and head != "span":
        raise RecipeError("--threshold has an effect only for a model that answers questions. Leave it out.")
    if (head == "token" and names.pair) or (head == "choice" and any(names)):
        options = "--pair" if head == "token" else "--text and --pair"
        raise RecipeError(f"{options} have no effect with a model for {'words' if head == 'token' else 'choices'}.")
    match head:
        case "sequence" | "several":
            return Classes(encoder, names, _trained_on(folder))
        case "token":
            return Tags(encoder, names)
        case "span":
            return Spans(encoder, names, folder, threshold)
        case "choice":
            return Choices(encoder, folder)
    raise RecipeError(
        f"{folder} neither classifies texts nor tags words nor answers questions: bertwright finetune trains it to."
    )


def run_of(folder: Path) -> Path | None:
    """The run that a model's folder belongs to: the folder itself, or that of its `train` or `export/hf`."""
    above = (folder, *folder.resolve().parents[:2])
    return next((each for each in above if (each / "recipe.toml").is_file()), None)


def _trained_on(folder: Path) -> list[Names]:
    """The columns of texts that the model's run was trained on, alternatives for different releases of the data."""
    run = run_of(folder)
    files = recorded_recipe(run)[0].task.files if run is not None else None
    return [Names(each.first, each.second) for each in files.described.columns] if isinstance(files, TextFiles) else []


def _threshold(run: Path) -> float | None:
    file = run / "evaluate" / "scores.json"
    found = read_json(file).get("threshold") if file.is_file() else None
    return None if found is None else float(found)
