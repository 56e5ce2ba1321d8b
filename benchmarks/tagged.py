"""Sentences whose words have a part-of-speech tag, from CoNLL-U or from columns of word and tag."""

from collections.abc import Iterator
from pathlib import Path

Tagged = list[tuple[str, str]]
"""A sentence: each word with its tag."""

TAGS = set("ADJ,ADP,ADV,AUX,CCONJ,DET,INTJ,NOUN,NUM,PART,PRON,PROPN,PUNCT,SCONJ,SYM,VERB,X".split(","))  # noqa: SIM905
"""The universal part-of-speech tags: https://universaldependencies.org/u/pos."""


def read_tagged(path: Path) -> list[Tagged]:
    """The sentences of a file; raises `SystemExit` with the line if it is in neither format or has a non-universal tag.

    Files named .conllu are CoNLL-U: ten columns, with the word in the second and its tag in the fourth. Multiword
    tokens (1-2) and empty nodes (1.1) are left out. In other files the first two of two or more columns are word and
    tag (NerKor's .tsv). Single-column lines that begin with # are comments; a blank line ends a sentence.
    """
    lines = enumerate(path.read_text(encoding="utf-8").split("\n"), 1)  # no splitlines(): words may contain U+0085 etc.
    rows = _conllu if path.suffix == ".conllu" else _columns
    sentences: list[Tagged] = [[]]
    for number, line in lines:
        if not line.strip():
            sentences.append([])
        elif not (line.startswith("#") and "\t" not in line):
            for word, tag in rows(line.split("\t")):
                if tag not in TAGS:
                    raise SystemExit(f"{path}:{number}: {tag!r} is no universal part-of-speech tag, in {line!r}")
                sentences[-1].append((word, tag))
    return [sentence for sentence in sentences if sentence]


def _conllu(columns: list[str]) -> Iterator[tuple[str, str]]:
    if len(columns) != 10:
        yield "", f"of {len(columns)} columns, not 10"
    elif columns[0].isdecimal():
        yield columns[1], columns[3]


def _columns(columns: list[str]) -> Iterator[tuple[str, str]]:
    yield columns[0], columns[1] if len(columns) > 1 else ""


def spread(sentences: list[Tagged], most: int) -> list[Tagged]:
    """At most `most` of the sentences, evenly spread over the file, because files are ordered by genre."""
    taken = min(most, len(sentences))
    return [sentences[i * len(sentences) // taken] for i in range(taken)]
