"""Reads training files to find out what they contain: the columns of texts and labels, the classes, the tags, the
pairs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from bertwright.core.errors import DataError
from bertwright.examples.labelled.records import TABLES, records
from bertwright.examples.own_files import count_first
from bertwright.examples.problems import Problems
from bertwright.finetune.guess_labels import LABELS, find_labels, lacks_header, name_labels
from bertwright.finetune.tasks import FinetuneTask, Key
from bertwright.tasks.choice.files import find_labelling, read_layout
from bertwright.tasks.choice.layout import Layout as ChoiceLayout
from bertwright.tasks.embedding.config import PairFiles
from bertwright.tasks.embedding.files import read_layout as read_pairs
from bertwright.tasks.span.files import read_questions
from bertwright.tasks.tagging.files import Layout, read_sentences
from bertwright.tasks.tagging.schemes import find_scheme, split_tag

_PAIRS = {
    "sentence1": ("sentence2",),
    "sentence_a": ("sentence_b",),
    "text1": ("text2",),
    "text_a": ("text_b",),
    "premise": ("hypothesis",),
    "question1": ("question2",),
    "question": ("sentence", "passage", "context", "answer"),
    "query": ("passage", "document"),
    "#1 string": ("#2 string",),
}
"""Names of columns of first texts, each with those of second texts."""
_TEXTS = ("text", "sentence", "sent", "review", "content", "comment", "tweet", "message", "document", "body", "title")
"""Names of columns of single texts."""
_GUESSED = "guessed from the names of columns"
_LABELLED = {
    "name": "the name that the file gives the right choice",
    "text": "the text of the right choice",
    "number": "the number of the right choice",
    "letter": "the letter of the right choice",
    "added": "the text of the right choice, which the other columns do not have",
}
"""What a label is, by `Labelling.kind`."""
_SAMPLE = 2_000
"""Records from which columns are guessed."""
_SHOWN = 12
"""Columns that a reason names."""
_STEPS = 20
"""Steps that a pass over pairs has at least, if there are more than a few pairs."""
_FEWEST_PAIRS = 8
"""Pairs that a step compares at least."""


def guess_texts(files: Sequence[Path], given: Mapping[str, str]) -> dict[str, Key]:
    """The keys of a classification of one's own texts: columns and classes, from training files and those held out.

    `given` are columns that the user names (`text`, `pair`, `label`). Raises `DataError` if a column cannot be found,
    or if its values are no classes.
    """
    columns = {column: name for column, name in given.items() if column != "several"}
    some, numbered = _sample(files[0], columns)
    several = {"true": True, "false": False}.get(given.get("several", "").lower())
    label = find_labels(some, columns.get("label", ""), several)
    if label is None:
        raise _no_column(files[0], "label", some[0])
    others = [{name: value for name, value in row.items() if name not in label.marks} for row in some]
    text, pair = find_texts(files[0], others, given.get("text", ""), given.get("pair", ""), label.column)
    shown = [str(name) or "''" for name in some[0]][:_SHOWN]  # pandas writes its index without a name
    why = f"guessed from the columns {', '.join(shown)}{', ...' if len(some[0]) > _SHOWN else ''}"
    if numbered:
        why = f"the number of the column; {files[0].name} has no header, its first row has values that recur below"
    return {
        **name_labels(files, label, numbered),
        "text": Key(text, "" if "text" in given else why),
        **({"pair": Key(pair, "" if "pair" in given else why)} if pair else {}),
        "label": Key(label.column, "" if "label" in given else why),
    }


def _sample(file: Path, columns: Mapping[str, str]) -> tuple[list[Mapping[str, Any]], bool]:
    """The first records of a file, and whether its columns have numbers instead of names: the user gives numbers in
    `columns`, or the first row is found to be data. Raises `DataError` if there is none or a column does not exist."""
    named, numbers = ([record for _, record in islice(records(file, numbered=each), _SAMPLE)] for each in (False, True))
    if not numbers:
        raise DataError(f"{file} has no records. Give a file with a text and a label in each.")
    if columns:
        given = list(columns.values())
        numbered = all(map(str.isdigit, given)) and not all(name in (named or numbers)[0] for name in given)
    else:
        numbered = lacks_header(file, numbers, _is_column)
    some = numbers if numbered else named
    if not some:
        raise DataError(f"{file} has no records below its header. Give a file with a text and a label in each.")
    for column, name in columns.items():
        if name not in some[0]:
            raise _no_column(file, column, some[0])
    return some, numbered


def _is_column(name: str) -> bool:
    """Whether it is a usual name of a column."""
    seconds = {second for names in _PAIRS.values() for second in names}
    return name.strip().lower() in {*LABELS, *_TEXTS, *_PAIRS, *seconds}


def find_texts(file: Path, some: Sequence[Mapping[str, Any]], text: str, pair: str, label: str = "") -> tuple[str, str]:
    """The columns of the text, and of the second text if there is one, from some records; `text` and `pair` are those
    that the user names. Raises `DataError` if there is no column of texts."""
    for column, name in (("text", text), ("pair", pair)):
        if name and name not in some[0]:
            raise _no_column(file, column, some[0])
    if text:
        return text, pair
    found, second = _texts({str(name).lower(): name for name in some[0]}, some, label)
    if not found:
        raise _no_column(file, "text", some[0])
    return found, pair or second


def _no_column(file: Path, column: str, names: Iterable[Any]) -> DataError:
    of_predict = "" if column == "label" else f" (of predict: --{column} NAME)"
    by_number = " (a number from 1 if the file has no header)" if file.suffix in TABLES else ""
    return DataError(
        f"{file} has the columns {', '.join(map(repr, names))}; none of them is known to be that of the {column}. Name "
        f"it: train.objective.{column}=NAME{of_predict}{by_number}."
    )


def _texts(names: Mapping[str, Any], some: Sequence[Mapping[str, Any]], label: str) -> tuple[str, str]:
    """The columns of the text, and of the second text if there is one; else ""."""
    for first, seconds in _PAIRS.items():
        for second in seconds:
            if first in names and second in names:
                return str(names[first]), str(names[second])
    if known := next((names[name] for name in _TEXTS if name in names), ""):
        return str(known), ""
    sizes = {
        str(name): sum(len(value) for record in some if isinstance(value := record.get(name), str))
        for name in some[0]
        if name != label
    }
    longest = max(sizes, key=sizes.__getitem__, default="")
    # Texts have several words; identifiers do not.
    return (longest, "") if any(" " in str(record.get(longest, "")) for record in some) else ("", "")


def hulu_columns(task: FinetuneTask, file: Path) -> dict[str, Key]:
    """The keys of a task of HuLU, for the keys of its files, which differ between releases."""
    first = next((record for _, record in records(file)), {})
    for names in task.columns:
        if all(name in first for name in names):
            text, *pair, label = names
            keys = {"labels": Key(list(task.labels), "HuLU's classes; files may number them from 0")}
            keys["text"] = Key(text, f"the keys of {file.name}")
            return keys | ({"pair": Key(pair[0])} if pair else {}) | {"label": Key(label)}
    wanted = " or ".join(", ".join(map(repr, names)) for names in task.columns)
    raise DataError(
        f"{file} has the keys {', '.join(map(repr, first))}; {task.name} has {wanted}. Give the files of "
        f"{task.name}, or read them as your own: `bertwright finetune classify`."
    )


def guess_tags(task: FinetuneTask, files: Sequence[Path], given: Mapping[str, str]) -> dict[str, Key]:
    """The keys of tagging: the types of entities for `ner`, the tags for `pos`, by their number in the training files.

    `given` are columns that the user names (`word`, `tag`). Raises `DataError` if the tags are those of the other task.
    """
    layout = Layout(given.get("word", ""), given.get("tag", ""))
    sentences = list(_sentences(files, layout))
    counts = Counter(tag for tags in sentences for tag in tags if tag)
    scheme = find_scheme(sentences)
    named = {column: Key(name) for column, name in given.items()}
    shown = ", ".join(tag for tag, _ in counts.most_common(5)) or "none"
    other = "Name another column: train.objective.tag=NAME, or its number from 1."
    if task.name == "pos":
        if scheme or not counts:
            what = "which mark entities" if scheme else "so there is nothing to learn"
            raise DataError(f"{files[0]} has the tags {shown}, {what}. {other}")
        return {"tags": Key([tag for tag, _ in counts.most_common()], "found in the training file"), **named}
    if scheme is None:
        raise DataError(f"{files[0]} has the tags {shown}, which do not mark entities as B-PER and O do. {other}")
    types = Counter[str]()
    for tag, count in counts.items():
        if (parts := split_tag(tag)) and parts[1]:
            types[parts[1]] += count
    names = [kind for kind, _ in types.most_common()]
    return {"entities": Key(names, f"found in the training file ({scheme})"), **named}


def guess_choices(task: FinetuneTask, files: Sequence[Path], given: ChoiceLayout) -> dict[str, Key]:
    """The keys of questions with choices: columns, and the number of the first choice in the labels, from training
    files and those held out.

    `given` has what the user says. Keys are left out where files differ: each is then read by its own columns. Raises
    `DataError` as `read_layout` and `find_labelling`, and without labels.
    """
    said = {name: value for name, value in vars(given).items() if value not in ((), "", None, {})}
    wanted = replace(task.layout, **said)
    layouts = [read_layout(file, wanted) for file in files]
    for file, each in zip(files, layouts, strict=True):
        if not each.label:
            raise DataError(
                f"{file} has no column that is known to be that of the label. Name it: train.objective.label=NAME."
            )
    first, alike = layouts[0], all(each == layouts[0] for each in layouts)
    why = _GUESSED if alike else f"{_GUESSED}; other columns differ between the files"
    keys = {
        name: Key(list(value), "" if getattr(given, name) else f"{task.name}'s" if getattr(wanted, name) else why)
        for name in ("context", "question", "choices")
        if (value := getattr(first, name)) and all(getattr(each, name) == value for each in layouts)
    }
    if alike:
        labelling = find_labelling(files, first)
        keys["label"] = Key(first.label, "" if given.label else f"{_GUESSED}; {_LABELLED[labelling.kind]}")
        if labelling.kind == "number":
            keys["first"] = Key(labelling.first, f"the labels in the files count from {labelling.first}")
    if first.words:
        keys["words"] = Key(dict(first.words), "" if given.words else "what is read instead of these values")
    return keys


def guess_pairs(files: Sequence[Path], own: PairFiles) -> dict[str, Key]:
    """The columns of pairs, from training files and those held out; left out where files differ. `own` has what the
    user says. Raises `DataError` as `tasks.embedding.files.read_layout`."""
    layouts = [read_pairs(file, own.layout) for file in files]
    keys = {}
    for name in ("anchor", "positive", "negatives", "group"):
        value = getattr(layouts[0], name)
        if value and all(getattr(each, name) == value for each in layouts):
            why = "" if getattr(own.layout, name) else _GUESSED
            keys[name] = Key(list(value) if name == "negatives" else value, why)
    return keys


def batch_of_pairs(files: Sequence[Path], own: PairFiles, usual: Key) -> Key:
    """How many pairs a step compares: the usual number, or of few pairs a power of 2 that gives some steps."""
    pairs, wanted = 0, usual.value * _STEPS
    for file in files:
        pairs += count_first(own, file, wanted - pairs)
    if pairs >= wanted:
        return usual
    fitting = max(_FEWEST_PAIRS, 1 << max(0, (pairs // _STEPS).bit_length() - 1))
    return Key(min(fitting, usual.value), f"{pairs:,} pairs are few: at least {_STEPS} steps a pass over them")


def describe_questions(train: Sequence[Path], heldout: Sequence[Path]) -> str:
    """Which version of SQuAD the files have: 2.0 if some questions have no answer. Raises `DataError` as
    `read_questions`, and if no training question says what its answers are."""
    unanswered = {
        "training": [not each.answers for file in train for each in read_questions(file, Problems()) if each.labelled],
        "held-out": [
            not each.answers for file in heldout for each in read_questions(file, Problems()) if each.labelled
        ],
    }
    if not unanswered["training"]:
        raise DataError(f"{train[0]} has no question with a list of answers. Give SQuAD's training file.")
    if not any(map(any, unanswered.values())):
        return "SQuAD 1.1: every question has an answer"
    counts = [f"{sum(none):,} of {len(none):,} {split} questions" for split, none in unanswered.items() if none]
    return f"SQuAD 2.0: {' and '.join(counts)} have no answer"


def _sentences(files: Sequence[Path], layout: Layout) -> Iterator[list[str]]:
    for file in files:
        yield from (sentence.tags for sentence in read_sentences(file, layout, Problems())[1])
