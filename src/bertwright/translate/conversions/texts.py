"""Keys of the corpus and of the examples built from it."""

from __future__ import annotations

import re
from collections.abc import Iterator

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
        *(word for setting in command.settings.values() if setting.said for word in setting.text.split()),
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
    task = str(command[name])
    yield Key("train.objective", {"kind": "classification", "task": task}, command.source(name))
    # The two versions of MNLI differ only in the texts that they hold out.
    yield Key(f"{PHASE}data", f"glue/{task.removesuffix('-mm')}", f"{command.source(name)}, the files of that data set")


def no_templates(command: Command, name: str) -> Iterator[Key]:
    """Templates that are not expanded."""
    yield Key("corpus.wikitext.expand_templates", False, command.source(name))
