"""Keys of the corpus and of the examples built from it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from bertwright.core.errors import RecipeError
from bertwright.translate.command import PHASE, Command, Key

_DUMP = re.compile(r"(?:^|/)([a-z_]+)wiki[-.]|wikicorpus_([a-z]+)")


def whole_words(command: Command, name: str) -> Iterator[Key]:
    """Google's whole-word masking."""
    if command[name]:
        yield Key(f"{PHASE}masking.unit", "words", command.source(name))


def dump(command: Command, name: str) -> Iterator[Key]:
    """A dump or a text file, and the language in its name."""
    path = str(command[name])
    yield Key("corpus.source", path, command.source(name))
    if found := _DUMP.search(path):
        yield Key("corpus.language", (found[1] or found[2]).replace("_", "-"), "by the name of the dump")


def sentences(command: Command, name: str) -> Iterator[Key]:
    """Texts with one sentence per line and blank lines between documents, or folders of them, separated by commas."""
    sources = [{"path": path, "lines": "sentences"} for path in str(command[name]).split(",")]
    yield Key("corpus.source", sources if len(sources) > 1 else sources[0], command.source(name))


def dataset(command: Command, name: str) -> Iterator[Key]:
    """bertPrep's names of the data sets that it downloads."""
    if found := re.fullmatch(r"wikicorpus_(en|zh)", str(command[name])):
        source = f"downloads/{found[1]}wiki-*-pages-articles-multistream.xml.bz2"
        yield Key("corpus.source", source, f"{command.source(name)}; bertwright corpus --download {found[1]}")
        yield Key("corpus.language", found[1], command.source(name))


def splitter(command: Command, name: str) -> Iterator[Key]:
    """A program that splits sentences, with its options."""
    words = [
        "quntoken",
        *(word for setting in command.settings.values() if setting.given for word in setting.text.split()),
    ]
    yield Key("corpus.split.command", words, command.text)


def languages(command: Command, name: str) -> Iterator[Key]:
    """The required language of documents."""
    yield Key("corpus.language", command[name], command.source(name))


def each_language(command: Command, name: str) -> Iterator[Key]:
    """The language that the filter keeps."""
    yield Key("corpus.filter.languages", [command[name]], command.source(name))


def glue(command: Command, name: str) -> Iterator[Key]:
    """The labelled texts of a GLUE task, as in the Hugging Face data set."""
    task = str(command[name]).lower()  # as transformers reads it; pretrain_glue.py takes no other
    yield Key("train.objective", {"kind": "classification", "task": task}, command.source(name))
    # The two versions of MNLI differ only in the texts that they hold out.
    yield Key(f"{PHASE}data", f"glue/{task.removesuffix('-mm')}", f"{command.source(name)}, the files of that data set")


def no_templates(command: Command, name: str) -> Iterator[Key]:
    """Templates that are not expanded."""
    yield Key("corpus.wikitext.expand_templates", False, command.source(name))


def running_text(command: Command, name: str) -> Iterator[Key]:
    """A file of running text: lines, or JSON lines."""
    path, source = str(command[name]), command.source(name)
    if path.endswith(".csv"):
        raise RecipeError(
            f"{source}: running text is not read from CSV, where a line break may be part of a text. Convert the file "
            'to JSON lines ({"text": ...}), and give that.'
        )
    if path.endswith((".json", ".jsonl")):
        yield Key("corpus.source", {"path": path, "format": "jsonl", "text": _key_of_text(command.file(name))}, source)
    else:
        lines = "articles" if command["line_by_line"] else "paragraphs"
        yield Key("corpus.source", {"path": path, "format": "text", "lines": lines}, source)


def _key_of_text(file: Path) -> str:
    """Return the key that the original reads: `text`, or else the first one."""
    with suppress(OSError, ValueError):
        with file.open(encoding="utf-8") as lines:
            keys = list(json.loads(lines.readline()))
        return "text" if "text" in keys else str(keys[0])
    return "text"


def saved_dataset(command: Command, name: str) -> Iterator[Key]:
    """A data set of the hub, saved as a folder."""
    names = [str(command[each]) for each in (name, "dataset_config_name") if command[each]]
    where = f"downloads/{'-'.join(each.rpartition('/')[2] for each in names)}"
    arguments = ", ".join(json.dumps(each) for each in names)
    why = f"{command.source(name)}; datasets.load_dataset({arguments}).save_to_disk({json.dumps(where)})"
    yield Key("corpus.source", {"path": f"{where}/train", "format": "datasets"}, why)


def part_of_dataset(command: Command, name: str) -> Iterator[Key]:
    """The configuration of a data set of the hub, which is a part of the folder's name."""
    if command["dataset_name"]:
        yield from saved_dataset(command, "dataset_name")


def validation_share(command: Command, name: str) -> Iterator[Key]:
    """The share of the texts that is held out."""
    if not command["validation_file"]:
        yield Key("examples.heldout", command.number(name) / 100, command.source(name))


def workers(command: Command, name: str) -> Iterator[Key]:
    """Processes that prepare the texts."""
    for stage in ("corpus", "examples"):
        yield Key(f"{stage}.workers", command[name], command.source(name))


def line_by_line(command: Command, name: str) -> Iterator[Key]:
    """Each line as a sequence of its own."""
    if command[name]:
        yield Key("examples.plan", "doc-sentences", f"{command.source(name)}: no sequence has texts of two lines")
