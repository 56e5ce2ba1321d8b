"""An exam for any language, made from held-out documents of its own wiki, because most languages have no test set.

    link titles   the text of a link in its sentence, or four others of the same category (`cloze`)
    inflection    a word of a sentence, or another form of it: the right sentence must be more probable
    order         two neighbouring sentences, or the same two swapped: the right order must be more probable
    belonging     the beginning of an article, its later part, and later parts of four other articles: the vectors of
                  the beginning and of its own part must be the most alike

Forms of a word are found by their common beginning, so the exam suits languages that inflect at the end of words; in a
language without inflection it has few such items. A swapped form is sometimes right, too, and two sentences sometimes
stand in either order, so no model reaches 100 %: compare models on the same items, and checkpoints of a run.

A sentence that also stands in the training text is in no item. Memory does not grow with the corpus.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import regex
from pydantic import Field

from bertwright.core.artifact import Artifact
from bertwright.core.config import UserPath
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import write_atomic
from bertwright.core.rng import key
from bertwright.corpus.heldout import heldout_documents, split_documents
from bertwright.corpus.words import count_tokens, has_unspaced
from bertwright.exams.cloze import OTHERS, Cloze, make_cloze, right_titles
from bertwright.exams.exam import Exam, Score, evenly, share_of
from bertwright.exams.minimal_pairs import Pair, score_pairs
from bertwright.model.pretraining import PreTrainingModel
from bertwright.model.text_encoder import Encoder

ITEMS = 200
"""Items of each kind, at most."""
DISTRACTORS = 4
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
_SENTENCE = (6, 40)
"""Words of a sentence that items are made of."""
_FEWEST = 5
"""Occurrences of a word in the training text, at least, for its forms to be compared."""
_COUNTED = 1_000_000
"""Sentences of the training text whose words are counted, at most."""
_LONGEST_ORDER = 40
"""Words of two sentences whose order is asked for, at most: what a score costs grows with the square of its length."""


Fresh = Callable[[str], bool]
"""Whether a sentence is not in the training text."""


@dataclass(frozen=True)
class Belonging:
    """The beginning of an article, and parts of articles, of which the first belongs to it."""

    beginning: str
    parts: tuple[str, ...]


@dataclass(frozen=True)
class WikiExam:
    """The items of an exam."""

    cloze: tuple[Cloze, ...]
    inflection: tuple[Pair, ...]
    order: tuple[Pair, ...]
    belonging: tuple[Belonging, ...]

    def write(self, path: Path) -> None:
        """Write the items as JSON, so that other programs can take the exam."""
        pairs = {name: [each._asdict() for each in found] for name, found in self._pairs.items()}
        cloze, belonging = [each._asdict() for each in self.cloze], [asdict(each) for each in self.belonging]
        items = {"cloze": cloze, **pairs, "belonging": belonging}
        write_atomic(path, json.dumps(items, ensure_ascii=False, indent=1).encode())

    @property
    def _pairs(self) -> dict[str, tuple[Pair, ...]]:
        return {"inflection": self.inflection, "order": self.order}

    @classmethod
    def read(cls, path: Path) -> WikiExam:
        """Read items that `write` wrote; raises `DataError` if the file has others."""
        try:
            items: Any = json.loads(path.read_text(encoding="utf-8"))
            pairs = {name: tuple(Pair(**each) for each in items[name]) for name in ("inflection", "order")}
            cloze = tuple(Cloze(**{**each, "titles": tuple(each["titles"])}) for each in items["cloze"])
            belonging = tuple(Belonging(each["beginning"], tuple(each["parts"])) for each in items["belonging"])
        except (ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is no exam made from a wiki ({error}). Make it again.") from error
        return cls(cloze=cloze, **pairs, belonging=belonging)


class Wiki(Exam):
    """Link titles, inflection, order and belonging: an exam made from held-out documents of a wiki."""

    kind: Literal["wiki"] = "wiki"
    data: UserPath | None = None
    """The items, as `WikiExam.write` wrote them."""
    items: WikiExam | None = Field(None, exclude=True)
    """The items themselves, instead of a file."""

    def take(self, encoder: Encoder) -> Iterator[Score]:
        """As `Exam.take`."""
        if self.items is None and self.data is None:
            raise RecipeError("wiki: data is missing. Give the file with the items of the exam.")
        items = self.items or WikiExam.read(self.data or Path())
        yield from score_wiki(encoder, items, self.title)


def score_wiki(encoder: Encoder, exam: WikiExam, title: str) -> Iterator[Score]:
    """Yield the scores of a model; those that need a head for masked tokens are left out if it has none."""
    chance = 1 / (1 + OTHERS)
    if isinstance(encoder.model, PreTrainingModel):
        if exam.cloze:
            yield share_of(right_titles(encoder, exam.cloze), title, "link titles", chance)
        for pairs in (exam.inflection, exam.order):
            if pairs:
                yield from score_pairs(encoder, pairs, title)
    if exam.belonging:
        texts = [text for each in exam.belonging for text in (each.beginning, *each.parts)]
        vectors = encoder.encode(texts).reshape(len(exam.belonging), 2 + DISTRACTORS, -1)
        vectors /= np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12)
        similar = np.einsum("nh,nph->np", vectors[:, 0], vectors[:, 1:])
        # A tie is wrong.
        right = (similar[:, :1] > similar[:, 1:]).all(1)
        yield share_of(right, title, "belonging", chance)


def make_exam(corpus: Artifact, heldout: float, items: int = ITEMS) -> WikiExam:
    """Make an exam from the documents of a corpus that the stage `examples` holds out; `heldout` is their share.

    The same corpus always gives the same items. Raises `DataError` if no document is held out.
    """
    held, train = heldout_documents(corpus, heldout), Counter[str]()
    if not held:
        raise DataError(f"none of the documents is held out with examples.heldout={heldout:g}. Raise it.")
    asked, leaked, counted = {sentence for document in held for sentence in document}, set[str](), 0
    for is_held, document in split_documents(corpus, heldout):
        if not is_held:
            # A sentence that also stands in the training text, such as a formula of stubs, shows nothing.
            leaked.update(asked.intersection(document))
            if counted < _COUNTED:
                train.update(_WORD.findall("\n".join(document)))
                counted += len(document)

    def fresh(sentence: str) -> bool:
        return sentence not in leaked

    def known(text: str) -> bool:
        # In a script without spaces words cannot be looked up.
        words = _WORD.findall(text)
        return has_unspaced(text) or (any(len(word) > 1 for word in words) and all(train[word] for word in words))

    cloze = list(make_cloze(corpus, held, lambda sentence: _usable(sentence) and fresh(sentence), known))
    by_category = [each for each in cloze if each.by == "category"]
    return WikiExam(
        tuple(_in_rounds([by_category, cloze[len(by_category) :]], items)),
        tuple(evenly(list(_inflection(held, train, fresh)), items)),
        tuple(_order(held, fresh, items)),
        tuple(evenly(list(_belonging(held, fresh)), items)),
    )


def _in_rounds(rounds: Iterable[Sequence[Any]], most: int) -> list[Any]:
    """At most `most`: all of the first rounds, and of the last one some, spread evenly."""
    chosen: list[Any] = []
    for found in rounds:
        chosen += evenly(found, most - len(chosen))
    return chosen


def _usable(sentence: str) -> bool:
    return _SENTENCE[0] <= count_tokens(sentence) <= _SENTENCE[1]


def _inflection(documents: Iterable[list[str]], counts: Counter[str], fresh: Fresh) -> Iterator[Pair]:
    """Yield for each usable sentence one word in another form of about the same frequency."""
    forms = _forms(counts)
    for number, document in enumerate(documents):
        for at, sentence in enumerate(document):
            # The first word is in upper case, as some of its forms are not.
            words = [match for match in _WORD.finditer(sentence) if match.start() and match[0] in forms]
            if not words or not _usable(sentence) or not fresh(sentence):
                continue
            draw = key("wiki exam", "inflection", number, at)
            word = words[draw % len(words)]
            others = forms[word[0]]
            form = others[draw // len(words) % len(others)]
            yield Pair(sentence, sentence[: word.start()] + form + sentence[word.end() :], "inflection")


def _forms(counts: Counter[str]) -> dict[str, list[str]]:
    """For each frequent word the other words with the same beginning and at most twice or half its frequency.

    The beginning is two thirds of the longer word, at least four letters: what remains is an ending.
    """
    groups: dict[str, list[str]] = defaultdict(list)
    for word, count in sorted(counts.items()):
        if count >= _FEWEST and len(word) >= 5:
            groups[word[:4]].append(word)
    forms: dict[str, list[str]] = {}
    for group in groups.values():
        for word in group:
            half, double = counts[word] / 2, counts[word] * 2
            if found := [each for each in group if _alike(word, each) and half <= counts[each] <= double]:
                forms[word] = found
    return forms


def _alike(word: str, other: str) -> bool:
    if word == other or word[0].isupper() != other[0].isupper():
        return False
    shared = next((i for i, (a, b) in enumerate(zip(word, other, strict=False)) if a != b), min(len(word), len(other)))
    return shared >= max(4, -(-2 * max(len(word), len(other)) // 3))


def _order(documents: Iterable[list[str]], fresh: Fresh, most: int) -> list[Pair]:
    """Two neighbouring sentences from the middle of documents, and the same swapped: a pair of each document, then a
    second one of each, and so on."""
    found: list[list[Pair]] = []
    for number, document in enumerate(documents):
        usable = [_usable(sentence) and fresh(sentence) for sentence in document]
        # Every second sentence, so that no two pairs share one.
        places = [i for i in range(1, len(document) - 1, 2) if usable[i] and usable[i + 1]]
        pairs = [(document[i], document[i + 1]) for i in places]
        short = [pair for pair in pairs if count_tokens(" ".join(pair)) <= _LONGEST_ORDER]
        first = key("wiki exam", "order", number) % max(len(short), 1)
        found.append([Pair(f"{a} {b}", f"{b} {a}", "order") for a, b in (*short[first:], *short[:first])])
    ranks = range(max(map(len, found), default=0))
    return _in_rounds(([each[rank] for each in found if len(each) > rank] for rank in ranks), most)


def _belonging(documents: Sequence[list[str]], fresh: Fresh) -> Iterator[Belonging]:
    """Yield the beginning of each document of at least eight sentences, with its end and the ends of four others."""
    long = [each for each in documents if len(each) >= 8 and all(map(fresh, (*each[:3], *each[-3:])))]
    if len(long) <= DISTRACTORS:
        return
    for number, document in enumerate(long):
        draw = key("wiki exam", "belonging", number)
        step = 1 + draw % max((len(long) - 1) // DISTRACTORS, 1)
        others = [long[(number + step * (i + 1)) % len(long)] for i in range(DISTRACTORS)]
        yield Belonging(" ".join(document[:3]), tuple(" ".join(each[-3:]) for each in (document, *others)))
